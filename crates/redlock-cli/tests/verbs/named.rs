//! Nodes whose server Sentinels or a Cluster name: each verb shows the server of the moment, and `roll` restarts that.

use std::{fs, process::Command};

use redlock_core::{NodeConfig, Redlock};
use redlock_sandbox::{ClusterSet, ServerBinary};
use redlock_tests::WatchedNodes;
use serde_json::Value;

use crate::kit::{Done, Examined, MAX_TTL, Running, UNHURRIED, eventually, redlock, run};

/// The command, ready to be run on nodes that these URLs mean.
fn command(urls: &str, arguments: &[&str]) -> Command {
    let mut command = redlock(arguments);
    let max_ttl = format!("{}ms", MAX_TTL.as_millis());
    command
        .env("REDLOCK_NODES", urls)
        .env("REDLOCK_NODE_TIMEOUT", UNHURRIED)
        .env("COLUMNS", "120")
        .env("REDLOCK_TTL", &max_ttl)
        .env("REDLOCK_MAX_TTL", max_ttl);
    command
}

fn said(urls: &str, arguments: &[&str]) -> Done {
    run(&mut command(urls, arguments))
}

async fn bless(urls: &str) {
    let builder = Redlock::builder().nodes(NodeConfig::list(urls));
    let client = builder.ttl(MAX_TTL).max_ttl(MAX_TTL).build().await.unwrap();
    client.dangerous_bless().await;
    client.close().await;
}

fn address(port: u16) -> String {
    format!("127.0.0.1:{port}")
}

fn doctor(urls: &str) -> Examined {
    Examined::of(&said(urls, &["doctor", "--json"]))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_verb_shows_the_server_that_sentinels_name_and_roll_restarts_that() {
    let mut set = WatchedNodes::start(3);
    let urls = set.urls().join(",");
    bless(&urls).await;
    let name = format!("lock-0@{}", set.sentinels[0].address());
    let first = address(set.masters[0].port());
    let shown = format!("{name} ({first})");
    let done = said(&urls, &["ready", "1"]);
    assert_eq!(done.out.trim(), format!("{shown} votes"), "{done:?}");
    let done = said(&urls, &["status", "order:7"]);
    assert!(done.out.contains(&format!("{shown} free")), "{done:?}");
    let done = said(&urls, &["doctor"]);
    assert!(done.out.contains(&format!("{shown} votes: ")), "{done:?}");
    let counts = "its mark counts 3 Sentinels: 3 answer, and 3 of these are on its roll";
    assert!(done.out.contains(&format!("{name} {counts}")), "{done:?}");
    for arguments in [&["--json", "ready", "1"][..], &["--json", "status", "a"]] {
        let done = said(&urls, arguments);
        let json: Value = serde_json::from_str(&done.out).unwrap();
        let node = json["nodes"].get(0).unwrap_or(&json);
        assert_eq!(
            (&node["node"], &node["server"]),
            (&name.clone().into(), &first.clone().into())
        );
    }
    let mut top = Running::start(&mut command(&urls, &["--json", "top"]));
    top.await_line(&format!("\"server\":\"{first}\""));
    top.interrupt();

    let mut watch = Running::start(&mut command(&urls, &["watch"]));
    watch.await_line(&format!("{shown} votes"));
    let second = set.promote_another(0, set.masters[0].port()).await;
    let promoted = format!("{name} ({})", address(second));
    watch.await_line(&promoted);

    // No vote, and not because of a roll: nothing is run.
    let done = said(&urls, &["roll", "--", "echo", "{host}"]);
    assert_eq!((done.code, &*done.out), (3, ""), "{done:?}");
    assert!(
        done.err
            .contains("it has no vote, and not because of this roll"),
        "{done:?}"
    );
    let done = said(&urls, &["ready", "1", "--wait", "30s"]);
    assert_eq!(done.out.trim(), format!("{promoted} votes"), "{done:?}");

    // The second node's command fails, which ends it.
    let folder = tempfile::tempdir().unwrap();
    let asked = folder.path().join("asked");
    let script = "[ -e \"$ASKED.done\" ] && exit 1; echo \"$1 $2 $REDLOCK_ROLL_NODE $REDLOCK_ROLL_SERVER\" >\"$ASKED.new\"; \
        mv \"$ASKED.new\" \"$ASKED\"; while [ -e \"$ASKED\" ]; do sleep 0.05; done; : >\"$ASKED.done\"";
    let mut roll = command(
        &urls,
        &["roll", "--", "sh", "-c", script, "sh", "{host}", "{port}"],
    );
    let mut roll = Running::start(roll.env("ASKED", &asked));
    eventually("it is asked for", || asked.exists());
    let words = fs::read_to_string(&asked).unwrap();
    let server = address(second);
    assert_eq!(words.trim(), format!("127.0.0.1 {second} {name} {server}"));
    set.at_mut(second).restart().unwrap();
    fs::remove_file(&asked).unwrap();
    // Its replica may have taken its place.
    let line = roll.await_line("votes again");
    assert!(line.contains(&name), "{line}");
    assert_eq!(roll.child.wait().unwrap().code(), Some(2));
    drop(watch);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_doctor_says_which_sentinels_count() {
    let mut set = WatchedNodes::start(3);
    let urls = set.urls().join(",");
    bless(&urls).await;
    let examined = doctor(&urls);
    let informants = &examined.json["nodes"][1]["informants"];
    let all = serde_json::json!({"counted": 3, "asked": 3, "answering": 3, "on_roll": 3});
    assert_eq!(*informants, all, "{examined:?}");
    let backlog = ["CONFIG", "SET", "repl-backlog-ttl", "3600"];
    set.masters[0].command(&backlog).unwrap();
    doctor(&urls).one(
        "replicas",
        "warning lock-0 … 1 h after … repl-backlog-ttl 0",
    );

    let name = set.sentinels[0].address();
    let one = doctor(&format!("redis+sentinel://{name}/lock-1"));
    one.one("reachable", "the URL names 1, and must name all 3");

    // The mark was written when there were five.
    let mark = "{redlock}:mark";
    let text = set.masters[1].command(&["GET", mark]).unwrap();
    let text = text.as_text().unwrap().replace(" 3:", " 5:");
    let roll = text.rsplit(' ').next().unwrap().to_owned();
    let of_three = roll.replacen("5:", "3:", 1);
    set.masters[1].command(&["SET", mark, &text]).unwrap();
    let examined = doctor(&urls);
    examined.one(
        "roll",
        "warning lock-1 … counts 5 Sentinels, and 3 run … new namespace",
    );
    let text = text.replace(&roll, &of_three);
    set.masters[1].command(&["SET", mark, &text]).unwrap();

    let third = set.sentinels[2].address().to_string();
    set.sentinels[2].kill().unwrap();
    let examined = doctor(&urls);
    let found = examined.found("informants");
    assert_eq!(found.len(), 3, "{found:?}");
    for line in found {
        assert!(
            line.contains("3 Sentinels, and 2 answer") && line.contains(&third),
            "{line}"
        );
    }
    assert_eq!(examined.code, 0, "{examined:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_with_more_votes_than_masters_is_told_how_many_it_may_have() {
    let binary = ServerBinary::find().expect("this test needs a server");
    let cluster = ClusterSet::start(&binary, 3).expect("this test needs servers");
    let five = format!("{}?votes=5", cluster.url());
    bless(&five).await;
    let examined = doctor(&five);
    examined.one("votes", "failure all … votes=5 … 3 masters … ?votes=3");

    let three = format!("{}?votes=3", cluster.url());
    bless(&three).await;
    let examined = doctor(&three);
    assert!(examined.found("votes").is_empty(), "{examined:?}");
    let counted = &examined.json["nodes"][2]["informants"]["counted"];
    assert_eq!(*counted, 6, "its masters and its replicas: {examined:?}");
    let vote = &NodeConfig::from(&*three).votes()[0];
    let keys = vote.node_keys(&Redlock::builder().node_keys().unwrap());
    let owner = address(cluster.owner(&keys.pattern()).unwrap());
    let server = &examined.json["nodes"][0]["server"];
    assert_eq!(*server, owner, "{examined:?}");
    let script = ["roll", "--", "sh", "-c", "echo at {host}:{port}; exit 1"];
    let done = said(&three, &script);
    assert_eq!(done.out.trim(), format!("at {owner}"), "{done:?}");
    assert_eq!(done.code, 2, "{done:?}");

    let failed = cluster.replicas[0].address().to_string();
    let mut cluster = cluster;
    cluster.replicas[0].kill().unwrap();
    eventually("it is found to have failed", || {
        let nodes = cluster.masters[1].command(&["CLUSTER", "NODES"]).unwrap();
        let nodes = nodes.as_text().unwrap();
        let mut lines = nodes.lines().filter(|line| line.contains(&failed));
        lines.any(|line| line.contains(" slave,fail "))
    });
    let examined = doctor(&three);
    let found = examined.found("forgotten");
    assert!(
        found.len() == 3 && found[0].contains("CLUSTER FORGET"),
        "{found:?}"
    );
}

#[test]
fn a_file_of_certificates_that_is_not_there_is_named() {
    let mut command = command("rediss://127.0.0.1:1", &["doctor"]);
    let done = run(command.env("SSL_CERT_FILE", "/no/such/file"));
    let text = done.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        text.contains("SSL_CERT_FILE names no file of certificates"),
        "{text}"
    );
    assert!(text.contains("'/no/such/file'"), "{text}");
    assert!(
        text.contains("-> let it name one in PEM form, or unset it"),
        "{text}"
    );
}

#[test]
fn an_unknown_place_in_the_command_of_a_roll_is_refused_before_a_node_is_asked() {
    let done = said(
        "redis://127.0.0.1:1",
        &["roll", "--", "ssh", "{hots}", "reboot"],
    )
    .ended(2);
    let text = done.err.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("{hots} stands for nothing"), "{text}");
    assert!(text.contains("{node}, {host}, {port}"), "{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_longest_lease_is_read_from_the_marks_of_a_clusters_votes() {
    let binary = ServerBinary::find().expect("this test needs a server");
    let cluster = ClusterSet::start(&binary, 3).expect("this test needs servers");
    let three = format!("{}?votes=3", cluster.url());
    bless(&three).await;
    // The default is another: with it, no node would vote.
    let mut ready = command(&three, &["ready", "1", "--wait", "5s"]);
    run(ready
        .env_remove("REDLOCK_MAX_TTL")
        .env_remove("REDLOCK_TTL"))
    .ended(0);
}
