//! `redlock top`, at a terminal and for a program.

use std::{
    io::{BufRead, BufReader, Read, Write},
    process::{Child, Stdio},
    time::Duration,
};

use redlock_cron::{BoxError, SingletonJob, SingletonScheduler};
use redlock_sandbox::ServerOptions;
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde_json::Value;

use crate::kit::{Nodes, at_terminal, eventually, run, screen};

/// Starts a line of a shell in a terminal.
fn start(line: &str, nodes: &Nodes) -> Child {
    let mut terminal = at_terminal(line, nodes);
    terminal.env("TERM", "xterm").spawn().unwrap()
}

/// Returns the output of a line of a shell until these words are there; `q` ends it then.
fn shown(line: &str, nodes: &Nodes, words: &str) -> String {
    let mut top = start(line, nodes);
    let said = screen(&mut top, words);
    top.stdin.take().unwrap().write_all(b"q").unwrap();
    assert!(top.wait().unwrap().success());
    said
}

/// Starts the command for a program, and returns it with its samples.
fn samples(nodes: &Nodes) -> (Child, impl Iterator<Item = Value> + use<>) {
    let mut command = nodes.command(&["top", "--json", "--every", "200ms"]);
    let mut top = command.stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(top.stdout.take().unwrap()).lines();
    let samples = lines.map(|line| serde_json::from_str(&line.unwrap()).unwrap());
    (top, samples)
}

#[tokio::test]
async fn it_shows_nodes_keys_and_holders_at_a_terminal_until_q() {
    let mut nodes = Nodes::blessed(3).await;
    let client = nodes.client().await;
    let guard = client.acquire("order:7").await.unwrap();
    nodes.pause_job("billing", "day").await;
    nodes[0].kill().unwrap();
    // Narrow, as in a window beside others.
    let line = "stty rows 24 cols 58; \"$REDLOCK\" top; echo \"ended with $?\"";
    let mut top = start(line, &nodes);
    let mut said = screen(&mut top, "order:7");
    top.stdin.take().unwrap().write_all(b"q").unwrap();
    let mut rest = top.stdout.take().unwrap();
    rest.read_to_string(&mut said).unwrap();
    top.wait().unwrap();
    for words in [
        "2 of 3 nodes vote",
        "order:7",
        "keys",
        "nodes",
        "clock",
        "billing/day",
        "paused",
        "ended with 0",
    ] {
        assert!(said.contains(words), "{words:?} is not in {said}");
    }
    let holder = format!(":{}", std::process::id());
    assert!(said.contains(&holder), "{said}");
    // The terminal is as it was: the screen is left, and the cursor is there.
    assert!(
        said.contains("\x1b[?1049l") && said.contains("\x1b[?25h"),
        "{said}"
    );
    guard.release().await.unwrap();
}

#[tokio::test]
async fn it_shows_a_look_as_soon_as_it_was_taken() {
    let nodes = Nodes::blessed(3).await;
    let client = nodes.client().await;
    let guard = client.acquire("order:7").await.unwrap();
    // The next look is never taken: a test that waited for it would see `timeout` end the command.
    let line = "stty rows 24 cols 80; timeout --foreground 20 \"$REDLOCK\" top --every 1h";
    let said = shown(line, &nodes, "order:7");
    assert!(said.contains("looks at 3 nodes"), "{said}");
    // What was not looked at yet is not said to be missing.
    assert!(
        said.contains("3 of 3 nodes vote") && !said.contains("0 of 3"),
        "{said}"
    );
    guard.release().await.unwrap();
}

#[tokio::test]
async fn jobs_that_cannot_be_looked_for_stay_as_they_were_and_that_is_said() {
    let mut nodes = Nodes::blessed(3).await;
    nodes.pause_job("billing", "day").await;
    let (mut top, mut samples) = samples(&nodes);
    let before = samples.next().unwrap();
    assert_eq!(before["jobs_unknown"], Value::Null, "{before}");
    assert_eq!(before["jobs"][0]["job"], "billing/day", "{before}");
    for node in 0..3 {
        nodes[node].kill().unwrap();
    }
    let mut later = samples.take(200);
    let after = later.find(|sample| {
        let is_gone = sample["jobs"].as_array().unwrap().is_empty();
        is_gone || sample["jobs_unknown"].is_string()
    });
    drop(top.kill());
    drop(top.wait());
    let after = after.unwrap();
    assert_eq!(after["jobs"], before["jobs"], "{after}");
}

#[tokio::test]
async fn it_ends_when_it_is_asked_to_though_its_terminal_is_gone() {
    let nodes = Nodes::blessed(1).await;
    let line = "stty rows 24 cols 80; echo \"pid $$.\"; exec \"$REDLOCK\" top";
    let mut terminal = start(line, &nodes);
    let said = screen(&mut terminal, "1 of 1 nodes vote");
    let (_, pid) = said.split_once("pid ").unwrap();
    let (pid, _) = pid.split_once('.').unwrap();
    let pid = Pid::from_raw(pid.parse().unwrap()).unwrap();
    // It may have ended with its terminal, and its id is not another's for a while.
    terminal.kill().unwrap();
    terminal.wait().unwrap();
    let _: Result<_, _> = kill_process(pid, Signal::TERM);
    eventually("it is over", || test_kill_process(pid).is_err());
}

#[tokio::test]
async fn it_counts_how_often_a_key_changes_hands() {
    let nodes = Nodes::blessed(3).await;
    let (one, other) = (nodes.client().await, nodes.client().await);
    let (mut top, mut samples) = samples(&nodes);
    let mut look = || samples.next().unwrap();
    let mut changes = 0;
    for turn in 0..40 {
        let client = if turn % 2 == 0 { &one } else { &other };
        let guard = client.acquire("order:7").await.unwrap();
        // The next look may have begun before.
        look();
        let sample = look();
        guard.release().await.unwrap();
        assert_eq!(sample["nodes"].as_array().unwrap().len(), 3);
        let Some(key) = sample["keys"].get(0) else {
            continue;
        };
        assert_eq!(key["key"], "order:7");
        changes = key["changed_hands"].as_u64().unwrap();
        if changes >= 3 {
            break;
        }
    }
    drop(top.kill());
    drop(top.wait());
    assert!(changes >= 3, "{changes}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_shows_callers_of_all_processes_in_line() {
    let nodes = Nodes::blessed(3).await;
    let client = nodes.client().await;
    let _guard = client.acquire("order:7").await.unwrap();
    let _waiting = nodes.waits("web-1", "order:7").await;
    let (mut top, samples) = samples(&nodes);
    let line = samples
        .take(200)
        .map(|sample| sample["keys"][0]["line"].clone())
        .find(|line| line["callers"] == 1);
    drop(top.kill());
    drop(top.wait());
    let line = line.expect("it comes to the line");
    assert_eq!(line["clients"][0]["label"], "web-1", "{line}");
    assert!(line["longest_ms"].as_f64() > Some(0.0), "{line}");

    let line = "stty rows 24 cols 80; exec \"$REDLOCK\" top --every 200ms";
    let said = shown(line, &nodes, "web-1");
    assert!(said.contains("caller") && said.contains("client"), "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_shows_when_the_next_tick_of_a_job_is() {
    let nodes = Nodes::blessed(3).await;
    let jobs = SingletonScheduler::standalone(nodes.client().await).namespace("billing");
    let jobs = jobs.build().unwrap();
    let hour = Duration::from_secs(3_600);
    let job = SingletonJob::every("day", hour, async |_run| Ok::<(), BoxError>(()));
    jobs.add(job).await.unwrap();
    jobs.start().await.unwrap();
    let (mut top, samples) = samples(&nodes);
    let next = samples
        .take(200)
        .find_map(|sample| sample["jobs"][0]["next_tick_ms"].as_f64());
    drop(top.kill());
    drop(top.wait());
    let next = Duration::try_from_secs_f64(next.unwrap() / 1_000.0).unwrap();
    assert_eq!(next.as_secs() % hour.as_secs(), 0, "{next:?}");

    // As a user sees it.
    let line = "stty rows 30 cols 80; exec \"$REDLOCK\" top";
    let said = shown(line, &nodes, "billing/day");
    assert!(said.contains("next"), "{said}");
}

#[tokio::test]
async fn it_tells_clocks_that_are_off_quarantines_and_jobs() {
    let mut nodes = Nodes::start_with(3, &ServerOptions::default().own_clock());
    nodes.bless().await;
    nodes.pause_job("billing", "day").await;
    let ahead = Duration::from_millis(600);
    nodes[1].clock().unwrap().advance(ahead).unwrap();
    nodes[2].restart().unwrap();
    let (mut top, samples) = samples(&nodes);
    // The first looks may come before the nodes have said where they stand.
    let sample = samples.take(60).find(|sample| {
        let is_quarantined = sample["nodes"][2]["ready_in_ms"].as_f64() > Some(0.0);
        is_quarantined && sample["jobs"][0]["paused"].is_boolean()
    });
    drop(top.kill());
    drop(top.wait());
    let sample = sample.expect("it looks until it is ended");
    let offs: Vec<_> = (0..3)
        .map(|node| sample["nodes"][node]["clock_ahead_ms"].as_f64().unwrap())
        .collect();
    assert!((400.0..800.0).contains(&offs[1]), "{offs:?}");
    assert!(offs[0].abs() < 200.0 && offs[2].abs() < 200.0, "{offs:?}");
    let job = &sample["jobs"][0];
    assert_eq!(
        (&job["job"], &job["paused"]),
        (&"billing/day".into(), &true.into())
    );
}

#[tokio::test]
async fn without_a_terminal_it_says_what_to_use_instead() {
    let nodes = Nodes::blessed(1).await;
    let done = run(&mut nodes.command(&["top"]));
    done.complained(2, "redlock ls --json");
}
