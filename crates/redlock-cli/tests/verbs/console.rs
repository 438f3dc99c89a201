//! `redlock console`: its options, its gate, its end, and what it costs.

use std::{
    fs,
    io::Read,
    os::unix::fs::PermissionsExt,
    path::PathBuf,
    process::Command,
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;
use tempfile::TempDir;

use crate::kit::{
    Nodes, Running,
    http::{get, get_with, post, stream},
    reaches, run,
};

const TOKEN: &str = "a-token.of_many~characters";

/// Starts it, and returns it with its address.
fn console(nodes: &Nodes, options: &[&str]) -> (Running, String) {
    let mut console = Running::start(&mut nodes.command(&[&["console"], options].concat()));
    let url = console.await_line("http://");
    let address = address_in(&url);
    (console, address)
}

/// Returns the address in the line that the console prints.
fn address_in(url: &str) -> String {
    let address = url.trim().strip_prefix("http://").unwrap();
    let address = address.split('/').next().unwrap();
    address.replace("localhost", "127.0.0.1")
}

/// A file with a text that users of this mode may read.
fn file(folder: &TempDir, text: &str, mode: u32) -> PathBuf {
    let path = folder.path().join(format!("token-{mode:o}-{}", text.len()));
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    path
}

#[tokio::test]
async fn an_option_that_opens_too_much_or_makes_no_sense_is_refused_with_words() {
    let nodes = Nodes::start(1);
    let folder = TempDir::new().unwrap();
    let refused = |options: &[&str], words: &str| {
        // One that is not refused would serve for ever.
        let mut command = Command::new("timeout");
        command.args(["20", env!("CARGO_BIN_EXE_redlock"), "console"]);
        reaches(&mut command, &nodes);
        let done = run(command.args(options));
        done.complained(2, words);
        assert!(!done.err.contains(TOKEN) && done.out.is_empty(), "{done:?}");
    };
    for address in ["0.0.0.0:0", "[::]:0", "10.1.2.3:80"] {
        refused(&["--listen", address], "give --token-file FILE");
        refused(
            &["--listen", address, "--operate"],
            "give --token-file FILE",
        );
    }
    refused(&["--listen", "localhost"], "--listen");
    for path in ["ops", "", "ops/locks"] {
        refused(&["--base-path", path], "it must begin with a slash");
    }
    for path in ["//ops", "/ops/../x", "/{x}", "/o p", "/x?y"] {
        refused(&["--base-path", path], "single slashes");
    }
    let in_file = |path: &PathBuf, words: &str| {
        refused(&["--token-file", path.to_str().unwrap()], words);
    };
    in_file(&file(&folder, TOKEN, 0o604), "other users of this machine");
    in_file(&file(&folder, TOKEN, 0o602), "other users of this machine");
    in_file(&file(&folder, "short", 0o600), "16 to 1024");
    in_file(&file(&folder, "", 0o600), "16 to 1024");
    in_file(
        &file(&folder, "a token with spaces in it", 0o600),
        "16 to 1024",
    );
    in_file(&file(&folder, &"x".repeat(100_000), 0o600), "16 to 1024");
    in_file(&folder.path().to_owned(), "no file with a token");
    in_file(&folder.path().join("nowhere"), "nowhere");
    refused(&["--origin", "ops.example.com"], "https://ops.example.com");
    refused(&["--election", ""], "elections");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    refused(&["--listen", &taken], "cannot listen");
}

#[tokio::test]
async fn with_a_token_the_page_opens_for_it_alone() {
    let nodes = Nodes::blessed(1).await;
    let folder = TempDir::new().unwrap();
    let path = file(&folder, &format!("{TOKEN}\n"), 0o640);
    let options = [
        "--listen",
        "0.0.0.0:0",
        "--operate",
        "--token-file",
        path.to_str().unwrap(),
    ];
    let options = [&["console"][..], &options].concat();
    let mut console = Running::start(&mut nodes.command(&options));
    // An address that this machine can open, and words on how others do.
    let url = console.await_line("http://localhost:");
    let address = address_in(&url);
    let mut said = console.child.stderr.take().unwrap();
    let host = "Host: ops.example.com";
    let of = |path: &str, header: &str| get_with(&address, path, &[host, header]);
    for path in [
        "/overview",
        "/snapshot",
        "/events",
        "/console.js",
        "/nowhere",
        "/?token=wrong-token-of-some-length",
        "/?token=",
    ] {
        let refused = of(path, "Accept: */*");
        assert!(
            refused.starts_with("HTTP/1.1 401") && refused.contains("www-authenticate: Bearer"),
            "{path}: {refused}"
        );
    }
    for header in [
        &*format!("Authorization: Bearer {TOKEN}x"),
        &format!("Authorization: Basic {TOKEN}"),
        "Authorization: Bearer ",
        &format!("Cookie: token={TOKEN}"),
    ] {
        assert!(
            of("/snapshot", header).starts_with("HTTP/1.1 401"),
            "{header}"
        );
    }
    let bearer = format!("Authorization: Bearer {TOKEN}");
    assert!(of("/snapshot", &bearer).starts_with("HTTP/1.1 200"));
    // A first visit, as from a link.
    let visit = of(&format!("/?token={TOKEN}"), "Accept: text/html");
    assert!(
        visit.starts_with("HTTP/1.1 200") && visit.contains("refresh: 0; url=/"),
        "{visit}"
    );
    let cookie = visit
        .lines()
        .find_map(|line| line.strip_prefix("set-cookie: "))
        .unwrap();
    assert!(
        cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"),
        "{cookie}"
    );
    assert!(!visit.contains(TOKEN), "{visit}");
    let cookie = cookie.split(';').next().unwrap();
    assert!(of("/overview", &format!("Cookie: a=b; {cookie}")).starts_with("HTTP/1.1 200"));
    assert!(
        of(
            "/overview",
            &format!("Cookie: {}", &cookie[..cookie.len() - 1])
        )
        .starts_with("HTTP/1.1 401")
    );
    // No form of another page may carry it.
    let form = format!("job=billing/day&reason=r&token={TOKEN}");
    let refused = post(
        &address,
        &format!("/actions/pause?token={TOKEN}"),
        &form,
        &[],
    );
    assert!(refused.starts_with("HTTP/1.1 401"), "{refused}");
    let foreign = post(
        &address,
        "/actions/pause",
        &form,
        &[&bearer, "Sec-Fetch-Site: cross-site"],
    );
    assert!(foreign.starts_with("HTTP/1.1 403"), "{foreign}");
    assert_eq!(console.interrupt(), Some(130));
    let mut words = String::new();
    said.read_to_string(&mut words).unwrap();
    assert!(
        words.contains("listens at all addresses of this machine"),
        "{words}"
    );
}

#[tokio::test]
async fn without_a_token_the_page_is_known_by_the_names_of_this_machine_only() {
    let nodes = Nodes::blessed(1).await;
    let (console, address) = console(&nodes, &["--origin", "https://ops.example.com"]);
    let port = address.split(':').next_back().unwrap();
    for host in [
        "localhost",
        &format!("127.0.0.1:{port}"),
        &format!("[::1]:{port}"),
        "LOCALHOST:80",
        "ops.example.com",
    ] {
        let page = get_with(&address, "/snapshot", &[&format!("Host: {host}")]);
        assert!(page.starts_with("HTTP/1.1 200"), "{host}: {page}");
    }
    for host in [
        "evil.example",
        &format!("evil.example:{port}"),
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "",
    ] {
        let refused = get_with(&address, "/snapshot", &[&format!("Host: {host}")]);
        assert!(
            refused.starts_with("HTTP/1.1 403") && refused.contains("--origin"),
            "{host}: {refused}"
        );
    }
    assert_eq!(console.interrupt(), Some(130));
}

#[tokio::test]
async fn it_shows_unless_it_is_told_to_operate_and_logs_what_it_does() {
    let nodes = Nodes::blessed(3).await;
    nodes.pause_job("billing", "day").await;
    let form = "job=billing/day&reason=the+ledger+moves&by=alice";
    let (shows, address) = console(&nodes, &[]);
    let refused = post(&address, "/actions/resume", form, &[]);
    assert!(refused.starts_with("HTTP/1.1 403"), "{refused}");
    let (operates, address) = console(&nodes, &["--operate", "--base-path", "/ops/locks/"]);
    assert!(get(&address, "/overview").starts_with("HTTP/1.1 404"));
    assert!(get(&address, "/ops/locks").starts_with("HTTP/1.1 307"));
    assert!(get(&address, "/ops/locks/overview").starts_with("HTTP/1.1 200"));
    let done = post(&address, "/ops/locks/actions/resume", form, &[]);
    assert!(
        done.starts_with("HTTP/1.1 200") && done.contains("is resumed"),
        "{done}"
    );
    let log = nodes.run(&["log"]).ended(0);
    assert!(
        log.out.contains("resume billing/day") && log.out.contains("alice"),
        "{log:?}"
    );
    for console in [shows, operates] {
        assert_eq!(console.interrupt(), Some(130));
    }
}

#[tokio::test]
async fn it_ends_within_a_second_of_a_signal_though_streams_are_open() {
    let nodes = Nodes::blessed(3).await;
    let (mut console, address) = console(&nodes, &[]);
    let mut streams: Vec<_> = (0..3).map(|_| stream(&address, "/events")).collect();
    let pid = console.child.id().to_string();
    let asked = now();
    assert!(
        Command::new("kill")
            .args(["-TERM", &pid])
            .status()
            .unwrap()
            .success()
    );
    let status = console.child.wait().unwrap();
    assert!(
        asked.elapsed() < Duration::from_secs(1),
        "{:?}",
        asked.elapsed()
    );
    assert_eq!(status.code(), Some(143));
    for stream in &mut streams {
        // Cut off, as by the end of a process.
        drop(stream.read_to_string(&mut String::new()));
    }
}

#[tokio::test]
async fn a_namespace_that_the_nodes_do_not_know_is_said_before_the_page_is_there() {
    let nodes = Nodes::blessed(3).await;
    let mut command = nodes.command(&["console", "--namespace", "billling"]);
    let mut console = Running::start(&mut command);
    let url = console.await_line("http://");
    let address = url
        .trim()
        .strip_prefix("http://")
        .unwrap()
        .trim_end_matches('/')
        .to_owned();
    let page = get(&address, "/snapshot");
    assert!(page.contains("\"namespace\":\"billling\""), "{page}");
    let mut said = console.child.stderr.take().unwrap();
    assert_eq!(console.interrupt(), Some(130));
    let mut words = String::new();
    said.read_to_string(&mut words).unwrap();
    assert!(
        words.contains("do not know the namespace billling") && words.contains("they know redlock"),
        "{words}"
    );
}

/// How many commands the nodes have executed.
fn commands(nodes: &Nodes) -> u64 {
    let of = |node: usize| {
        let info = nodes.ask(node, &["INFO", "stats"]);
        let line = info
            .lines()
            .find_map(|line| line.strip_prefix("total_commands_processed:"));
        line.unwrap().trim().parse::<u64>().unwrap()
    };
    (0..nodes.len()).map(of).sum()
}

/// How many commands the nodes execute in a time.
fn commands_in(nodes: &Nodes, time: Duration) -> u64 {
    let before = commands(nodes);
    thread::sleep(time);
    // Those that ask for the count are among them.
    commands(nodes) - before - nodes.len() as u64
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_without_viewers_costs_nothing_and_one_viewer_at_rest_no_more_than_top() {
    let nodes = Nodes::blessed(3).await;
    // Of no client: renewals take more commands on a busy machine.
    fill(&nodes, 2);
    let while_resting = Duration::from_secs(10);
    // Another client, which only watches over its nodes.
    let _other = nodes.client().await;
    thread::sleep(Duration::from_secs(2));
    let of_a_client = commands_in(&nodes, while_resting);
    drop(_other);

    let (console, address) = console(&nodes, &[]);
    assert!(get(&address, "/overview").starts_with("HTTP/1.1 200"));
    // The examination of that one look ends.
    thread::sleep(Duration::from_secs(5));
    let without_viewers = commands_in(&nodes, while_resting);
    let streams: Vec<_> = (0..3).map(|_| stream(&address, "/events")).collect();
    thread::sleep(Duration::from_secs(3));
    let of_viewers = commands_in(&nodes, while_resting);
    drop(streams);
    assert_eq!(console.interrupt(), Some(130));

    let mut top = Running::start(&mut nodes.command(&["top", "--json"]));
    top.await_line("nodes");
    thread::sleep(Duration::from_secs(6));
    let of_top = commands_in(&nodes, while_resting);
    drop(top);
    println!(
        "commands in {while_resting:?}: {of_a_client} of a client, {without_viewers} of a console without viewers, \
         {of_viewers} with three viewers, {of_top} of top"
    );
    // A heartbeat more or less.
    assert!(
        without_viewers * 10 <= of_a_client * 11 + 60,
        "{without_viewers} of {of_a_client}"
    );
    assert!(of_viewers * 10 <= of_top * 11, "{of_viewers} of {of_top}");
}

#[expect(clippy::disallowed_methods, reason = "the measure of a test")]
fn now() -> Instant {
    Instant::now()
}

/// Fills nodes with locks of holders that are no clients.
fn fill(nodes: &Nodes, keys: usize) {
    let script = "for i = 1, tonumber(ARGV[1]) do \
                  redis.call('SET', '{redlock}:lock:order:' .. i, string.format('%032x order@web-7:%d', i, i), 'PX', 600000) end";
    for node in 0..nodes.len() {
        nodes.ask(node, &["EVAL", script, "0", &keys.to_string()]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_ten_thousand_keys_and_a_thousand_jobs_the_page_takes_no_longer_than_top() {
    let nodes = Nodes::blessed(3).await;
    fill(&nodes, 10_000);
    let client = nodes.client().await;
    for job in 0..1_000 {
        redlock_cron::pause(&client, "billing", &format!("job-{job}"))
            .await
            .unwrap();
    }
    let mut least = None;
    // A machine that does other work stretches one or the other; a page that takes longer takes longer in each round.
    for _ in 0..MOST_ROUNDS {
        let (of_page, of_top) = page_and_top(&nodes);
        println!("{of_page:?} for the page, {of_top:?} for top");
        let (page, top) = least.get_or_insert((of_page, of_top));
        (*page, *top) = (of_page.min(*page), of_top.min(*top));
        if page.as_secs_f64() <= 1.1 * top.as_secs_f64() {
            return;
        }
    }
    panic!("the least times of the page and of top are {least:?}");
}

/// Returns how long the first page takes, and how long the first line of `top`.
fn page_and_top(nodes: &Nodes) -> (Duration, Duration) {
    let asked = now();
    let mut top = Running::start(&mut nodes.command(&["top", "--json"]));
    let line = top.await_line("nodes");
    let of_top = asked.elapsed();
    drop(top);
    let all: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(
        (all["keys_total"].as_u64(), all["jobs_total"].as_u64()),
        (Some(10_000), Some(1_000))
    );
    assert_eq!(all["keys"].as_array().unwrap().len(), 10_000);
    let (console, address) = console(nodes, &[]);
    let asked = now();
    let page = get(&address, "/overview");
    let of_page = asked.elapsed();
    assert!(
        page.starts_with("HTTP/1.1 200") && page.len() <= 151_000,
        "{}",
        page.len()
    );
    assert_eq!(console.interrupt(), Some(130));
    (of_page, of_top)
}

/// The most rounds in which the page and `top` are measured in turn.
const MOST_ROUNDS: usize = 6;
