//! `watch`: quarantines age, changes are told, and probes are answered.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    process::Command,
    time::Duration,
};

use serde_json::Value;

use crate::kit::{
    Nodes, Running,
    http::{connect, get, post},
    reaches,
};

/// Returns the address at which it says that it listens.
fn listens(watch: &mut Running) -> String {
    let mut err = BufReader::new(watch.child.stderr.take().unwrap());
    let mut line = String::new();
    err.read_line(&mut line).unwrap();
    line.trim().rsplit_once("http://").unwrap().1.to_owned()
}

#[tokio::test]
async fn watching_ages_quarantines_tells_changes_and_answers_probes() {
    let mut nodes = Nodes::start(3);
    let mut command = nodes.command(&["watch", "--listen", "127.0.0.1:0"]);
    let mut watch = Running::start(&mut command);
    let address = listens(&mut watch);
    watch.await_line("no quorum: 0 of 3");
    let node = nodes[0].address().to_string();
    assert!(get(&address, &format!("/ready/{node}")).starts_with("HTTP/1.1 503"));
    assert!(get(&address, "/ready/nowhere").starts_with("HTTP/1.1 404"));
    // Only the watch looks at the nodes.
    watch.await_line("a majority votes");
    while !get(&address, &format!("/ready/{node}")).starts_with("HTTP/1.1 200") {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    nodes[0].kill().unwrap();
    let line = watch.await_line("refused");
    assert!(line.contains(&node), "{line}");
    let all = get(&address, "/");
    assert!(
        all.starts_with("HTTP/1.1 200") && all.contains("\"votes\":false"),
        "{all}"
    );
    let metrics = get(&address, "/metrics");
    for (words, value) in [("redlock_nodes", "3"), ("redlock_quorum", "2")] {
        let line = metrics
            .lines()
            .find(|line| line.starts_with(&format!("{words}{{")));
        let line = line.unwrap_or_else(|| panic!("no {words} in {metrics}"));
        assert!(line.ends_with(&format!(" {value}")), "{line}");
    }
    let is_down = |line: &str| {
        line.starts_with("redlock_node_up{") && line.contains(&node) && line.ends_with(" 0")
    };
    // The metrics follow a little later.
    while !get(&address, "/metrics").lines().any(is_down) {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    nodes[0].restart().unwrap();
    watch.await_line("may have forgotten");
    watch.await_line(&format!("{node} votes"));
    assert_eq!(watch.interrupt(), Some(130));
}

#[tokio::test]
async fn programs_are_told_how_many_nodes_vote() {
    let mut nodes = Nodes::blessed(3).await;
    let mut watch = Running::start(&mut nodes.command(&["watch", "--json"]));
    let node = watch.await_line("\"node\":\"");
    assert!(!node.contains("voting"), "{node}");
    let line = watch.await_line("\"node\":null");
    let counts = |line: &str| {
        let json: Value = serde_json::from_str(line).unwrap();
        ["votes", "voting", "nodes", "majority"].map(|name| json[name].to_string())
    };
    assert_eq!(counts(&line), ["true", "3", "3", "2"]);
    for node in 0..2 {
        nodes[node].kill().unwrap();
    }
    let line = watch.await_line("\"node\":null");
    let [votes, _, all, majority] = counts(&line);
    assert_eq!([votes, all, majority], ["false", "3", "2"]);
    assert_eq!(watch.interrupt(), Some(130));
}

#[tokio::test]
async fn silent_and_unfinished_requests_end_and_keep_no_probe_and_no_node_waiting() {
    let mut nodes = Nodes::blessed(3).await;
    // Fewer file descriptors than connections.
    let mut command = Command::new("sh");
    command.args([
        "-c",
        "ulimit -n 64; exec \"$REDLOCK\" watch --listen 127.0.0.1:0",
    ]);
    reaches(&mut command, &nodes);
    let mut watch = Running::start(&mut command);
    let address = listens(&mut watch);
    watch.await_line("a majority votes");
    let node = nodes[0].address().to_string();
    let silent: Vec<_> = (0..100).map(|_| connect(&address)).collect();
    let half = |_| {
        let mut stream = connect(&address);
        stream
            .write_all(b"GET /metrics HTTP/1.1\r\nHost:")
            .map(|()| stream)
    };
    let halves: Vec<_> = (0..300).map(half).collect();
    assert!(get(&address, &format!("/ready/{node}")).starts_with("HTTP/1.1 200"));
    assert!(get(&address, "/metrics").contains("redlock_nodes"));
    // A node that comes back is connected to again.
    nodes[0].kill().unwrap();
    watch.await_line(&node);
    nodes[0].restart().unwrap();
    watch.await_line(&format!("{node} votes"));
    // The newest of them had its time, too.
    let mut last = halves.into_iter().flatten().next_back().unwrap();
    let ended = last.read_to_string(&mut String::new());
    let is_timeout = |error: &io::Error| error.kind() == io::ErrorKind::WouldBlock;
    assert!(!ended.as_ref().is_err_and(is_timeout), "{ended:?}");
    drop(silent);
    assert_eq!(watch.interrupt(), Some(130));
}

#[tokio::test]
async fn it_serves_the_page_which_only_shows_beside_its_probes() {
    let nodes = Nodes::blessed(3).await;
    let mut watch = Running::start(&mut nodes.command(&["watch", "--listen", "127.0.0.1:0"]));
    let address = listens(&mut watch);
    for path in ["/console", "/console/"] {
        let leads = get(&address, path);
        assert!(leads.starts_with("HTTP/1.1 307"), "{path}: {leads}");
    }
    let page = get(&address, "/console/overview");
    assert!(
        page.starts_with("HTTP/1.1 200") && page.contains("<h1"),
        "{page}"
    );
    let form = "job=billing/day&reason=r";
    let refused = post(&address, "/console/actions/pause", form, &[]);
    assert!(refused.starts_with("HTTP/1.1 403"), "{refused}");
    let node = nodes[0].address();
    assert!(get(&address, &format!("/ready/{node}")).starts_with("HTTP/1.1 "));

    // Other machines reach this one, and get no page without a token, and their probes all the same.
    let mut open = Running::start(&mut nodes.command(&["watch", "--listen", "0.0.0.0:0"]));
    let address = listens(&mut open).replace("0.0.0.0", "127.0.0.1");
    let refused = get(&address, "/console/overview");
    assert!(
        refused.starts_with("HTTP/1.1 403") && refused.contains("--token-file"),
        "{refused}"
    );
    open.await_line("a majority votes");
    assert!(get(&address, "/").starts_with("HTTP/1.1 200"));
    for watch in [watch, open] {
        assert_eq!(watch.interrupt(), Some(130));
    }
}
