//! `roll`: node after node is restarted.

use std::{
    fs,
    process::Stdio,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

use tokio::task::JoinSet;

use crate::kit::{Nodes, Relay, Running, eventually, run};

/// A script that asks the test to restart a server, and waits until it has.
pub(crate) fn restart_script() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let script = "#!/bin/sh\n\
        touch \"$0.$2\"\n\
        while [ -e \"$0.$2\" ]; do sleep 0.05; done\n";
    let path = folder.path().join("restart");
    std::fs::write(&path, script).unwrap();
    let mut mode = std::fs::metadata(&path).unwrap().permissions();
    std::os::unix::fs::PermissionsExt::set_mode(&mut mode, 0o755);
    std::fs::set_permissions(&path, mode).unwrap();
    folder
}

#[tokio::test]
async fn three_nodes_are_restarted_one_by_one_while_everybody_goes_on() {
    everybody_goes_on(3).await;
}

#[tokio::test]
async fn five_nodes_are_restarted_one_by_one_while_everybody_goes_on() {
    everybody_goes_on(5).await;
}

/// Restarts all nodes while some leases are held throughout, and others are acquired again and again: none fails.
async fn everybody_goes_on(count: usize) {
    let mut nodes = Nodes::blessed(count).await;
    let folder = restart_script();
    let script = folder.path().join("restart");
    let script = script.to_str().unwrap();
    let mut held = Vec::new();
    let mut load = JoinSet::new();
    let over = Arc::new(AtomicBool::new(false));
    for replica in 0..2 {
        let client = nodes.client().await;
        let lasting = client.acquire(format!("held:{replica}")).await.unwrap();
        held.push(lasting);
        // Some locks of its own, and some that both replicas contend for.
        for key in [format!("own:{replica}"), "order:1".into(), "order:2".into()] {
            let (client, over) = (client.clone(), Arc::clone(&over));
            load.spawn(async move {
                let mut acquired = 0;
                while !over.load(Relaxed) {
                    let guard = client.acquire(&*key).await.unwrap();
                    guard.release().await.unwrap();
                    acquired += 1;
                }
                acquired
            });
        }
    }
    let mut command = nodes.command(&["roll", "--", script, "{host}", "{port}"]);
    let mut roll = Running::start(&mut command);
    for node in 0..count {
        let flag = format!("{script}.{}", nodes[node].port());
        let is_asked_for = || fs::exists(&flag).unwrap();
        while !is_asked_for() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        nodes[node].restart().unwrap();
        fs::remove_file(&flag).unwrap();
    }
    while roll.child.try_wait().unwrap().is_none() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(roll.child.wait().unwrap().code(), Some(0));
    over.store(true, Relaxed);
    while let Some(acquired) = load.join_next().await {
        let acquired: u64 = acquired.expect("no acquire fails, and no release");
        assert!(acquired > 50, "{acquired}");
    }
    assert!(held.iter().all(|guard| guard.lease().is_held()));
    for node in 0..count {
        roll.await_line(&format!("{} votes again", nodes[node].address()));
    }
    assert_eq!(nodes.doctor(&["--strict"]).code, 0);
}

#[tokio::test]
async fn nothing_more_is_restarted_when_a_quorum_would_be_at_risk() {
    let mut nodes = Nodes::blessed(3).await;
    nodes[2].kill().unwrap();
    let done = nodes.run(&["roll", "--", "true"]);
    done.complained(3, "is not restarted: without it 1 of 3 nodes vote");
    assert!(!done.err.contains("restarting"), "{done:?}");
}

/// A client takes some seconds to notice it, and says meanwhile that the node votes.
#[tokio::test]
async fn a_node_that_has_just_frozen_is_none_of_those_that_are_left() {
    let mut nodes = Nodes::blessed(3).await;
    let folder = restart_script();
    let script = folder.path().join("restart");
    let script = script.to_str().unwrap();
    let mut roll = nodes.command(&["roll", "--", script, "{host}", "{port}"]);
    let mut roll = Running::start(&mut roll);
    let flag = |node: usize| format!("{script}.{}", nodes[node].port());
    let (first, second) = (flag(0), flag(1));
    eventually("it is asked for", || fs::exists(&first).unwrap());
    nodes[0].restart().unwrap();
    fs::remove_file(&first).unwrap();
    roll.await_line(&format!("{} votes again", nodes[0].address()));
    nodes[2].freeze().unwrap();
    let ended = loop {
        let ended = roll.child.try_wait().unwrap();
        if ended.is_some() || fs::exists(&second).unwrap() {
            break ended;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    nodes[2].thaw().unwrap();
    assert_eq!(ended.and_then(|status| status.code()), Some(3));
}

#[tokio::test]
async fn two_rolls_do_not_restart_nodes_at_the_same_time() {
    let nodes = Nodes::blessed(3).await;
    let folder = tempfile::tempdir().unwrap();
    let began = folder.path().join("began");
    let script = ": >\"$BEGAN\"; while :; do sleep 0.02; done";
    let mut first = nodes.command(&["roll", "--", "sh", "-c", script]);
    let first = Running::start(first.env("BEGAN", &began));
    eventually("it runs", || began.exists());
    let second = nodes.run(&["roll", "--", "true"]).ended(2);
    let words = "another roll is under way";
    assert!(second.err.contains(words), "{second:?}");
    assert!(!second.err.contains("restarting"), "{second:?}");
    // It is no obstacle once it has ended.
    assert_eq!(first.interrupt(), Some(130));
    let third = nodes.run(&["roll", "--timeout", "100ms", "--", "true"]);
    assert!(third.err.contains("restarting"), "{third:?}");
}

#[tokio::test]
async fn a_node_whose_memory_is_full_is_none_of_those_that_are_left() {
    let nodes = Nodes::blessed(3).await;
    nodes.set(1, "maxmemory", "900kb");
    let done = nodes.run(&["roll", "--", "true"]).ended(3);
    let words = format!("{} is not restarted", nodes[0].address());
    assert!(
        done.err.contains(&words) && done.err.contains("memory"),
        "{done:?}"
    );
    assert!(!done.err.contains("restarting"), "{done:?}");
}

#[tokio::test]
async fn the_command_may_ask_whether_its_node_votes() {
    let nodes = Nodes::blessed(3).await;
    let script = "\"$REDLOCK\" ready \"$REDLOCK_ROLL_NODE\"; exit 1";
    let mut command = nodes.command(&["--json", "roll", "--", "sh", "-c", script]);
    let done = run(command.env("REDLOCK", env!("CARGO_BIN_EXE_redlock")));
    let address = nodes[0].address();
    assert!(done.err.contains(&format!("{address} votes")), "{done:?}");
    assert_eq!(done.out, "", "it has nothing but JSON");
}

#[tokio::test]
async fn a_command_that_fails_or_does_nothing_ends_the_roll() {
    let nodes = Nodes::blessed(3).await;
    let done = nodes.run(&["roll", "--", "false"]).ended(2);
    assert_eq!(done.err.matches("restarting").count(), 1, "{done:?}");
    let done = nodes.run(&["roll", "--timeout", "500ms", "--", "true"]);
    done.complained(2, "did not restart it");
    assert_eq!(nodes.run(&["roll", "--", "/no/such/program"]).code, 127);
    let missing = nodes.run(&["--json", "roll", "--", "/no/such/program"]);
    for line in missing.err.lines() {
        let complaint: serde_json::Value = serde_json::from_str(line).unwrap();
        assert!(complaint["error"].is_string(), "{missing:?}");
    }
    let remote = nodes.run(&["roll", "--", "sh", "-c", "exit 127"]);
    assert_eq!(remote.code, 127);
    assert!(
        remote.err.contains("nothing more is restarted"),
        "{remote:?}"
    );
}

/// The server ends, and its new one does not begin, as with a configuration that is wrong.
#[tokio::test]
async fn a_node_that_does_not_come_back_is_told_as_such() {
    let mut nodes = Nodes::blessed(3).await;
    let folder = restart_script();
    let script = folder.path().join("restart");
    let script = script.to_str().unwrap();
    let arguments = ["roll", "--timeout", "1s", "--", script, "{host}", "{port}"];
    let mut roll = nodes.command(&arguments);
    let roll = roll.stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
    let flag = format!("{script}.{}", nodes[0].port());
    eventually("it is asked for", || fs::exists(&flag).unwrap());
    nodes[0].kill().unwrap();
    fs::remove_file(&flag).unwrap();
    let done = roll.unwrap().wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(3), "{said}");
    assert!(said.contains("has not come back 1 s after"), "{said}");
}

#[tokio::test]
async fn what_does_not_say_which_run_it_is_is_not_restarted() {
    let nodes = Nodes::blessed(3).await;
    let silent = Relay::replacing(nodes[0].address(), "\nrun_id:", "\nrun_if:");
    let mut urls = nodes.urls();
    urls[0] = silent.url();
    let nodes = nodes.at(urls);
    let done = nodes.run(&["roll", "--", "true"]).ended(2);
    assert!(
        done.err.contains("is not restarted: it does not say") && !done.err.contains("restarting"),
        "{done:?}"
    );
}

#[tokio::test]
async fn a_command_is_asked_to_end_when_the_roll_is_interrupted() {
    let nodes = Nodes::blessed(3).await;
    let folder = tempfile::tempdir().unwrap();
    let (began, ended) = (folder.path().join("began"), folder.path().join("ended"));
    let script =
        "trap 'sleep 0.3; : >\"$ENDED\"; exit' TERM; : >\"$BEGAN\"; while :; do sleep 0.02; done";
    let mut command = nodes.command(&["roll", "--", "sh", "-c", script]);
    command.env("BEGAN", &began).env("ENDED", &ended);
    let roll = Running::start(&mut command);
    eventually("it runs", || began.exists());
    assert_eq!(roll.interrupt(), Some(130));
    assert!(ended.exists(), "it was killed before it had ended");
}

/// Its clients and the roll disagree, and waiting does not change that.
#[tokio::test]
async fn a_node_that_remembers_another_policy_ends_the_roll_at_once() {
    let mut nodes = Nodes::blessed(3).await;
    let folder = restart_script();
    let script = folder.path().join("restart");
    let script = script.to_str().unwrap();
    let arguments = ["roll", "--timeout", "60s", "--", script, "{host}", "{port}"];
    let mut roll = nodes.command(&arguments);
    let roll = roll.stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
    let flag = format!("{script}.{}", nodes[0].port());
    eventually("it is asked for", || fs::exists(&flag).unwrap());
    nodes[0].restart().unwrap();
    // As a client with another policy would leave it that reached the node first.
    let mark = || nodes.ask(0, &["GET", "{redlock}:mark"]);
    eventually("the node has a mark", || mark().contains("2000ms"));
    let theirs = mark().replace("2000ms", "60000ms");
    nodes.ask(0, &["SET", "{redlock}:mark", &theirs]);
    fs::remove_file(&flag).unwrap();
    let done = roll.unwrap().wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(3), "{said}");
    assert!(said.contains("give this client their value"), "{said}");
    assert!(!said.contains("after its restart"), "it has waited: {said}");
}
