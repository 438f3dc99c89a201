//! `status`, `ls` and `release`, on keys that are held by others.

use std::{
    io::{Read, Write},
    net::TcpListener,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use redlock_core::{AcquireOptions, Redlock};
use serde_json::Value;
use tokio::{task::JoinSet, time::sleep};

use crate::kit::{MAX_TTL, Nodes, eventually, run};

const KEY: &str = "{redlock}:lock:order:7";

fn json(nodes: &Nodes, arguments: &[&str]) -> (i32, Value) {
    let done = nodes.run(&[arguments, &["--json"]].concat());
    let json = serde_json::from_str(&done.out);
    (
        done.code,
        json.unwrap_or_else(|error| panic!("{error}: {done:?}")),
    )
}

#[tokio::test]
async fn a_key_is_held_or_free_or_nobody_can_say() {
    let mut nodes = Nodes::blessed(3).await;
    let (code, status) = json(&nodes, &["status", "order:7"]);
    assert_eq!((code, status["state"].as_str()), (1, Some("free")));

    let client = nodes.client().await;
    let before = now().floor();
    let guard = client.acquire("order:7").await.unwrap();
    guard.extend().await.unwrap();
    let (code, status) = json(&nodes, &["status", "order:7"]);
    assert_eq!((code, &status["state"]), (0, &"held".into()), "{status}");
    assert!(status["votes"].as_u64() >= Some(2));
    assert!(status["remaining_ms"].as_f64().unwrap() > 0.0);
    let holder = format!(":{}", std::process::id());
    assert!(
        status["holder"].as_str().unwrap().ends_with(&holder),
        "{status:#}"
    );
    let since = status["held_since_ms"].as_f64().unwrap();
    assert!((before..=now()).contains(&since), "{status:#}");
    let secret = nodes.ask(0, &["GET", KEY]);
    let secret = secret.split(' ').next().unwrap();
    let text = nodes.run(&["status", "order:7"]).out;
    assert!(
        text.starts_with("held by ") && text.contains(&holder) && text.contains(" since "),
        "{text}"
    );
    assert!(secret.len() == 32 && !text.contains(secret) && !status.to_string().contains(secret));
    guard.release().await.unwrap();
    client.close().await;

    // One node is down, and one may have forgotten: of the third alone nothing follows.
    nodes[0].kill().unwrap();
    nodes[1].restart().unwrap();
    let (code, status) = json(&nodes, &["status", "order:7"]);
    assert_eq!((code, &status["state"]), (3, &"unknown".into()), "{status}");
    for node in 0..2 {
        assert_eq!(status["nodes"][node]["state"], "unknown", "{status}");
    }
    let why = status["nodes"][1]["why"].as_str().unwrap();
    assert!(why.contains("forgotten"), "{status}");
    let text = nodes.run(&["status", "order:7"]).out;
    let words = "unknown: no node that has answered has it, and fewer than 2 of these vote";
    assert!(text.starts_with(words), "{text}");
}

#[tokio::test]
async fn a_name_that_would_change_the_text_beside_it_is_printed_escaped() {
    // What follows the character is shown from right to left.
    const NAME: &str = "order\u{202e}7";
    const SHOWN: &str = "order\\u{202e}7";
    let nodes = Nodes::blessed(3).await;
    let client = nodes.client().await;
    let guard = client.acquire(NAME).await.unwrap();
    let listed = nodes.run(&["ls"]);
    assert!(listed.out.contains(SHOWN), "{listed:?}");
    for arguments in [
        &["ls"][..],
        &["status", NAME],
        &["release", NAME],
        &["release", NAME, "--force"],
        &["run", "--no-wait", NAME, "--", "true"],
        &["jobs", "pause", &format!("redlock/{NAME}")],
        &["jobs", "forget", &format!("redlock/{NAME}"), "--yes"],
    ] {
        let done = nodes.run(arguments);
        let said = format!("{}{}", done.out, done.err);
        assert!(!said.contains('\u{202e}'), "{arguments:?}: {done:?}");
    }
    drop(guard);
    client.close().await;
}

/// Waits until a program that asks again and again sees so many callers in line, and returns what it saw then.
async fn with_line(nodes: &Nodes, arguments: &[&str], count: usize) -> Value {
    for _ in 0..200 {
        let (_, said) = json(nodes, arguments);
        let key = if said.is_array() { &said[0] } else { &said };
        if key["line"]["callers"] == count {
            return key["line"].clone();
        }
        sleep(Duration::from_millis(50)).await;
    }
    panic!("no {count} callers were in line");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn callers_of_other_processes_in_line_are_named_in_their_order() {
    let mut nodes = Nodes::blessed(3).await;
    let client = nodes.client().await;
    let guard = client.acquire("order:7").await.unwrap();
    let none = with_line(&nodes, &["status", "order:7"], 0).await;
    assert_eq!(none["longest_ms"], Value::Null);
    let text = nodes.run(&["status", "order:7"]).out;
    assert!(text.contains("no caller waits in line"), "{text}");

    let _first = nodes.waits("web-1", "order:7").await;
    with_line(&nodes, &["status", "order:7"], 1).await;
    // Each client estimates the nodes' time by answers that may have been slow.
    sleep(Duration::from_secs(1)).await;
    let second = nodes.waits("web-2", "order:7").await;
    let line = with_line(&nodes, &["status", "order:7"], 2).await;
    let labels: Vec<_> = (0..2)
        .map(|at| line["clients"][at]["label"].as_str().unwrap())
        .collect();
    assert_eq!(labels, ["web-1", "web-2"], "{line}");
    let waits = |at: usize| line["clients"][at]["waits_ms"].as_f64().unwrap();
    assert!(waits(0) > waits(1) + 500.0, "{line}");
    assert_eq!(line["longest_ms"], waits(0), "{line}");
    for at in 0..2 {
        // A client hears of its turn under the same number.
        let client = line["clients"][at]["client"].as_str().unwrap();
        let channel = format!("{{redlock}}:wake:{client}");
        let hears = nodes[0].command(&["PUBSUB", "NUMSUB", &channel]).unwrap();
        assert_eq!(hears.as_array().unwrap()[1].as_integer(), Some(1), "{line}");
    }
    let text = nodes.run(&["status", "order:7"]).out;
    assert!(
        text.contains("2 callers wait in line, the first for "),
        "{text}"
    );
    assert!(text.find("web-1") < text.find("web-2"), "{text}");
    let secrets = nodes.ask(0, &["GET", "{redlock}:line:{redlock}:lock:order:7"]);
    let secret = secrets.split(' ').nth(6).unwrap();
    assert!(secret.len() == 32 && !format!("{text}{line}").contains(secret));
    with_line(&nodes, &["ls"], 2).await;

    // A line lasts for a while after the last caller has asked, but a caller that gives up leaves it.
    drop(second);
    with_line(&nodes, &["status", "order:7"], 1).await;
    // A minority has no say, and does not need to be there.
    nodes[0].kill().unwrap();
    with_line(&nodes, &["status", "order:7"], 1).await;
    nodes[1].kill().unwrap();
    let (_, status) = json(&nodes, &["status", "order:7"]);
    assert_eq!(status["line"], Value::Null, "{status}");
    drop(guard);
}

#[tokio::test]
async fn a_caller_that_a_minority_names_is_not_in_line() {
    let nodes = Nodes::blessed(3).await;
    let owner = "0f".repeat(16);
    let until = now() + 60_000.0;
    for (node, callers) in [(0, 0), (1, 1)] {
        let entry = format!("{until:.0} 1780000000000000 000000000000002a 1000 1 7 {owner}\n");
        let line = "{redlock}:line:{redlock}:lock:order:7";
        nodes.ask(node, &["SET", line, &entry, "PX", "60000"]);
        let (_, status) = json(&nodes, &["status", "order:7"]);
        assert_eq!(status["line"]["callers"], callers, "{status}");
    }
    let text = nodes.run(&["status", "order:7"]).out;
    let caller = "a caller without a label for ";
    assert!(
        text.contains(caller) && text.contains("000000000000002a"),
        "{text}"
    );
    assert!(!text.contains(&owner), "{text}");
}

/// A client gives a key back to a node that has lost it, before the node votes again.
#[tokio::test]
async fn a_node_that_has_a_key_and_does_not_vote_is_no_vote_and_says_why() {
    let mut nodes = Nodes::blessed(3).await;
    let client = nodes.client().await;
    let guard = client.acquire("order:7").await.unwrap();
    guard.extend().await.unwrap();
    nodes[0].restart().unwrap();
    let status = loop {
        guard.extend().await.unwrap();
        let (_, status) = json(&nodes, &["status", "order:7"]);
        if status["nodes"][0]["state"] == "held" {
            break status;
        }
    };
    let node = &status["nodes"][0];
    assert_eq!(node["votes"], false, "it was in quarantine: {status:#}");
    let why = node["why"].as_str().unwrap_or_default();
    assert!(why.contains("may have forgotten"), "{status:#}");
    assert_eq!(
        (&status["votes"], &status["nodes_with_key"]),
        (&2.into(), &3.into())
    );
    assert_eq!(status["nodes"][1]["why"], Value::Null);
}

/// In milliseconds since 1970.
#[expect(clippy::disallowed_methods, reason = "holders tell this clock's time")]
fn now() -> f64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    since.as_secs_f64() * 1_000.0
}

/// The doctor says the same.
#[tokio::test]
async fn a_port_of_another_service_is_told_in_words() {
    let nodes = Nodes::blessed(3).await;
    let http = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = http.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in http.incoming() {
            let answer = b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n";
            drop(stream.and_then(|mut stream| {
                // What was not read would reset the connection.
                let _ = stream.read(&mut [0; 4_096])?;
                stream.write_all(answer)
            }));
        }
    });
    let urls = vec![nodes[0].url(), nodes[1].url(), format!("redis://{address}")];
    let nodes = nodes.at(urls);
    for arguments in [&["status", "order:7"][..], &["ls"]] {
        let done = nodes.run(arguments);
        let words = "an HTTP server answers; give the port of a Redis server";
        let told = done
            .out
            .replace('\n', " ")
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        assert!(told.contains(words), "{done:?}");
    }
}

#[tokio::test]
async fn since_when_a_key_is_held_is_not_told_of_others() {
    let nodes = Nodes::blessed(3).await;
    // A random value, one of version 7 with a time to come, and another library's.
    for owner in [
        "0f".repeat(16),
        format!("ffffffffffff7{}", "a".repeat(19)),
        "01a205b3-d07b-7fff-bfff-ffffffffffff".to_owned(),
    ] {
        for node in 0..3 {
            nodes.ask(node, &["SET", KEY, &owner, "PX", "60000"]);
        }
        let (code, status) = json(&nodes, &["status", "order:7"]);
        assert_eq!((code, &status["held_since_ms"]), (0, &Value::Null));
        let text = nodes.run(&["status", "order:7"]).out;
        assert!(!text.contains("since"), "{text}");
    }
}

#[tokio::test]
async fn votes_that_are_split_are_no_majority() {
    let nodes = Nodes::blessed(3).await;
    for node in 0..3 {
        let owner = format!("{node}").repeat(32);
        nodes.ask(node, &["SET", KEY, &owner, "PX", "60000"]);
    }
    let (code, status) = json(&nodes, &["status", "order:7"]);
    assert_eq!((code, status["votes"].as_u64()), (3, Some(1)), "{status:#}");
}

#[tokio::test]
async fn a_key_of_the_nodes_own_is_refused() {
    let nodes = Nodes::blessed(1).await;
    for verb in ["status", "release"] {
        let done = nodes.run(&[verb, "{redlock:verbatim}:mark", "--verbatim-keys"]);
        done.complained(2, "nodes' own keys");
        // Nor one of those that clients with a namespace need on the same nodes.
        nodes
            .run(&[verb, "{redlock}:counters", "--verbatim-keys"])
            .ended(2);
    }
    let (_, listed) = json(&nodes, &["ls", "--verbatim-keys"]);
    assert!(!listed.to_string().contains("mark"), "{listed}");
    assert_eq!(nodes.run(&["status", ""]).code, 2);
}

#[tokio::test]
async fn keys_are_listed_by_their_beginning_with_their_holders() {
    let mut nodes = Nodes::blessed(3).await;
    let client = nodes.client().await;
    let mut guards = Vec::new();
    for key in ["order:1", "order:2", "report"] {
        let guard = client.acquire(key).await.unwrap();
        guard.extend().await.unwrap();
        guards.push(guard);
    }
    let long = client.acquire("x".repeat(200)).await.unwrap();
    let (code, all) = json(&nodes, &["ls"]);
    let keys: Vec<_> = all
        .as_array()
        .unwrap()
        .iter()
        .map(|line| line["key"].as_str().unwrap())
        .collect();
    assert_eq!(
        (code, &keys[..3]),
        (0, &["order:1", "order:2", "report"][..])
    );
    assert!(keys[3].starts_with("sha256:"), "{keys:?}");
    // A name that is shown can be given.
    let (code, held) = json(&nodes, &["status", keys[3]]);
    assert_eq!((code, &held["state"]), (0, &"held".into()), "{held}");
    let refused = nodes.run(&["release", keys[3]]);
    assert!(refused.err.contains("held by"), "{refused:?}");
    nodes.run(&["release", keys[3], "--force"]).ended(0);
    drop(long);
    nodes.ask(
        0,
        &["SET", "{redlock}:lock:\x1b[31m\nforged", "x", "PX", "60000"],
    );
    let done = nodes.run(&["ls"]);
    assert!(done.out.contains(r"\u{1b}[31m\nforged"), "{done:?}");
    nodes[2].kill().unwrap();
    let done = nodes.run(&["ls", "order:"]).ended(0);
    assert!(
        done.out.contains("order:1") && !done.out.contains("report"),
        "{done:?}"
    );
    assert!(
        done.out.contains("FAIL") && done.out.contains("refused"),
        "{done:?}"
    );
    nodes[1].kill().unwrap();
    assert_eq!(nodes.run(&["ls"]).code, 3);
}

#[tokio::test]
async fn a_scan_without_its_right_is_an_error_that_names_the_right_to_add() {
    let nodes = Nodes::blessed(1).await;
    let url = nodes.with_least_rights(0);
    let nodes = nodes.at(vec![url]);
    for verb in ["ls", "jobs"] {
        let done = nodes.run(&[verb]).ended(2);
        let out = done.out.split_whitespace().collect::<Vec<_>>().join(" ");
        let words =
            format!("{verb} takes +scan beside what a client needs: add +scan to its rights");
        assert!(out.contains(&words), "{done:?}");
    }
    assert_eq!(
        nodes.run(&["status", "a"]).code,
        1,
        "what a client may do is enough"
    );
}

#[tokio::test]
async fn a_release_says_what_it_breaks_and_deletes_only_what_it_has_read() {
    let nodes = Nodes::blessed(3).await;
    let client = nodes.client().await;
    assert_eq!(nodes.run(&["release", "order:7", "--force"]).code, 1);
    let guard = client.acquire("order:7").await.unwrap();
    guard.extend().await.unwrap();

    let done = nodes.run(&["release", "order:7"]).ended(2);
    assert!(
        done.err.contains("on 3 of 3 nodes") && done.err.contains("is not told"),
        "{done:?}"
    );
    assert!(guard.lease().is_held() && nodes.keys().iter().any(|key| key.contains(KEY)));

    // A program learns the same.
    let (code, said) = json(&nodes, &["release", "order:7"]);
    let holder = &said["holders"][0];
    assert_eq!(
        (&said["released"], &holder["nodes"]),
        (&0.into(), &3.into())
    );
    let me = format!(":{}", std::process::id());
    assert!(holder["holder"].as_str().unwrap().ends_with(&me), "{said}");
    assert!(holder["remaining_ms"].as_f64().unwrap() > 0.0, "{said}");
    assert!(code == 2 && guard.lease().is_held());

    let done = nodes.run(&["release", "order:7", "--force"]).ended(0);
    assert_eq!(done.out.matches("released").count(), 3, "{done:?}");
    assert!(!nodes.keys().iter().any(|key| key.contains(KEY)));
    assert!(
        guard.extend().await.is_err(),
        "the holder learns of it with its next renewal"
    );
    let other = nodes.client().await;
    drop(other.try_acquire("order:7").await.unwrap());

    // What holds all locks up for ever is a value that is no owner's.
    nodes.ask(1, &["LPUSH", "{redlock}:lock:list", "x"]);
    let (code, said) = json(&nodes, &["release", "list", "--force"]);
    assert_eq!((code, &said["released"]), (0, &1.into()), "{said}");
    assert_eq!(said["holders"][0]["remaining_ms"], Value::Null, "{said}");
    assert!(!nodes.keys().iter().any(|key| key.contains("list")));
}

#[tokio::test]
async fn a_listing_into_a_closed_pipe_is_no_panic() {
    let nodes = Nodes::blessed(1).await;
    for number in 0..500 {
        let key = format!("{{redlock}}:lock:{number}");
        nodes.ask(0, &["SET", &key, "x", "PX", "60000"]);
    }
    let mut shell = std::process::Command::new("sh");
    shell
        .arg("-c")
        .arg("\"$0\" ls | head -n 1")
        .arg(env!("CARGO_BIN_EXE_redlock"));
    let done = run(shell.env("REDLOCK_NODES", nodes[0].url()));
    assert_eq!((done.out.lines().count(), done.err.as_str()), (1, ""));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shared_key_names_all_that_share_it_and_does_not_deny_the_caller_that_waits_for_it() {
    let nodes = Nodes::blessed(3).await;
    let mut sharing = Vec::new();
    for label in ["web-1", "web-2"] {
        let builder = Redlock::builder().nodes(nodes.urls()).label(label);
        let client = builder.ttl(MAX_TTL).max_ttl(MAX_TTL).build().await.unwrap();
        let shared = AcquireOptions::new().shared();
        let guard = client.acquire_with("order:7", shared).await.unwrap();
        guard.extend().await.unwrap();
        sharing.push(guard);
    }
    let both = "2 that share it (web-1, web-2)";
    let (code, status) = json(&nodes, &["status", "order:7"]);
    assert_eq!((code, &status["state"]), (0, &"held".into()), "{status}");
    assert_eq!(status["holder"], both, "{status}");
    let (_, listed) = json(&nodes, &["ls"]);
    assert_eq!(listed[0]["holder"], both, "{listed}");

    let alone = nodes.client().await;
    let mut waits = JoinSet::new();
    waits.spawn(async move { alone.acquire("order:7").await });
    let wished = "2 that share it (web-1, web-2), and a caller waits to hold it exclusively";
    eventually("a writer waits", || {
        let (_, status) = json(&nodes, &["status", "order:7"]);
        status["holder"] == wished && status["exclusive_awaited"] == true
    });
    let looks = || nodes.run(&["status", "order:7"]).out;
    eventually("the text says so", || {
        looks().contains("a caller waits to hold it exclusively, and is not in line")
    });
    let text = looks();
    assert!(!text.contains("no caller waits"), "{text}");
    let values = ["shared\\n", "-----"].map(|part| text.contains(part));
    assert_eq!(values, [false, false], "{text}");
    waits.shutdown().await;

    let released = nodes.run(&["release", "order:7", "--force"]).ended(0);
    let told = released
        .err
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    assert!(told.contains("held by 2 that share it"), "{released:?}");
}

#[tokio::test]
async fn a_list_of_nothing_says_whether_the_nodes_know_the_namespace() {
    let nodes = Nodes::blessed(3).await;
    let done = nodes.run(&["ls", "--namespace", "bilingg"]);
    assert_eq!((done.code, &*done.out), (0, ""), "{done:?}");
    let words = "do not know the namespace bilingg: they know redlock";
    assert!(done.err.contains(words), "{done:?}");
    let done = nodes.run(&["ls", "order:"]);
    assert!(done.err.contains("no such key is held"), "{done:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_status_of_a_name_with_slots_says_which_are_taken() {
    let nodes = Nodes::blessed(3).await;
    let builder = Redlock::builder().nodes(nodes.urls()).label("web-7");
    let client = builder.ttl(MAX_TTL).max_ttl(MAX_TTL).build().await.unwrap();
    let slots = client.slots("export", 3).unwrap();
    let guard = slots.acquire().await.unwrap();
    guard.guard().extend().await.unwrap();
    let taken = guard.slot();

    let done = nodes.run(&["status", "export"]).ended(0);
    assert!(done.out.starts_with("1 of 3 slots are held\n"), "{done:?}");
    for slot in 0..3 {
        let words = match slot == taken {
            true => format!("slot {slot} held by web-7"),
            false => format!("slot {slot} free"),
        };
        assert!(done.out.contains(&words), "{words}: {done:?}");
    }
    let (_, status) = json(&nodes, &["status", "export"]);
    assert_eq!(status["state"], "held", "{status}");
    assert_eq!(status["slots"][taken]["holder"], "web-7", "{status}");
    assert_eq!(
        status["slots"][(taken + 1) % 3]["state"],
        "free",
        "{status}"
    );

    guard.release().await.unwrap();
    nodes.run(&["status", "export"]).ended(1);
}
