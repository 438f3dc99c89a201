//! No server outlives the process that started it, however that one ends.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::{
    io::{BufRead, BufReader},
    net::{SocketAddr, TcpStream},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use tempfile::TempDir;

#[test]
fn a_process_that_is_killed_leaves_no_server() {
    let mut owner = Owner::start();
    for server in &owner.servers {
        TcpStream::connect(server).unwrap();
    }
    owner.process.kill().unwrap();
    owner.process.wait().unwrap();
    owner.await_end_of_servers();
}

#[test]
fn a_process_that_ends_in_order_leaves_no_server() {
    let mut owner = Owner::start();
    drop(owner.process.stdin.take());
    assert!(owner.process.wait().unwrap().success());
    owner.await_end_of_servers();
}

/// Another process that runs servers.
struct Owner {
    process: Child,
    servers: Vec<SocketAddr>,
    // A process that is killed leaves its folders; here they go with this one.
    _folder: TempDir,
}

impl Owner {
    fn start() -> Self {
        const COUNT: usize = 3;
        let folder = TempDir::new().unwrap();
        let mut process = Command::new(env!("CARGO_BIN_EXE_redlock-sandbox"))
            .arg(COUNT.to_string())
            .env("TMPDIR", folder.path())
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
            _folder: folder,
        }
    }

    #[expect(clippy::disallowed_methods, reason = "a test's patience")]
    fn await_end_of_servers(&self) {
        let started = Instant::now();
        while self
            .servers
            .iter()
            .any(|server| TcpStream::connect(server).is_ok())
        {
            assert!(
                started.elapsed() < Duration::from_secs(5),
                "a server outlived its owner"
            );
            thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        // Fails if it has ended, which is what a test that passes has seen to.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
