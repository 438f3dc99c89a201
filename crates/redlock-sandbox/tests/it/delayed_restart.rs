//! `docker/delayed-restart.sh` keeps a master away until every lease it forgot is over.

use std::{
    io::{BufRead, BufReader, Read},
    net::{SocketAddr, TcpStream},
    path::Path,
    process::{ChildStdout, Stdio},
    thread,
    time::{Duration, Instant},
};

use redlock_sandbox::{Process, Server, ServerBinary, ServerOptions, command};
use tempfile::TempDir;

#[test]
#[expect(clippy::disallowed_methods, reason = "the delay is what is tested")]
fn a_first_start_too_listens_only_after_the_longest_lease() {
    let folder = TempDir::new().unwrap();
    let address = free_address();
    let started = Instant::now();
    let _entrypoint = Entrypoint::of_server(address, folder.path(), &[("REDLOCK_MAX_TTL", "1s")]);
    await_listener(address);
    assert!(started.elapsed() >= delay(1), "{:?}", started.elapsed());
}

#[test]
fn the_delay_is_the_lease_and_its_drift_and_a_second_rounded_up() {
    for ttl in [1, 9, 30, 60, 99, 100, 3_600, 86_400] {
        let text = format!("{ttl}s");
        let mut entrypoint = Entrypoint::start(&["true"], &[("REDLOCK_MAX_TTL", &text)]);
        let line = entrypoint.line();
        let words: Vec<_> = line.split(' ').collect();
        assert_eq!(words[..2], ["delayed-restart:", "waiting"], "{line}");
        let waits = Duration::from_secs(words[2].parse().unwrap());
        assert!(waits >= delay(ttl), "{line}");
        assert!(waits < delay(ttl) + Duration::from_secs(1), "{line}");
    }
}

#[test]
fn a_stop_during_the_wait_ends_it_at_once_and_starts_nothing() {
    let mut entrypoint = Entrypoint::start(&["echo", "started"], &[("REDLOCK_MAX_TTL", "1h")]);
    assert!(entrypoint.line().contains("waiting"));
    entrypoint.process.terminate().unwrap();
    assert_eq!(entrypoint.status(), Some(143));
    // The output ends when its last holder does: the script's own sleep is over as well.
    assert_eq!(
        entrypoint.rest(),
        "delayed-restart: stopped during the wait\n"
    );
}

#[test]
fn told_so_the_first_start_is_immediate_and_the_next_one_is_not() {
    let folder = TempDir::new().unwrap();
    let address = free_address();
    let mut first = Entrypoint::of_server_at_once(address, folder.path());
    await_listener(address);
    first.process.kill().unwrap();

    let mut second = Entrypoint::of_server_at_once(address, folder.path());
    assert!(second.line().contains("waiting"));
    TcpStream::connect(address).unwrap_err();
}

#[test]
fn a_stop_reaches_the_server_itself() {
    let folder = TempDir::new().unwrap();
    let address = free_address();
    let mut entrypoint = Entrypoint::of_server_at_once(address, folder.path());
    await_listener(address);
    let info = command(address, &["INFO", "server"]).unwrap();
    let own = format!("process_id:{}\r\n", entrypoint.process.pid());
    assert!(info.as_text().unwrap().contains(&own));

    entrypoint.process.terminate().unwrap();
    assert_eq!(entrypoint.status(), Some(0));
}

#[test]
fn a_setting_it_does_not_understand_is_refused_and_nothing_is_started() {
    let ttl = "REDLOCK_MAX_TTL";
    let refused = [
        (ttl, ""),
        (ttl, "30"),
        (ttl, "99ms"),
        (ttl, "25h"),
        (ttl, "$(echo 30s)"),
        ("REDLOCK_FIRST_START", "sometimes"),
    ];
    for variable in refused {
        let variables = [(ttl, "1s"), variable];
        let mut entrypoint = Entrypoint::start(&["echo", "started"], &variables);
        assert_eq!(entrypoint.rest(), "", "{variable:?}");
        assert_eq!(entrypoint.status(), Some(64), "{variable:?}");
    }
    assert_eq!(
        Entrypoint::start(&["true"], &[]).status(),
        Some(64),
        "no longest lease"
    );
    assert_eq!(
        Entrypoint::start(&[], &[(ttl, "1s")]).status(),
        Some(64),
        "no command"
    );
}

#[test]
fn the_settings_of_redis_conf_are_in_force() {
    let folder = TempDir::new().unwrap();
    let address = free_address();
    let _entrypoint = Entrypoint::of_server_at_once(address, folder.path());
    await_listener(address);
    let settings = [
        ("maxmemory-policy", "noeviction"),
        ("maxmemory", "134217728"),
        ("save", ""),
        ("appendonly", "no"),
        ("databases", "1"),
        ("tcp-keepalive", "60"),
        ("protected-mode", "yes"),
    ];
    for (name, expected) in settings {
        let reply = command(address, &["CONFIG", "GET", name]).unwrap();
        assert_eq!(
            reply.as_array().unwrap()[1].as_text(),
            Some(expected),
            "{name}"
        );
    }
}

/// The script at work, under our watchdog.
struct Entrypoint {
    process: Process,
    output: BufReader<ChildStdout>,
}

impl Entrypoint {
    fn start(arguments: &[&str], variables: &[(&str, &str)]) -> Self {
        let mut command = Process::command("sh");
        command
            .arg(docker("delayed-restart.sh"))
            .args(arguments)
            .env_remove("REDLOCK_MAX_TTL")
            .env_remove("REDLOCK_FIRST_START")
            .env_remove("REDLOCK_MARKER")
            .envs(variables.iter().copied())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut process = Process::spawn(command).unwrap();
        let output = BufReader::new(process.take_stdout().unwrap());
        Self { process, output }
    }

    /// In front of a server with our `redis.conf`, but on the loopback interface.
    fn of_server(address: SocketAddr, folder: &Path, variables: &[(&str, &str)]) -> Self {
        let binary = ServerBinary::find().unwrap_or_else(|error| panic!("{error}"));
        let port = address.port().to_string();
        let arguments = [
            binary.path().to_str().unwrap(),
            &docker("redis.conf"),
            "--bind",
            "127.0.0.1",
            "--port",
            &port,
            "--dir",
            folder.to_str().unwrap(),
        ];
        Self::start(&arguments, variables)
    }

    fn of_server_at_once(address: SocketAddr, folder: &Path) -> Self {
        let marker = folder.join("started");
        let variables = [
            ("REDLOCK_MAX_TTL", "1h"),
            ("REDLOCK_FIRST_START", "immediate"),
            ("REDLOCK_MARKER", marker.to_str().unwrap()),
        ];
        Self::of_server(address, folder, &variables)
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line
    }

    fn rest(&mut self) -> String {
        let mut rest = String::new();
        self.output.read_to_string(&mut rest).unwrap();
        rest
    }

    fn status(&mut self) -> Option<i32> {
        self.process.finish(Duration::from_secs(5)).unwrap().code()
    }
}

/// What the operations guide asks for: the lease, its drift, and a second.
fn delay(ttl: u64) -> Duration {
    let ttl = Duration::from_secs(ttl);
    ttl + ttl / 100 + Duration::from_millis(2) + Duration::from_secs(1)
}

fn docker(file: &str) -> String {
    format!("{}/../../docker/{file}", env!("CARGO_MANIFEST_DIR"))
}

/// The address of a server that is gone again.
///
/// The kernel's own choice, port 0, could be given to an outgoing connection in the meantime; the
/// port of a server is never one of those.
fn free_address() -> SocketAddr {
    let binary = ServerBinary::find().unwrap_or_else(|error| panic!("{error}"));
    let server = Server::start(&binary, ServerOptions::default()).unwrap();
    server.address()
}

#[expect(clippy::disallowed_methods, reason = "a test's patience")]
fn await_listener(address: SocketAddr) {
    let started = Instant::now();
    while TcpStream::connect(address).is_err() {
        assert!(
            started.elapsed() < Duration::from_secs(10),
            "nothing listens"
        );
        thread::sleep(Duration::from_millis(5));
    }
}
