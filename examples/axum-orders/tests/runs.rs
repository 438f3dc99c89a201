//! The example as a newcomer runs it: as processes, judged by their last line and exit status.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    path::Path,
    process::{ChildStdout, Command, Output, Stdio},
    time::Duration,
};

use redlock_sandbox::{
    ClusterSet, Process, SERVER_VARIABLE, SentinelSet, Server, ServerBinary, ServerOptions,
    ServerSet, Value,
};
use tempfile::TempDir;

/// Takes the caller's settings away.
fn clean(mut command: Command) -> Command {
    for (variable, _) in std::env::vars_os() {
        let name = variable.to_string_lossy();
        if name.starts_with("REDLOCK_") || name == "RUST_LOG" {
            command.env_remove(variable);
        }
    }
    command
}

fn axum_orders() -> Command {
    clean(Command::new(env!("CARGO_BIN_EXE_axum-orders")))
}

fn binary() -> ServerBinary {
    ServerBinary::find().unwrap_or_else(|error| panic!("{error}"))
}

/// Runs it to its end, on servers that it starts itself.
fn run(arguments: &[&str]) -> Output {
    let mut command = axum_orders();
    command
        .args(arguments)
        .env(SERVER_VARIABLE, binary().path());
    command.output().expect("it starts")
}

/// Its last line, after checking the exit status and that there is one verdict only.
fn verdict(output: &Output, status: i32) -> String {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(status), "{text}{errors}");
    assert_eq!(text.matches("axum-orders: ").count(), 1, "{text}");
    text.lines().last().expect("it says something").to_owned()
}

/// The number before these words.
fn count(line: &str, words: &str) -> usize {
    let (before, _) = line.split_once(words).unwrap_or_else(|| panic!("{line}"));
    let number = before.split_whitespace().last();
    number
        .and_then(|number| number.parse().ok())
        .unwrap_or_else(|| panic!("{line}"))
}

const RIGHT: &str =
    "10 orders paid once, 0 paid twice, 30 items sold, 0 oversold, 3 catalogues whole, 0 mixed";

#[test]
fn with_the_layer_all_is_right_and_without_it_is_not() {
    let output = run(&[]);
    let last = verdict(&output, 0);
    let beginning = format!(
        "axum-orders: ok: {RIGHT}; 1 late write refused; 409 and 503 told as problem+json; without the layer "
    );
    let careless = last.strip_prefix(&beginning);
    let careless = careless.unwrap_or_else(|| panic!("{last}"));
    assert!(count(careless, " paid twice") > 0, "{last}");
    assert!(count(careless, " oversold") > 0, "{last}");

    let story = String::from_utf8_lossy(&output.stdout);
    let lines = [
        "with the layer",
        "stopped (SIGSTOP)",
        "replica 2 is asked",
        "goes on (SIGCONT)",
        "told: 503 Service Unavailable\n    content-type: application/problem+json\n    retry-after: ",
        "1 late write(s) refused by the fence, the order is paid 1 time(s)",
        "runs: 409 Conflict\n    content-type: application/problem+json\n    retry-after: ",
        "answer: 503 Service Unavailable\n    content-type: application/problem+json\n    retry-after: ",
        "the nodes answer again: 201 Created",
        "without the layer",
    ];
    let told: Vec<_> = lines.iter().map(|line| story.find(line)).collect();
    assert!(told.is_sorted() && told[0].is_some(), "{told:?} {story}");
}

#[test]
fn the_check_of_the_books_fails_without_the_layer() {
    // On a busy machine the imports of one run may follow each other by chance.
    let mut unseen = vec![" paid twice", " oversold", " mixed"];
    let mut told = Vec::new();
    while !unseen.is_empty() && told.len() < 5 {
        let last = verdict(&run(&["--without-layer"]), 1);
        assert!(
            last.starts_with("axum-orders: not ok: without the layer: "),
            "{last}"
        );
        unseen.retain(|mistake| count(&last, mistake) == 0);
        told.push(last);
    }
    assert!(unseen.is_empty(), "{unseen:?} in none of {told:#?}");
}

#[test]
fn the_check_of_the_late_write_fails_without_the_fence() {
    let last = verdict(&run(&["--without-fence"]), 1);
    assert_eq!(
        last,
        "axum-orders: not ok: 0 late writes refused instead of 1, and the order is paid 2 times"
    );
}

#[test]
fn servers_that_are_given_are_used_and_not_stopped() {
    let servers = servers(3);
    let output = axum_orders()
        .env("REDLOCK_NODES", servers.urls().join(","))
        .output();
    let last = verdict(&output.expect("it starts"), 0);
    let beginning = format!("axum-orders: ok: {RIGHT}; 1 late write refused; 409 and no 503 told");
    assert!(last.starts_with(&beginning), "{last}");
    assert!(servers.iter().all(Server::is_running));
}

#[test]
fn each_kind_of_servers_is_one_line_of_the_environment() {
    let watched = SentinelSet::start(&binary(), 3).expect("they start");
    let cluster = ClusterSet::start(&binary(), 3).expect("they start");
    let one = &watched.masters[0];
    let kinds = [
        (watched.urls().join(","), "quorum"),
        (format!("{}?votes=3", cluster.url()), "quorum"),
        (one.url(), "best_effort"),
    ];
    for (nodes, guarantee) in kinds {
        one.command(&["FLUSHALL"]).expect("it answers");
        let mut command = axum_orders();
        command.env("REDLOCK_NODES", &nodes);
        command.env("REDLOCK_GUARANTEE", guarantee);
        let last = verdict(&command.output().expect("it starts"), 0);
        let beginning = format!("axum-orders: ok: {RIGHT}; 1 late write refused");
        assert!(last.starts_with(&beginning), "{nodes}: {last}");
    }
}

#[test]
fn without_any_server_it_says_what_is_missing() {
    let output = axum_orders().env("PATH", "/nonexistent").output();
    let last = verdict(&output.expect("it starts"), 1);
    assert!(
        last.contains("need nodes that all of them can reach"),
        "{last}"
    );
    assert!(last.contains("install redis-server"), "{last}");
}

#[test]
fn an_unknown_argument_is_a_mistake_of_usage() {
    for arguments in [&["--fast"][..], &["load"], &["serve", "--port"]] {
        let output = axum_orders().args(arguments).output().expect("it starts");
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(String::from_utf8_lossy(&output.stderr).starts_with("usage: axum-orders"));
    }
}

#[test]
fn a_replica_that_is_started_by_hand_serves_the_load_and_ends_in_order() {
    let servers = servers(3);
    let folder = TempDir::new().expect("a folder");
    let (mut replica, _output, url) = serve(&servers, folder.path());
    let output = axum_orders().args(["load", &url]).output();
    assert_eq!(
        verdict(&output.expect("it starts"), 0),
        format!("axum-orders: ok: {RIGHT}")
    );
    ends_in_order(&mut replica, &servers);
}

#[test]
fn a_replica_that_is_asked_to_end_carries_payments_through_and_sends_those_away_who_wait() {
    let servers = servers(3);
    let folder = TempDir::new().expect("a folder");
    let (mut replica, _output, url) = serve(&servers, folder.path());
    let address = url.trim_start_matches("http://");
    let order = exchange(address, "PUT /orders/7", r#"{"amount":1}"#);
    assert!(order.starts_with("HTTP/1.1 200"), "{order}");
    let mut first = send_and_await_bank(address, "POST /orders/7/pay");
    let mut second = send(address, "POST /orders/7/pay", r#"{"card":"usual"}"#);
    // Connections are accepted in their order, so the second one waits for the lock after this.
    exchange(address, "GET /statistics", "");
    replica.terminate().expect("it runs");
    let (mut paid, mut sent_away) = (String::new(), String::new());
    second.read_to_string(&mut sent_away).expect("an answer");
    assert!(
        sent_away.contains("the server is shutting down"),
        "{sent_away}"
    );
    first.read_to_string(&mut paid).expect("an answer");
    assert!(paid.starts_with("HTTP/1.1 200"), "{paid}");
    ends_in_order(&mut replica, &servers);
}

#[test]
fn a_replica_that_is_asked_to_end_carries_a_payment_through_though_its_client_hung_up() {
    let servers = servers(3);
    let folder = TempDir::new().expect("a folder");
    let (mut replica, _output, _url) = serve_one_that_hung_up(&servers, folder.path());
    ends_in_order(&mut replica, &servers);

    let (_replica, _output, url) = serve(&servers, folder.path());
    let address = url.trim_start_matches("http://");
    let order = exchange(address, "GET /orders/7", "");
    assert!(
        order.ends_with(r#"{"amount":1,"paid":true,"payments":1}"#),
        "{order}"
    );
}

#[test]
fn a_client_that_hung_up_and_pays_again_waits_for_its_first_payment() {
    let servers = servers(3);
    let folder = TempDir::new().expect("a folder");
    let (mut replica, _output, url) = serve_one_that_hung_up(&servers, folder.path());
    let address = url.trim_start_matches("http://");
    let again = exchange(address, "POST /orders/7/pay", r#"{"card":"usual"}"#);
    assert!(again.starts_with("HTTP/1.1 409"), "{again}");
    assert!(again.contains("paid already"), "{again}");
    let statistics = exchange(address, "GET /statistics", "");
    assert!(statistics.contains(r#""banks_asked":1"#), "{statistics}");
    let order = exchange(address, "GET /orders/7", "");
    assert!(
        order.ends_with(r#"{"amount":1,"paid":true,"payments":1}"#),
        "{order}"
    );
    ends_in_order(&mut replica, &servers);
}

#[test]
fn when_it_is_interrupted_it_takes_everything_along() {
    let temporary = TempDir::new().expect("a folder");
    let mut command = clean(Process::command(env!("CARGO_BIN_EXE_axum-orders")));
    command
        .env(SERVER_VARIABLE, binary().path())
        .env("TMPDIR", temporary.path())
        .stdout(Stdio::piped());
    let mut process = Process::spawn(command).expect("it starts");
    let mut output = BufReader::new(process.take_stdout().expect("it is piped"));
    let line = line_with(&mut output, " listen on ");
    let (_, urls) = line.split_once(" listen on ").expect("it is in the line");
    let addresses: Vec<_> = urls
        .split(", ")
        .map(|url| url.trim_start_matches("http://").to_owned())
        .collect();
    assert_eq!(addresses.len(), 3, "{line}");
    line_with(&mut output, "1. the load");
    process.terminate().expect("it runs");
    let status = process.finish(PATIENCE).expect("it ends");
    assert_eq!(status.code(), Some(1));
    let mut rest = String::new();
    output.read_to_string(&mut rest).expect("it is text");
    assert!(
        rest.ends_with("axum-orders: not ok: interrupted\n"),
        "{rest}"
    );
    for address in addresses {
        TcpStream::connect(&address).expect_err("the replica is gone");
    }
    let left = temporary.path().read_dir().expect("a folder").count();
    assert_eq!(left, 0, "folders left behind");
}

fn servers(count: usize) -> ServerSet {
    ServerSet::start(&binary(), count, &ServerOptions::default()).expect("they start")
}

/// One replica, as the README has it, and its URL.
fn serve(nodes: &ServerSet, folder: &Path) -> (Process, BufReader<ChildStdout>, String) {
    let mut command = clean(Process::command(env!("CARGO_BIN_EXE_axum-orders")));
    command
        .args(["serve", "--port", "0", "--dangerous-bless", "--database"])
        .arg(folder.join("orders.db"))
        .env("REDLOCK_NODES", nodes.urls().join(","))
        .stdout(Stdio::piped());
    let mut process = Process::spawn(command).expect("it starts");
    let mut output = BufReader::new(process.take_stdout().expect("it is piped"));
    let line = line_with(&mut output, "listening on ");
    let url = line.trim_start_matches("listening on ").to_owned();
    (process, output, url)
}

/// One replica, and its URL, of whose clients one hung up while the bank was asked to pay order 7.
fn serve_one_that_hung_up(
    nodes: &ServerSet,
    folder: &Path,
) -> (Process, BufReader<ChildStdout>, String) {
    let served = serve(nodes, folder);
    let address = served.2.trim_start_matches("http://");
    exchange(address, "PUT /orders/7", r#"{"amount":1}"#);
    drop(send_and_await_bank(address, "POST /orders/7/pay"));
    served
}

/// A replica ends by itself when it is asked to, and leaves no lock behind.
fn ends_in_order(replica: &mut Process, nodes: &ServerSet) {
    // It may have been asked to already.
    let _ = replica.terminate();
    let status = replica.finish(PATIENCE).expect("it ends");
    assert!(status.success(), "{status}");
    for node in nodes {
        let keys = node.command(&["KEYS", "*"]).expect("it answers");
        let keys = keys.as_array().expect("a list").iter();
        let others = |key: &&Value| {
            let key = key.as_text().unwrap_or_default();
            !matches!(key, "{axum-orders}:mark" | "{axum-orders}:counters")
        };
        assert_eq!(keys.filter(others).count(), 0, "a lock is left");
    }
}

/// Sends a request, whose answer is all that can be read then.
fn send(address: &str, what: &str, body: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a limit");
    let length = body.len();
    write!(
        stream,
        "{what} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\n\r\n{body}"
    )
    .expect("it reads");
    stream
}

fn exchange(address: &str, what: &str, body: &str) -> String {
    let mut answer = String::new();
    let read = send(address, what, body).read_to_string(&mut answer);
    read.expect("an answer");
    answer
}

/// Sends the replica's first payment, and waits until its bank is asked.
fn send_and_await_bank(address: &str, what: &str) -> TcpStream {
    let stream = send(address, what, r#"{"card":"slow"}"#);
    let is_asked = |_| exchange(address, "GET /statistics", "").contains(r#""banks_asked":1"#);
    assert!((0..ATTEMPTS).any(is_asked), "no bank is asked");
    stream
}

/// Reads up to a line that has these words.
fn line_with(output: &mut BufReader<ChildStdout>, words: &str) -> String {
    output
        .by_ref()
        .lines()
        .map_while(Result::ok)
        .find(|line| line.contains(words))
        .unwrap_or_else(|| panic!("it ended before it said: {words}"))
}

const PATIENCE: Duration = Duration::from_secs(10);

/// Each takes a millisecond or more, and it begins within some.
const ATTEMPTS: usize = 5_000;
