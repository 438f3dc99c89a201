//! No server outlives the process that started it, however that one ends, and no folder of one.

use std::{
    env,
    io::{self, BufRead, BufReader, Read},
    net::{SocketAddr, TcpStream},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use redlock_sandbox::{ServerBinary, ServerOptions, ServerSet};
use tempfile::TempDir;

#[test]
fn a_process_that_is_killed_leaves_no_server_and_no_folder() {
    let mut owner = Owner::start();
    for server in &owner.servers {
        TcpStream::connect(server).unwrap();
    }
    assert_eq!(owner.folders(), owner.servers.len());
    owner.process.kill().unwrap();
    owner.process.wait().unwrap();
    owner.await_end_of_servers();
    owner.await_end_of_folders();
}

#[test]
fn a_process_that_ends_in_order_leaves_no_server_and_no_folder() {
    let mut owner = Owner::start();
    drop(owner.process.stdin.take());
    assert!(owner.process.wait().unwrap().success());
    owner.await_end_of_servers();
    owner.await_end_of_folders();
}

/// Of the other process, which is this program once more.
#[test]
fn a_process_that_is_killed_leaves_no_folder_of_a_server_that_was_down() {
    if env::var_os(IS_OWNER).is_some() {
        let binary = ServerBinary::find().unwrap_or_else(|error| panic!("{error}"));
        let mut servers = ServerSet::start(&binary, 2, &ServerOptions::default()).unwrap();
        servers[0].kill().unwrap();
        println!("{DOWN}");
        io::stdin().read_to_end(&mut Vec::new()).unwrap();
        return;
    }
    let temporary = TempDir::new().unwrap();
    let name = "a_process_that_is_killed_leaves_no_folder_of_a_server_that_was_down";
    let mut owner = Command::new(env::current_exe().unwrap())
        .args(["--exact", &format!("orphans::{name}"), "--nocapture"])
        .env(IS_OWNER, "yes")
        .env("TMPDIR", temporary.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(owner.stdout.take().unwrap()).lines();
    let is_down = lines.any(|line| line.unwrap().ends_with(DOWN));
    let folders = || temporary.path().read_dir().unwrap().count();
    let before = folders();
    owner.kill().unwrap();
    owner.wait().unwrap();
    assert!(is_down, "is there a server program? see the message above");
    assert_eq!(before, 2);
    await_end("a folder", || folders() > 0);
}

const IS_OWNER: &str = "REDLOCK_SANDBOX_TEST_IS_OWNER";
const DOWN: &str = "one of two is down";

/// Another process that runs servers.
struct Owner {
    process: Child,
    servers: Vec<SocketAddr>,
    // Where it makes the folders of its servers.
    temporary: TempDir,
}

impl Owner {
    fn start() -> Self {
        const COUNT: usize = 3;
        let temporary = TempDir::new().unwrap();
        let mut process = Command::new(env!("CARGO_BIN_EXE_redlock-sandbox"))
            .arg(COUNT.to_string())
            .env("TMPDIR", temporary.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = process.stdout.take().unwrap();
        let servers: Vec<_> = BufReader::new(output)
            .lines()
            .take(COUNT)
            .map(|line| {
                let line = line.unwrap();
                let (_, address) = line.split_once("redis://").unwrap();
                address.parse().unwrap()
            })
            .collect();
        assert_eq!(
            servers.len(),
            COUNT,
            "is there a server program? see the message above"
        );
        Self {
            process,
            servers,
            temporary,
        }
    }

    fn folders(&self) -> usize {
        self.temporary.path().read_dir().unwrap().count()
    }

    fn await_end_of_servers(&self) {
        let answers = |server| TcpStream::connect(server).is_ok();
        await_end("a server", || self.servers.iter().any(answers));
    }

    fn await_end_of_folders(&self) {
        await_end("a folder", || self.folders() > 0);
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        // Fails if it has ended, which is what a test that passes has seen to.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[expect(clippy::disallowed_methods, reason = "a test's patience")]
fn await_end(what: &str, mut is_there: impl FnMut() -> bool) {
    let started = Instant::now();
    while is_there() {
        assert!(
            started.elapsed() < Duration::from_secs(5),
            "{what} outlived its owner"
        );
        thread::sleep(Duration::from_millis(5));
    }
}
