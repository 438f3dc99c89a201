//! `sandbox`: servers for a try-out.

use std::{fs, net::TcpStream};

use crate::kit::{Done, Running, eventually, redlock, run};

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
    let done = run(command.env("REDLOCK", env!("CARGO_BIN_EXE_redlock"))).ended(7);
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
    eventually("the server is gone", || {
        TcpStream::connect(&address).is_err()
    });
}

#[test]
fn a_doctor_finds_masters_that_sentinels_name_healthy() {
    let doctor = "\"$REDLOCK\" doctor";
    let mut command = redlock(&["sandbox", "--sentinel", "--nodes", "3", "--", "sh", "-c"]);
    command.arg(doctor);
    let done = run(command.env("REDLOCK", env!("CARGO_BIN_EXE_redlock")));
    done.told(0, "3 of 3 nodes vote");
    assert!(done.out.contains("lock-0@127.0.0.1:"), "{done:?}");
    assert!(!warns(&done), "{done:?}");
}

#[test]
fn a_doctor_finds_a_cluster_healthy() {
    let shell = "\"$REDLOCK\" doctor && \"$REDLOCK\" run job -- \"$REDLOCK\" ls";
    let mut command = redlock(&["sandbox", "--cluster", "--nodes", "3", "--", "sh", "-c"]);
    command.arg(shell);
    let done = run(command.env("REDLOCK", env!("CARGO_BIN_EXE_redlock")));
    done.told(0, "3 of 3 nodes vote");
    assert!(done.out.contains("2of3@127.0.0.1:"), "{done:?}");
    assert!(!warns(&done), "{done:?}");
    assert!(done.out.contains("job  "), "{done:?}");
}

#[test]
fn a_doctor_says_of_one_replicated_server_what_its_locks_rest_on() {
    let doctor = "\"$REDLOCK\" doctor";
    let mut command = redlock(&["sandbox", "--sentinel", "--nodes", "1", "--", "sh", "-c"]);
    command
        .arg(doctor)
        .env("REDLOCK", env!("CARGO_BIN_EXE_redlock"))
        .env("REDLOCK_GUARANTEE", "best_effort");
    let done = run(&mut command);
    done.told(0, "note best effort: a failover");
    assert!(!warns(&done), "{done:?}");
}

#[test]
fn an_interrupted_sandbox_outlives_its_command() {
    let folder = tempfile::tempdir().unwrap();
    let told = folder.path().join("told");
    let shell = "trap '\"$REDLOCK\" ls; echo $? >\"$TOLD\"; exit' TERM; echo ready; while :; do sleep 0.02; done";
    let mut command = redlock(&["sandbox", "--nodes", "3", "--", "sh", "-c", shell]);
    command
        .env("REDLOCK", env!("CARGO_BIN_EXE_redlock"))
        .env("TOLD", &told);
    let mut sandbox = Running::start(&mut command);
    sandbox.await_line("ready");
    assert_eq!(sandbox.interrupt(), Some(130));
    assert_eq!(fs::read_to_string(&told).unwrap().trim(), "0");
}

/// Returns whether the doctor warns of something besides a fork for a replica, which takes long on a busy machine.
fn warns(done: &Done) -> bool {
    let mut lines = done.out.lines();
    lines.any(|line| line.starts_with("warn") && !line.contains(" stood still for "))
}
