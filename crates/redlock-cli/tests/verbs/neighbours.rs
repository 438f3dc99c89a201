//! Other namespaces on the nodes, which `roll` must not take the votes of.

use std::{fs, path::Path, time::Duration};

use redlock_core::Redlock;

use crate::{
    kit::{MAX_TTL, Nodes, Running, run},
    roll::restart_script,
};

/// Of another service on the same nodes, which do not vote for its clients for longer after a restart.
async fn billing(nodes: &Nodes) -> Redlock {
    let builder = Redlock::builder().nodes(nodes.urls()).namespace("billing");
    let longer = MAX_TTL + MAX_TTL / 2;
    let client = builder.ttl(MAX_TTL).max_ttl(longer).build().await.unwrap();
    client.dangerous_bless().await;
    client
}

/// Waits until a roll asks for the restart of a node.
async fn asked_for(roll: &mut Running, flag: &str, said: &Path) {
    while !fs::exists(flag).unwrap() {
        let ended = roll.child.try_wait().unwrap();
        assert!(ended.is_none(), "{}", fs::read_to_string(said).unwrap());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_roll_waits_for_the_votes_of_other_namespaces_and_says_what_it_waits_for() {
    let mut nodes = Nodes::blessed(3).await;
    let _client = billing(&nodes).await;
    let folder = restart_script();
    let script = folder.path().join("restart");
    let script = script.to_str().unwrap();
    let mut roll = nodes.command(&["roll", "--", script, "{host}", "{port}"]);
    let folder = tempfile::tempdir().unwrap();
    let said = folder.path().join("said");
    let mut roll = Running::with_errors_in(&mut roll, &said);
    for node in 0..3 {
        let flag = format!("{script}.{}", nodes[node].port());
        asked_for(&mut roll, &flag, &said).await;
        for other in (0..3).filter(|other| *other != node) {
            let mark = nodes.ask(other, &["GET", "{billing}:mark"]);
            assert!(mark.starts_with("voting"), "{node}, {other}: {mark:?}");
        }
        nodes[node].restart().unwrap();
        fs::remove_file(&flag).unwrap();
    }
    while roll.child.try_wait().unwrap().is_none() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let said = fs::read_to_string(&said).unwrap();
    assert_eq!(roll.child.wait().unwrap().code(), Some(0), "{said}");
    for words in [
        "in other namespaces, too: billing",
        "may have forgotten leases: wait, it votes in",
        "in the namespace billing, it does not vote: it is in quarantine",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
}

#[tokio::test]
async fn a_namespace_without_a_client_ends_a_roll_by_name_unless_it_is_ignored() {
    for ignores in [false, true] {
        let mut nodes = Nodes::blessed(3).await;
        billing(&nodes).await.close().await;
        let folder = restart_script();
        let script = folder.path().join("restart");
        let script = script.to_str().unwrap();
        let ignore: &[&str] = if ignores {
            &["--ignore", "billing"]
        } else {
            &[]
        };
        let roll = [
            &["roll", "--timeout", "6s"],
            ignore,
            &["--", script, "{host}", "{port}"],
        ];
        let folder = tempfile::tempdir().unwrap();
        let said = folder.path().join("said");
        let mut roll = Running::with_errors_in(&mut nodes.command(&roll.concat()), &said);
        let restarted = if ignores { 3 } else { 1 };
        for node in 0..restarted {
            let flag = format!("{script}.{}", nodes[node].port());
            asked_for(&mut roll, &flag, &said).await;
            nodes[node].restart().unwrap();
            fs::remove_file(&flag).unwrap();
        }
        let code = roll.child.wait().unwrap().code();
        let said = fs::read_to_string(&said).unwrap();
        if ignores {
            assert_eq!(code, Some(0), "{said}");
        } else {
            assert_eq!(code, Some(3), "{said}");
            let words =
                "in the namespace billing, it does not vote: no client of the namespace has looked";
            assert!(said.contains(words) && said.contains("--ignore"), "{said}");
        }
    }
}

#[tokio::test]
async fn a_roll_that_may_not_scan_says_that_it_sees_no_other_namespace() {
    let nodes = Nodes::blessed(3).await;
    let urls = (0..3).map(|node| nodes.with_least_rights(node)).collect();
    let nodes = nodes.at(urls);
    let done = run(&mut nodes.command(&["roll", "--timeout", "1s", "--", "true"])).ended(2);
    let words = "roll takes +scan beside what a client needs";
    assert!(done.err.contains(words), "{done:?}");
}
