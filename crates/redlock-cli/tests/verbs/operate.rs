//! `ready`, `bless`, `watch`, `roll` and `sandbox`: servers that stop and come back.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    process::{Child, Stdio},
    time::Duration,
};

use crate::kit::{Nodes, Relay, redlock, run};

#[tokio::test]
async fn a_node_is_ready_when_it_votes_and_not_before() {
    let mut nodes = Nodes::blessed(3).await;
    let address = nodes[1].address().to_string();
    let done = nodes.run(&["ready", &address]);
    assert_eq!(
        (done.code, done.out.trim()),
        (0, &*format!("{address} votes")),
        "{done:?}"
    );
    nodes[1].restart().unwrap();
    let done = nodes.run(&["ready", "2"]);
    assert_eq!(done.code, 1, "{done:?}");
    assert!(
        done.out.contains("votes in") && done.out.contains(&address),
        "{done:?}"
    );
    let json = nodes.run(&["ready", "2", "--json"]).out;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert!(json["ready_in_ms"].as_f64().unwrap() > 0.0, "{json}");
    let done = nodes.run(&[
        "ready",
        &address.replace("127.0.0.1", "localhost"),
        "--wait",
        "20s",
    ]);
    assert_eq!(done.code, 0, "{done:?}");
    nodes[1].kill().unwrap();
    let done = nodes.run(&["ready", &address]);
    assert_eq!(done.code, 1);
    assert!(done.out.contains("refused"), "{done:?}");
    for unknown in ["10.0.0.1:6379", "0", "4", "127.0.0.1"] {
        assert_eq!(nodes.run(&["ready", unknown]).code, 2, "{unknown}");
    }
}

#[tokio::test]
async fn nodes_are_blessed_only_by_somebody_who_says_so() {
    let nodes = Nodes::start(3);
    let done = nodes.run(&["bless"]);
    assert_eq!(done.code, 2, "{done:?}");
    assert!(
        done.out.contains("0 keys") && done.out.contains("To bless is to vouch"),
        "{done:?}"
    );
    assert_eq!(nodes.run(&["ready", "1"]).code, 1);
    let done = nodes.run(&["bless", "--yes"]);
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(nodes.run(&["ready", "1"]).code, 0);
    let done = nodes.run(&["bless", "--yes"]);
    assert_eq!(done.code, 0);
    assert!(done.out.contains("nothing to bless"), "{done:?}");
}

#[tokio::test]
async fn a_blessing_of_nodes_beside_voting_ones_is_warned_of() {
    let mut nodes = Nodes::blessed(3).await;
    nodes[0].restart().unwrap();
    let done = nodes.run(&["bless"]);
    assert!(done.out.contains("2 nodes vote already"), "{done:?}");
    assert_eq!((done.code, nodes.run(&["ready", "1"]).code), (2, 1));
}

/// A command that goes on, and its lines.
struct Running {
    child: Child,
    lines: BufReader<Box<dyn Read + Send>>,
}

impl Running {
    fn start(command: &mut std::process::Command) -> Self {
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let out: Box<dyn Read + Send> = Box::new(child.stdout.take().unwrap());
        Self {
            child,
            lines: BufReader::new(out),
        }
    }

    /// Reads until a line has these words.
    fn await_line(&mut self, words: &str) -> String {
        let mut all = String::new();
        loop {
            let mut line = String::new();
            let length = self.lines.read_line(&mut line).unwrap();
            assert!(length > 0, "it ended before {words:?}: {all}");
            if line.contains(words) {
                return line;
            }
            all += &line;
        }
    }

    /// Asks it to end, as Ctrl-C does, and returns its exit code.
    fn interrupt(mut self) -> Option<i32> {
        let pid = self.child.id().to_string();
        let status = std::process::Command::new("kill")
            .args(["-INT", &pid])
            .status();
        assert!(status.unwrap().success());
        self.child.wait().unwrap().code()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn get(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[tokio::test]
async fn watching_ages_quarantines_tells_changes_and_answers_probes() {
    let mut nodes = Nodes::start(3);
    let mut command = nodes.command(&["watch", "--listen", "127.0.0.1:0"]);
    let mut watch = Running::start(&mut command);
    let mut err = BufReader::new(watch.child.stderr.take().unwrap());
    let mut line = String::new();
    err.read_line(&mut line).unwrap();
    let address = line.trim().rsplit_once("http://").unwrap().1.to_owned();
    watch.await_line("no quorum: 0 of 3");
    let node = nodes[0].address().to_string();
    assert!(get(&address, &format!("/ready/{node}")).starts_with("HTTP/1.1 503"));
    assert!(get(&address, "/ready/nowhere").starts_with("HTTP/1.1 404"));
    // Nobody else looks at the nodes.
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
    let down = metrics.lines().find(|line| {
        line.starts_with("redlock_node_up{") && line.contains(&node) && line.ends_with(" 0")
    });
    assert!(down.is_some(), "{metrics}");
    nodes[0].restart().unwrap();
    watch.await_line("may have forgotten");
    watch.await_line(&format!("{node} votes"));
    assert_eq!(watch.interrupt(), Some(130));
}

/// A script that asks the test to restart a server, and waits until it has.
fn restart_script() -> tempfile::TempDir {
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

/// Restarts all nodes while one lease is held throughout, and another is acquired again and again: none fails.
async fn everybody_goes_on(count: usize) {
    let mut nodes = Nodes::blessed(count).await;
    let folder = restart_script();
    let script = folder.path().join("restart");
    let script = script.to_str().unwrap();
    let client = nodes.client().await;
    let held = client.acquire("held:through:it:all").await.unwrap();
    let mut command = nodes.command(&["roll", "--", script, "{host}", "{port}"]);
    let mut roll = Running::start(&mut command);
    let mut acquired = 0;
    for node in 0..count {
        let flag = format!("{script}.{}", nodes[node].port());
        while !std::path::Path::new(&flag).exists() {
            client
                .acquire("busy")
                .await
                .unwrap()
                .release()
                .await
                .unwrap();
            acquired += 1;
        }
        nodes[node].restart().unwrap();
        std::fs::remove_file(&flag).unwrap();
    }
    while roll.child.try_wait().unwrap().is_none() {
        client
            .acquire("busy")
            .await
            .unwrap()
            .release()
            .await
            .unwrap();
        acquired += 1;
    }
    assert_eq!(roll.child.wait().unwrap().code(), Some(0));
    assert!(acquired > 100 && held.lease().is_held(), "{acquired}");
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
    assert_eq!(done.code, 3, "{done:?}");
    assert!(
        done.err
            .contains("is not restarted: without it 1 of 3 nodes vote"),
        "{done:?}"
    );
    assert!(!done.err.contains("restarting"), "{done:?}");
}

#[tokio::test]
async fn a_command_that_fails_or_does_nothing_ends_the_roll() {
    let nodes = Nodes::blessed(3).await;
    let done = nodes.run(&["roll", "--", "false"]);
    assert_eq!(done.code, 2, "{done:?}");
    assert_eq!(done.err.matches("restarting").count(), 1, "{done:?}");
    let done = nodes.run(&["roll", "--timeout", "500ms", "--", "true"]);
    assert_eq!(done.code, 2, "{done:?}");
    assert!(done.err.contains("did not restart it"), "{done:?}");
    assert_eq!(nodes.run(&["roll", "--", "/no/such/program"]).code, 127);
    let remote = nodes.run(&["roll", "--", "sh", "-c", "exit 127"]);
    assert_eq!(remote.code, 127);
    assert!(
        remote.err.contains("nothing more is restarted"),
        "{remote:?}"
    );
}

#[test]
fn a_sandbox_is_blessed_and_gone_with_its_command() {
    let shell = "echo $REDLOCK_NODES; \"$REDLOCK\" doctor --strict && exit 7";
    let mut command = redlock(&[
        "sandbox",
        "--nodes",
        "3",
        "--max-ttl",
        "2s",
        "--",
        "sh",
        "-c",
        shell,
    ]);
    let done = run(command.env("REDLOCK", env!("CARGO_BIN_EXE_redlock")));
    assert_eq!(done.code, 7, "{done:?}");
    let urls = done.out.lines().next().unwrap();
    assert!(done.out.contains("3 of 3 nodes vote"), "{done:?}");
    for url in urls.split(',') {
        let address = url.trim_start_matches("redis://");
        assert!(TcpStream::connect(address).is_err(), "{address}");
    }
    for (program, code) in [("/no/such/program", 127), ("/etc/passwd", 126)] {
        let done = run(&mut redlock(&["sandbox", "--nodes", "1", "--", program]));
        assert_eq!(done.code, code, "{done:?}");
    }
    let done = run(&mut redlock(&[
        "sandbox",
        "--nodes",
        "1",
        "--",
        "sh",
        "-c",
        "kill -TERM $$",
    ]));
    assert_eq!(done.code, 128 + 15);
}

#[test]
fn a_sandbox_without_a_command_runs_until_it_is_interrupted() {
    let mut sandbox = Running::start(&mut redlock(&["sandbox", "--nodes", "1"]));
    let line = sandbox.await_line("export REDLOCK_NODES=");
    let address = line.trim().rsplit_once("redis://").unwrap().1.to_owned();
    sandbox.await_line("export REDLOCK_MAX_TTL=30000ms");
    TcpStream::connect(&address).unwrap();
    assert_eq!(sandbox.interrupt(), Some(130));
    crate::kit::eventually("the server is gone", || {
        TcpStream::connect(&address).is_err()
    });
}

#[test]
fn completions_and_manual_pages_have_every_verb() {
    let help = run(&mut redlock(&["--help"])).out;
    let verbs = [
        "doctor", "ready", "status", "ls", "release", "bless", "watch", "roll", "sandbox",
    ];
    for shell in ["bash", "zsh", "fish"] {
        let done = run(&mut redlock(&["completions", shell]));
        for verb in verbs {
            assert!(
                done.out.contains(verb) && help.contains(verb),
                "{shell}: {verb}"
            );
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let done = run(&mut redlock(&[
        "man",
        "--dir",
        folder.path().to_str().unwrap(),
    ]));
    assert_eq!(done.code, 0, "{done:?}");
    for verb in verbs {
        assert!(
            folder.path().join(format!("redlock-{verb}.1")).exists(),
            "{verb}"
        );
    }
    let page = run(&mut redlock(&["man"])).out;
    assert!(
        page.contains(".TH redlock 1") && page.contains("Exit codes"),
        "{page}"
    );
    assert_eq!(run(&mut redlock(&["man", "dance"])).code, 2);
    assert!(help.contains("no quorum"), "{help}");
}

#[tokio::test]
async fn a_bench_tells_the_ttl_that_a_deployment_bears_and_leaves_nothing_behind() {
    let nodes = Nodes::blessed(3).await;
    let done = nodes.run(&["bench", "--for", "300ms", "--json"]);
    assert_eq!(done.code, 0, "{done:?}");
    let json: serde_json::Value = serde_json::from_str(&done.out).unwrap();
    let p99 = json["acquire_ms"]["p99"].as_f64().unwrap();
    let shortest = json["shortest_ttl_ms"].as_f64().unwrap();
    assert!(
        p99 > 0.0 && (shortest - (p99 * 10.0).max(100.0)).abs() < 1.0,
        "{json}"
    );
    assert!(json["contended_turns"].as_u64().unwrap() > 2, "{json}");
    assert!(!nodes.keys().iter().any(|key| key.contains("bench")));

    let slow: Vec<_> = (0..3)
        .map(|node| Relay::delaying(nodes[node].address(), Duration::from_millis(60)).url())
        .collect();
    let nodes = nodes.at(slow);
    let mut command = nodes.command(&["bench", "--for", "500ms", "--node-timeout", "200ms"]);
    let done = run(command.env("REDLOCK_TTL", "500ms").env("COLUMNS", "120"));
    assert!(
        done.out.contains("500 ms, is too short for these times"),
        "{done:?}"
    );
    assert_eq!(nodes.run(&["bench", "--for", "now"]).code, 2);
}

#[tokio::test]
async fn an_interrupted_doctor_holds_nothing() {
    let nodes = Nodes::blessed(3).await;
    let before = nodes.keys();
    for pause in [300, 1_050, 1_100, 1_200] {
        let mut command = nodes.command(&["doctor"]);
        let doctor = Running::start(&mut command);
        tokio::time::sleep(Duration::from_millis(pause)).await;
        let code = doctor.interrupt();
        assert!(matches!(code, Some(130 | 0)), "{code:?}");
        let keys: Vec<_> = nodes
            .keys()
            .into_iter()
            .filter(|key| key.contains("doctor"))
            .collect();
        assert!(keys.is_empty(), "{keys:?} {before:?}");
    }
}
