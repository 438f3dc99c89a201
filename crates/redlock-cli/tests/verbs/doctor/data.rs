use redlock_sandbox::{Persistence, ServerOptions};

use crate::kit::{ConfigFile, Nodes, eventually, redlock, run};

const LOCK: &str = "{redlock}:lock:stale";

#[tokio::test]
async fn a_node_that_drops_keys_does_not_vote_and_one_that_did_is_told_of() {
    let nodes = Nodes::blessed(3).await;
    nodes.set(1, "maxmemory-policy", "allkeys-lru");
    nodes.set(1, "maxmemory", "100mb");
    let examined = nodes.doctor(&[]);
    examined.one(
        "eviction",
        "failure … maxmemory-policy allkeys-lru … set it to noeviction",
    );
    assert_eq!(examined.code, 2);

    nodes.ask(1, &["SET", "other", "x"]);
    nodes.set(1, "maxmemory", "1");
    // A write makes room; it cannot have enough.
    drop(nodes[1].command(&["SET", "more", "x"]));
    nodes.set(1, "maxmemory", "0");
    nodes.set(1, "maxmemory-policy", "noeviction");
    let examined = nodes.doctor(&[]);
    examined.one("evicted-keys", "warning … has dropped … noeviction");
}

#[tokio::test]
async fn a_policy_that_drops_keys_is_noted_before_there_is_a_limit() {
    let nodes = Nodes::blessed(3).await;
    for node in 0..3 {
        nodes.set(node, "maxmemory-policy", "volatile-lru");
    }
    let examined = nodes.doctor(&["--strict"]);
    let found = examined.found("eviction");
    assert_eq!(found.len(), 3, "{examined:?}");
    for (node, line) in found.iter().enumerate() {
        let start = format!("note {}", nodes[node].address());
        assert!(line.starts_with(&start), "{line}");
        for words in ["maxmemory-policy volatile-lru", "noeviction"] {
            assert!(line.contains(words), "{line}");
        }
    }
    assert_eq!(examined.code, 0, "{examined:?}");
}

#[tokio::test]
async fn memory_that_is_almost_full_is_a_warning_and_full_memory_refuses_writes() {
    let nodes = Nodes::blessed(3).await;
    for node in 0..3 {
        // Beside this, what connections take is little.
        nodes.ask(node, &["SETRANGE", "much", "20000000", "x"]);
    }
    let info = nodes.ask(0, &["INFO", "memory"]);
    let used = info
        .lines()
        .find_map(|line| line.strip_prefix("used_memory:"))
        .unwrap();
    let used: u64 = used.trim().parse().unwrap();
    for node in 0..3 {
        // Room for the doctor's own connections.
        nodes.set(node, "maxmemory", &(used * 23 / 20).to_string());
    }
    nodes.set(0, "maxmemory", "1");
    let examined = nodes.doctor(&[]);
    examined.one(
        "writes",
        &format!("failure … {} … memory", nodes[0].address()),
    );
    assert!(examined.found("memory").len() >= 2, "{examined:?}");
    assert!(examined.found("memory")[1].contains("raise maxmemory"));
    assert_eq!(examined.code, 2);
}

#[tokio::test]
async fn trust_in_persistence_is_checked_and_what_cannot_be_is_said() {
    let file = ConfigFile::of("[expert]\ndangerous_trust_persistence = true\n");
    let options = ServerOptions::default().persistence(Persistence::AppendOnly);
    let nodes = Nodes::start_with(3, &options);
    nodes.set(0, "appendonly", "no");
    nodes.set(1, "appendfsync", "everysec");
    nodes.set(1, "no-appendfsync-on-rewrite", "yes");
    let mut urls = nodes.urls();
    urls[2] = nodes.with_least_rights(2);
    let nodes = nodes.at(urls);
    let examined = nodes.doctor(&["--config", file.path()]);
    let found = examined.found("persistence");
    let has = |node: usize, words: &str| {
        let address = nodes[node].address().to_string();
        let is_it = |line: &&String| line.contains(&address) && line.contains(words);
        assert!(found.iter().any(|line| is_it(&line)), "{words}: {found:#?}");
    };
    has(0, "appendonly no");
    has(1, "appendfsync everysec");
    has(1, "no-appendfsync-on-rewrite yes");
    has(2, "does not let that be asked");
    let unverified = examined.json["nodes"][2]["unverified"].to_string();
    assert!(unverified.contains("CONFIG GET"), "{unverified}");
}

#[tokio::test]
async fn data_on_disk_that_nobody_trusts_is_noted_and_no_more() {
    let nodes = Nodes::blessed(3).await;
    nodes.set(1, "save", "3600 1");
    let examined = nodes.doctor(&["--strict"]);
    examined.one(
        "persistence",
        &format!(
            "note … {} … (save \"3600 1\") … set appendonly no and save \"\"",
            nodes[1].address()
        ),
    );
    assert_eq!(examined.code, 0, "{examined:?}");

    for node in 0..3 {
        nodes.set(node, "save", "3600 1");
        nodes.set(node, "appendonly", "yes");
    }
    let examined = nodes.doctor(&["--strict"]);
    let found = examined.found("persistence");
    assert_eq!(found.len(), 3, "{found:?}");
    let kept = "(appendonly yes, save \"3600 1\")";
    assert!(found.iter().all(|line| line.contains(kept)), "{found:?}");
    assert_eq!(examined.code, 0, "{examined:?}");

    let file = ConfigFile::of("[expert]\ndangerous_trust_persistence = true\n");
    for node in 0..3 {
        nodes.set(node, "appendfsync", "always");
    }
    let examined = nodes.doctor(&["--config", file.path()]);
    assert!(examined.found("persistence").is_empty(), "{examined:?}");
}

#[tokio::test]
async fn a_disk_that_fails_is_told_of_and_so_are_the_writes_it_costs() {
    let options = ServerOptions::default()
        .argument("--enable-protected-configs")
        .argument("yes");
    let nodes = Nodes::start_with(3, &options);
    nodes.bless().await;
    let folder = tempfile::tempdir().unwrap();
    nodes.set(1, "dir", folder.path().to_str().unwrap());
    drop(folder);
    nodes.set(1, "save", "3600 1000");
    nodes.ask(1, &["BGSAVE"]);
    eventually("a snapshot has failed", || {
        let info = nodes.ask(1, &["INFO", "persistence"]);
        info.contains("rdb_last_bgsave_status:err")
    });
    let examined = nodes.doctor(&[]);
    examined.one("disk", "warning … its last snapshot failed … save \"\"");
    examined.one(
        "writes",
        &format!("failure … {} … disk", nodes[1].address()),
    );
    assert_eq!(examined.code, 2);
}

#[tokio::test]
async fn locks_that_never_end_and_keys_of_others_are_found_by_a_deep_look() {
    let nodes = Nodes::blessed(3).await;
    nodes.ask(0, &["SET", LOCK, "somebody"]);
    nodes.ask(1, &["SET", LOCK, "somebody", "PX", "60000"]);
    nodes.ask(2, &["SET", "session:7", "x"]);
    // Callers of another namespace wait.
    nodes.ask(2, &["SET", "{billing}:line:{billing}:lock:a", "x"]);
    assert_eq!(nodes.doctor(&["--strict"]).code, 0);
    let examined = nodes.doctor(&["--deep"]);
    examined.one(
        "endless-locks",
        &format!("failure … {} … 1 locks that never end", nodes[0].address()),
    );
    examined.one(
        "long-locks",
        &format!("failure … {} … longer than max_ttl", nodes[1].address()),
    );
    examined.one(
        "shared",
        &format!(
            "warning … {} … 1 keys that are no lock's",
            nodes[2].address()
        ),
    );
    assert_eq!(examined.code, 2);
    assert!(
        !examined.json.to_string().contains("stale"),
        "no name is shown"
    );
}

#[tokio::test]
async fn a_server_with_other_databases_in_use_is_shared() {
    let nodes = Nodes::blessed(3).await;
    nodes.ask(1, &["MULTI"]);
    let script = "redis.call('SELECT', 3) redis.call('SET', 'cache', 'x')";
    nodes.ask(1, &["EVAL", script, "0"]);
    let examined = nodes.doctor(&[]);
    examined.one(
        "shared",
        "warning … 1 keys in other databases … a server of their own",
    );
}

#[tokio::test]
async fn where_others_may_lock_too_the_guard_of_restarts_is_a_delay_that_the_guide_prints() {
    let nodes = Nodes::start(3);
    let examined = nodes.doctor(&["--verbatim-keys"]);
    let verb = ["guide", "systemd", "--delayed"];
    examined.one(
        "restart-guard",
        &format!("note … redlock {}", verb.join(" ")),
    );
    let guide = run(&mut redlock(&verb));
    guide.told(0, "/bin/sleep");
}
