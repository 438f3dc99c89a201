use std::{
    thread,
    time::{Duration, Instant},
};

use redlock_core::node::RedisNode;
use redlock_sandbox::ServerOptions;

use crate::kit::{Examined, Nodes, Relay, run};

/// Gives the first node a user with these rights, and returns the nodes as reached by it.
async fn with_user(rights: &str) -> Nodes {
    let nodes = Nodes::blessed(3).await;
    let mut urls = nodes.urls();
    urls[0] = nodes.with_user(0, rights);
    nodes.at(urls)
}

/// The rights with which callers wait in line.
fn lines() -> String {
    format!("&{{redlock}}:wake:* {}", RedisNode::RIGHTS_FOR_LINES)
}

#[tokio::test]
async fn the_line_that_gives_a_user_its_missing_rights_does_give_them() {
    let lacking = RedisNode::RIGHTS
        .replace(" +pexpire", "")
        .replace(" +zrange", "");
    let nodes = with_user(&format!("~{{redlock}}:* {lacking}")).await;
    let examined = nodes.doctor(&[]);
    examined.one("rights", "failure … its user lock lacks rights");
    assert_eq!(examined.code, 2);
    let found = examined.found("rights");
    let (_, line) = found[0].split_once(" -> ").unwrap();
    assert_eq!(line, "ACL SETUSER lock ~{redlock}:* +pexpire +zrange");
    nodes.ask(0, &line.split(' ').collect::<Vec<_>>());
    let examined = nodes.doctor(&[]);
    assert_eq!(
        (examined.code, examined.found("rights").len()),
        (0, 0),
        "{examined:?}"
    );
}

/// How one right is tried must not rest on another one.
#[tokio::test]
async fn rights_that_are_missing_together_are_named_together() {
    let nodes = Nodes::blessed(3).await;
    // Without these the client cannot look at a node, and says so itself.
    let least = ["+info", "+eval"];
    let all = RedisNode::RIGHTS.split_whitespace();
    let all: Vec<&str> = all.filter(|right| !least.contains(right)).collect();
    for missing in [&["+del", "+zadd"][..], &["+set", "+zadd"], &all] {
        let has = RedisNode::RIGHTS.split_whitespace();
        let has: Vec<&str> = has.filter(|right| !missing.contains(right)).collect();
        let mut urls = nodes.urls();
        urls[0] = nodes.with_user(0, &format!("~{{redlock}}:* {}", has.join(" ")));
        let mut command = nodes.command(&["doctor", "--json"]);
        let done = run(command.env("REDLOCK_NODES", urls.join(",")));
        let line = format!("-> ACL SETUSER lock ~{{redlock}}:* {}", missing.join(" "));
        Examined::of(&done).one("rights", &line);
    }
}

/// A doctor whose connection dies between two commands can take nothing away any more.
#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "the patience of a test")]
async fn at_no_moment_has_a_scratch_key_no_end() {
    let nodes = Nodes::blessed(3).await;
    // The least time for which each key is there.
    let slow = Relay::delaying(nodes[0].address(), Duration::from_millis(100));
    let mut urls = nodes.urls();
    urls[0] = slow.url();
    let nodes = nodes.at(urls);
    let mut command = nodes.command(&["doctor", "--json"]);
    let doctor = thread::spawn(move || command.output().unwrap());
    let endless = "for _, key in ipairs(redis.call('KEYS', '*doctor*')) do \
                   if redis.call('PTTL', key) == -1 then return key end end return ''";
    let begun = Instant::now();
    while !doctor.is_finished() {
        assert_eq!(nodes.ask(0, &["EVAL", endless, "0"]), "");
        assert!(begun.elapsed() < Duration::from_secs(60));
        thread::sleep(Duration::from_millis(5));
    }
    let examined = doctor.join().unwrap();
    assert!(examined.status.success(), "{examined:?}");
}

#[tokio::test]
async fn a_user_without_the_keys_of_the_namespace_is_given_them() {
    let nodes = with_user(&format!("~{{other}}:* {}", RedisNode::RIGHTS)).await;
    let examined = nodes.doctor(&[]);
    let found = examined.found("rights");
    let (_, line) = found[0].split_once(" -> ").unwrap();
    nodes.ask(0, &line.split(' ').collect::<Vec<_>>());
    assert_eq!(nodes.doctor(&[]).code, 0, "{line}");
}

#[tokio::test]
async fn the_rights_of_a_client_are_enough_for_the_doctor() {
    let nodes = with_user(&format!("~{{redlock}}:* {} {}", RedisNode::RIGHTS, lines())).await;
    let before = nodes.keys();
    nodes.doctor(&["--strict"]).ended(0);
    let deep = nodes.doctor(&["--deep"]);
    deep.one("deep", "warning … +scan");
    let keys: Vec<_> = nodes
        .keys()
        .into_iter()
        .filter(|key| !key.ends_with(":counters"))
        .collect();
    let before: Vec<_> = before
        .into_iter()
        .filter(|key| !key.ends_with(":counters"))
        .collect();
    assert_eq!(keys, before);
}

#[tokio::test]
async fn a_lock_that_cannot_be_extended_is_a_failure_though_a_majority_votes() {
    let nodes = Nodes::blessed(3).await;
    let rights = RedisNode::RIGHTS.replace(" +pexpire", "");
    let user = format!("~{{redlock}}:* {rights}");
    let mut urls = nodes.urls();
    for (node, url) in urls.iter_mut().take(2).enumerate() {
        *url = nodes.with_user(node, &user);
    }
    let examined = nodes.at(urls).doctor(&[]);
    assert_eq!(examined.json["votes"], 3, "{examined:?}");
    examined.one(
        "end-to-end",
        "failure all … a scratch lock could not be extended",
    );
    assert_eq!(examined.json["end_to_end"], serde_json::Value::Null);
    assert_eq!(examined.code, 2);
}

#[tokio::test]
async fn writes_that_are_refused_are_told_of_with_what_to_change() {
    let nodes = Nodes::blessed(3).await;
    nodes.set(1, "min-replicas-to-write", "1");
    let examined = nodes.doctor(&[]);
    examined.one(
        "writes",
        "failure … refuses to write without replicas (NOREPLICAS) … min-replicas-to-write to 0",
    );
    assert_eq!(examined.code, 2);
}

#[tokio::test]
async fn rights_without_which_calls_cost_more_are_noted_and_the_line_gives_them() {
    for missing in ["+multi +exec", "+exec", "+client|id +client|kill", "+time"] {
        let lines = lines();
        let mut rights = vec!["~{redlock}:*", &lines];
        rights.extend(RedisNode::RIGHTS.split(' '));
        let more = RedisNode::RIGHTS_FOR_TRANSACTIONS.split(' ');
        rights.extend(more.filter(|right| !missing.contains(right)));
        let nodes = with_user(&rights.join(" ")).await;
        let examined = nodes.doctor(&["--strict"]);
        examined.one("transactions", &format!("note … ACL SETUSER … {missing}"));
        assert_eq!(examined.code, 0, "{examined:?}");
    }
    let all = format!(
        "~{{redlock}}:* {} {}",
        RedisNode::RIGHTS,
        RedisNode::RIGHTS_FOR_TRANSACTIONS
    );
    let examined = with_user(&all).await.doctor(&[]);
    assert!(examined.found("transactions").is_empty(), "{examined:?}");
}

#[tokio::test]
async fn rights_without_which_no_order_is_kept_are_warned_of_and_the_line_gives_them() {
    for (has, missing) in [
        ("", "&{redlock}:wake:* +publish +subscribe"),
        ("+publish +subscribe", "&{redlock}:wake:*"),
        ("&{redlock}:wake:* +publish", "+subscribe"),
        ("&{redlock}:wake:* +subscribe", "+publish"),
    ] {
        let rights = format!("resetchannels ~{{redlock}}:* {} {has}", RedisNode::RIGHTS);
        let nodes = with_user(rights.trim()).await;
        let examined = nodes.doctor(&[]);
        examined.one(
            "lines",
            "warning … only when they ask again, after random pauses",
        );
        assert_eq!(examined.code, 0, "{examined:?}");
        let found = examined.found("lines");
        let (_, line) = found[0].split_once(" -> ").unwrap();
        assert_eq!(line, format!("ACL SETUSER lock {missing}"));
        nodes.ask(0, &line.split(' ').collect::<Vec<_>>());
        let examined = nodes.doctor(&["--strict"]);
        assert!(examined.found("lines").is_empty(), "{examined:?}");
        assert_eq!(examined.code, 0, "{examined:?}");
    }
}

/// Then each hand-over between processes takes as long as without lines.
#[tokio::test]
async fn commands_for_lines_that_a_server_has_renamed_are_warned_of() {
    for name in ["PUBLISH", "SUBSCRIBE"] {
        let renamed = ServerOptions::default().argument("--rename-command");
        let nodes = Nodes::start_with(1, &renamed.argument(name).argument("HIDDEN"));
        nodes.bless().await;
        nodes.doctor(&[]).one("lines", &format!("warning … {name} … only when they ask again, after random pauses … -> remove rename-command"));
    }
}

/// Then the client calls the node by its script, for each lock.
#[tokio::test]
async fn commands_of_transactions_that_a_server_has_renamed_are_noted() {
    for (renamed, named) in [
        (&["MULTI"][..], "MULTI"),
        (&["EXEC"], "EXEC"),
        (&["MULTI", "EXEC"], "MULTI and EXEC"),
    ] {
        let mut options = ServerOptions::default();
        for name in renamed {
            let hidden = format!("HIDDEN-{name}");
            options = options
                .argument("--rename-command")
                .argument(name)
                .argument(hidden);
        }
        let nodes = Nodes::start_with(1, &options);
        nodes.bless().await;
        let found = format!("does not know {named}, without which most calls cost");
        let advice = format!("-> remove rename-command for {named} from its configuration");
        let examined = nodes.doctor(&[]);
        examined.one("transactions", &format!("note … {found} … {advice}"));
        assert!(examined.found("lines").is_empty(), "{examined:?}");
    }
}
