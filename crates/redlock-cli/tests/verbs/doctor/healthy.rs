use std::time::Duration;

use redlock_core::{AcquireOptions, Wait};
use redlock_sandbox::ServerOptions;

use crate::kit::{Nodes, Running, UNHURRIED, run};

#[tokio::test]
async fn a_healthy_set_fits_one_screen_and_nothing_is_left_behind() {
    let nodes = Nodes::blessed(5).await;
    let client = nodes.client().await;
    let guard = client.acquire("used:before").await.unwrap();
    guard.release().await.unwrap();
    client.close().await;
    let before = nodes.keys();
    let done = nodes
        .run(&["doctor", "--strict", "--deep", "--node-timeout", UNHURRIED])
        .ended(0);
    assert!(done.out.lines().count() <= 24, "{}", done.out);
    assert!(
        done.out.lines().all(|line| line.len() <= 80),
        "{}",
        done.out
    );
    assert!(
        done.out.contains("5 of 5 nodes vote, 3 are needed"),
        "{done:?}"
    );
    assert!(done.out.contains("acquired, contended, extended, released"));
    assert!(
        !done.out.contains("FAIL") && !done.out.contains("warn"),
        "{done:?}"
    );
    // A release whose acquire is still on its way leaves a tombstone for a moment.
    let mut left = nodes.keys();
    left.retain(|key| !key.contains("}:tomb:"));
    assert_eq!(left, before);
    assert!(done.err.is_empty(), "{done:?}");
    assert!(!done.out.contains('\x1b'), "no terminal, no colours");
}

#[tokio::test]
async fn a_lock_of_somebody_else_is_left_alone() {
    let nodes = Nodes::blessed(3).await;
    let client = nodes.client().await;
    let guard = client.acquire("theirs").await.unwrap();
    assert_eq!(nodes.doctor(&[]).code, 0);
    let other = nodes.client().await;
    let once = AcquireOptions::new().wait(Wait::Never);
    assert!(other.acquire_with("theirs", once).await.is_err());
    assert!(guard.lease().is_held());
}

#[tokio::test]
async fn no_password_is_ever_printed() {
    let options = ServerOptions::default().password("hunter2");
    let nodes = Nodes::start_with(3, &options);
    nodes.bless().await;
    for verb in [["doctor", "--json"], ["doctor", "--deep"]] {
        let done = nodes.run(&verb).ended(0);
        assert!(!format!("{done:?}").contains("hunter2"), "{done:?}");
    }
    let wrong: Vec<_> = nodes
        .urls()
        .iter()
        .map(|url| url.replace("hunter2", "hunter3"))
        .collect();
    let mut command = nodes.command(&["doctor"]);
    let done = run(command.env("REDLOCK_NODES", wrong.join(",")));
    done.told(3, "authentication failed");
    assert!(!format!("{done:?}").contains("hunter"), "{done:?}");
}

#[tokio::test]
async fn an_interrupted_doctor_holds_nothing() {
    let nodes = Nodes::blessed(3).await;
    let before = nodes.keys();
    for pause in [300, 1_050, 1_100, 1_200] {
        // A call that is given up may leave a key, until its lease is over.
        let mut command = nodes.command(&["doctor", "--node-timeout", UNHURRIED]);
        let doctor = Running::start(&mut command);
        tokio::time::sleep(Duration::from_millis(pause)).await;
        let code = doctor.interrupt();
        assert!(matches!(code, Some(130 | 0)), "{code:?}");
        let keys: Vec<_> = nodes
            .keys()
            .into_iter()
            .filter(|key| key.contains("doctor"))
            .collect();
        assert!(keys.is_empty(), "{keys:?} {before:?}");
    }
}

#[test]
fn a_new_server_by_best_effort_votes_at_once() {
    let nodes = Nodes::start(1);
    let mut doctor = nodes.command(&["doctor"]);
    let done = run(doctor.env("REDLOCK_GUARANTEE", "best_effort"));
    done.told(0, "1 of 1 nodes vote");
}
