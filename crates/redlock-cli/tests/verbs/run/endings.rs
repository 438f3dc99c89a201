//! How a command ends, and what its caller sees of that.

use std::{fs, io::Write, process::Stdio, time::Duration};

use super::under;
use crate::kit::{Nodes, run};

#[tokio::test]
async fn a_command_has_its_streams_its_key_its_token_and_its_exit_code() {
    let nodes = Nodes::blessed(3).await;
    let script = r#"cat; echo "$REDLOCK_KEY $REDLOCK_FENCE"; echo ouch >&2; exit 7"#;
    let mut command = under(&nodes, &[], &["sh", "-c", script]);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"hello\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(7));
    let out = String::from_utf8(output.stdout).unwrap();
    let token = out.strip_prefix("hello\njob ").unwrap().trim();
    let token: u64 = token.parse().unwrap();
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "ouch\n");
    let second = run(&mut under(
        &nodes,
        &[],
        &["sh", "-c", "echo $REDLOCK_FENCE"],
    ));
    assert!(second.out.trim().parse::<u64>().unwrap() > token);
    let locks = nodes
        .keys()
        .into_iter()
        .filter(|key| key.contains(":lock:"));
    assert_eq!(locks.count(), 0);
}

#[tokio::test]
async fn a_command_that_a_signal_ended_is_told_as_shells_do() {
    let nodes = Nodes::blessed(3).await;
    let killed = run(&mut under(&nodes, &[], &["sh", "-c", "kill -9 $$"]));
    assert_eq!(killed.code, 128 + 9, "{killed:?}");
}

#[tokio::test]
async fn a_command_that_cannot_be_started_is_told_as_shells_do() {
    let nodes = Nodes::blessed(3).await;
    let missing = run(&mut under(&nodes, &[], &["no-such-command-here"]));
    assert_eq!(missing.code, 127);
    assert!(
        missing
            .err
            .contains("no-such-command-here: there is no such command"),
        "{missing:?}"
    );
    let folder = run(&mut under(&nodes, &[], &["/"]));
    assert_eq!(folder.code, 126);
    assert!(folder.err.contains("cannot be run"), "{folder:?}");
    // Nothing is held that was never used.
    run(&mut under(&nodes, &["--no-wait"], &["true"])).ended(0);
}

#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "the patience of a test")]
async fn a_lock_is_kept_for_as_long_as_was_asked_for() {
    let nodes = Nodes::blessed(3).await;
    let begun = std::time::Instant::now();
    let folder = tempfile::tempdir().unwrap();
    let begins = folder.path().join("begins");
    let command = ["touch", begins.to_str().unwrap()];
    let mut first = under(&nodes, &["--at-least", "3s"], &command)
        .spawn()
        .unwrap();
    let other = nodes.client().await;
    // A key on one node is not a lock that is held yet.
    crate::kit::eventually("it runs", || begins.exists());
    assert!(other.try_acquire("job").await.is_err());
    assert!(first.wait().unwrap().success());
    assert!(begun.elapsed() >= Duration::from_secs(3));
    assert!(other.try_acquire("job").await.is_ok());

    let begun = std::time::Instant::now();
    run(&mut under(&nodes, &["--at-least", "1m"], &["/no/such"])).ended(127);
    assert!(begun.elapsed() < Duration::from_secs(30));
}

/// As `systemctl stop` sends it, once.
#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "the patience of a test")]
async fn a_signal_ends_the_command_and_the_keeping_behind_it() {
    let nodes = Nodes::blessed(3).await;
    let folder = tempfile::tempdir().unwrap();
    let begins = folder.path().join("begins");
    let script = "touch \"$0\"; exec sleep 20";
    let command = ["sh", "-c", script, begins.to_str().unwrap()];
    let mut running = under(&nodes, &["--at-least", "1m"], &command)
        .spawn()
        .unwrap();
    let is_held = || nodes.keys().iter().any(|key| key.contains(":lock:job"));
    // Before it runs, a signal ends `redlock run` itself.
    crate::kit::eventually("it runs", || begins.exists());
    assert!(is_held());
    let pid = running.id().to_string();
    let begun = std::time::Instant::now();
    let told = std::process::Command::new("kill")
        .args(["-TERM", &pid])
        .status();
    assert!(told.unwrap().success());
    assert_eq!(running.wait().unwrap().code(), Some(143));
    assert!(begun.elapsed() < Duration::from_secs(15));
    assert!(!is_held());
}

#[tokio::test]
async fn what_makes_no_sense_is_refused() {
    let nodes = Nodes::blessed(3).await;
    for (arguments, words) in [
        (&["--grace", "1s"][..], "longer --ttl"),
        (&["--ttl", "500ms"], "leaves no time"),
        (&["--ttl", "1h"], "max_ttl"),
        (&["--wait", "soon"], "not a time such as 30s"),
        (&["--wait", "1s", "--no-wait"], "cannot be used with"),
    ] {
        let refused = run(&mut under(&nodes, arguments, &["true"]));
        refused.complained(2, words);
    }
    nodes.run(&["run", "", "--", "true"]).ended(2);
    nodes.run(&["run", "job"]).ended(2);
    let own = [
        "run",
        "--verbatim-keys",
        "{redlock:verbatim}:mark",
        "--",
        "true",
    ];
    nodes.run(&own).ended(2);
}

#[tokio::test]
async fn an_exit_code_stays_what_it_is_when_nobody_reads_errors() {
    let nodes = Nodes::blessed(3).await;
    let mut missing = under(&nodes, &[], &["no-such-command-here"]);
    let mut child = missing.stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stderr.take());
    assert_eq!(child.wait().unwrap().code(), Some(127));
}

#[tokio::test]
async fn a_folder_for_temporary_files_with_a_long_name_will_do() {
    let nodes = Nodes::blessed(3).await;
    let folder = tempfile::tempdir().unwrap();
    let long = folder.path().join("x".repeat(120));
    fs::create_dir(&long).unwrap();
    run(under(&nodes, &[], &["true"]).env("TMPDIR", &long)).ended(0);
}

#[tokio::test]
async fn a_command_runs_where_no_file_can_be_written() {
    let nodes = Nodes::blessed(3).await;
    // No folder can be made there, as on a root that is read-only.
    run(under(&nodes, &[], &["true"]).env("TMPDIR", "/proc")).ended(0);
}
