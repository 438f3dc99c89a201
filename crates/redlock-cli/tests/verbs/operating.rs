//! Each command in `docs/operating.md`, run.

use std::{
    collections::BTreeSet, fs, io::Write, os::unix::fs::PermissionsExt, path::Path, time::Duration,
};

use crate::kit::{Nodes, Running, at_terminal, eventually, redlock, run, screen};

/// Returns all commands in the document.
fn commands() -> BTreeSet<String> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/operating.md");
    let text = fs::read_to_string(path).unwrap();
    let typed = text
        .lines()
        .filter_map(|line| line.strip_prefix("$ redlock "));
    let named = text.split('`').skip(1).step_by(2);
    let named = named.filter_map(|code| code.strip_prefix("redlock "));
    typed.chain(named).map(str::to_owned).collect()
}

/// The words of a command, with something in the place of what stands for something.
fn words(command: &str) -> Vec<String> {
    let words = command.split(' ').map(|word| match word {
        "NODE" => "1",
        "KEY" => "order:7",
        "TIME" => "20s",
        "ADDR" => "127.0.0.1:0",
        // No process listens there, and the command reports that.
        "NAMESPACE/NAME" => "billing/close-day",
        "…" => "systemd",
        word => word,
    });
    words.map(str::to_owned).collect()
}

#[tokio::test]
async fn each_command_in_the_document_does_what_is_said_of_it() {
    let mut nodes = Nodes::blessed(3).await;
    let client = nodes.client().await;
    nodes.pause_job("billing", "close-day").await;
    let commands = commands();
    assert!(commands.len() > 20, "{commands:?}");
    for command in commands {
        let words = words(&command);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let done = || nodes.run(&words);
        let (code, says) = match &*command {
            "doctor" | "doctor --strict" => (0, "3 of 3 nodes vote"),
            "ready NODE" | "ready NODE --wait TIME" => (0, "votes"),
            "bless" => (0, "nothing to bless"),
            "guide systemd" => (0, "[Service]"),
            "guide access" => (0, "user lock on"),
            "guide compose" => (0, "services:"),
            "guide kubernetes" => (0, "kind: StatefulSet"),
            "guide … --delayed" => (0, "/bin/sleep"),
            "jobs" | "jobs NAMESPACE/NAME" => (0, "paused"),
            "leader NAME" => (1, "no leader"),
            "jobs pause NAMESPACE/NAME" | "jobs pause NAMESPACE/NAME --reason TEXT" => {
                (0, "is paused")
            }
            "log" => (0, "pause billing/close-day"),
            "jobs stop NAMESPACE/NAME" => (0, "are asked to end"),
            // No replica is up here.
            "jobs backfill NAMESPACE/NAME --from TIME --to TIME --wait" => {
                let range = [
                    "--from",
                    "2026-01-02T00:00:00Z",
                    "--to",
                    "2026-01-01T00:00:00Z",
                ];
                let done = nodes.run(&[&words[..3], &range[..]].concat());
                let says = "the range ends before it begins";
                done.complained(2, says);
                continue;
            }
            "jobs trigger NAMESPACE/NAME --wait" => (1, "no replica has started it"),
            "jobs forget NAMESPACE/NAME" => {
                let done = done().ended(2);
                // The command asks, and gets no answer.
                for said in ["it is paused", "nothing was done; --yes"] {
                    assert!(done.err.contains(said), "{said}: {done:?}");
                }
                continue;
            }
            "status KEY" => {
                let guard = client.acquire("order:7").await.unwrap();
                guard.extend().await.unwrap();
                let done = done();
                guard.release().await.unwrap();
                assert!(done.out.contains("held by"), "{done:?}");
                continue;
            }
            "release KEY --force" => {
                let guard = client.acquire("order:7").await.unwrap();
                let held = done().ended(0);
                let other = nodes.client().await.try_acquire("order:7").await;
                assert!(other.is_ok(), "{held:?}");
                drop(other);
                drop(guard);
                (1, "nothing to release")
            }
            "bench" => {
                let done = nodes.run(&["bench", "--for", "200ms"]);
                done.told(0, "ttl");
                continue;
            }
            "sandbox --nodes 5 --" => {
                run(&mut redlock(&[&words[..], &["true"]].concat())).ended(0);
                continue;
            }
            "watch" | "watch --listen ADDR" => {
                let mut watch = Running::start(&mut nodes.command(&words));
                watch.await_line("a majority votes");
                assert_eq!(watch.interrupt(), Some(130));
                continue;
            }
            "top" => {
                let line = format!("stty rows 24 cols 80; \"$REDLOCK\" {}", words.join(" "));
                let mut top = at_terminal(&line, &nodes);
                let mut top = top.env("TERM", "xterm").spawn().unwrap();
                screen(&mut top, "3 of 3 nodes vote");
                top.stdin.take().unwrap().write_all(b"q").unwrap();
                assert!(top.wait().unwrap().success());
                continue;
            }
            "roll -- ssh {host} sudo systemctl restart redlock-node" => {
                roll(&mut nodes, &words);
                continue;
            }
            other => panic!("redlock {other} is in the document: say here what it does"),
        };
        let done = done();
        assert!(
            done.code == code && done.out.contains(says),
            "redlock {command}: {done:?}"
        );
    }
}

/// Restarts all nodes, by a program that is called `ssh` and says what it was asked for.
fn roll(nodes: &mut Nodes, words: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let script = "#!/bin/sh\n\
        echo \"$*\" >\"$ASKED/$REDLOCK_ROLL_NODE\"\n\
        while [ -e \"$ASKED/$REDLOCK_ROLL_NODE\" ]; do sleep 0.05; done\n";
    let ssh = folder.path().join("ssh");
    fs::write(&ssh, script).unwrap();
    fs::set_permissions(&ssh, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!(
        "{}:{}",
        folder.path().display(),
        std::env::var("PATH").unwrap_or_default()
    );
    let mut command = nodes.command(words);
    command.env("PATH", path).env("ASKED", folder.path());
    let mut roll = Running::start(&mut command);
    for node in 0..nodes.len() {
        let asked = folder.path().join(nodes[node].address().to_string());
        eventually("it is asked for", || is_written(&asked));
        let words = fs::read_to_string(&asked).unwrap();
        assert_eq!(
            words.trim(),
            "127.0.0.1 sudo systemctl restart redlock-node"
        );
        nodes[node].restart().unwrap();
        fs::remove_file(&asked).unwrap();
    }
    assert_eq!(roll.child.wait().unwrap().code(), Some(0));
}

fn is_written(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|file| file.len() > 0)
}

#[tokio::test]
async fn a_set_of_other_nodes_goes_on_with_greater_tokens_in_a_new_namespace() {
    let (old, new) = (Nodes::blessed(3).await, Nodes::start(5));
    let token = |nodes: &Nodes, namespace: &str| -> u64 {
        let mut command = nodes.command(&["run", "order:7", "--namespace", namespace, "--"]);
        let done = run(command.args(["sh", "-c", "echo $REDLOCK_FENCE"])).ended(0);
        done.out.trim().parse().unwrap()
    };
    new.run(&["bless", "--yes", "--namespace", "next"]).ended(0);
    let before = (0..5).map(|_| token(&old, "redlock")).max().unwrap();
    tokio::time::sleep(Duration::from_millis(10)).await;
    assert!(token(&new, "next") > before);
}
