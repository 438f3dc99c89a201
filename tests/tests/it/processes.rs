//! What becomes of a client in a process that may start no thread, and in one that was forked.
#![cfg(target_os = "linux")]

use std::{
    env, fs,
    process::{Command, Output},
};

use redlock_tests::Nodes;

const LONE: &str = env!("CARGO_BIN_EXE_redlock-test-lone");

/// In place of the system's function: forks, waits for the child, and returns 0 in the child.
const FORK: &str = "
#include <sys/wait.h>
#include <unistd.h>

pid_t getppid(void) {
    pid_t child = fork();
    if (child > 0) waitpid(child, NULL, 0);
    return child;
}
";

fn output(command: &mut Command) -> String {
    let Output {
        status,
        stdout,
        stderr,
    } = command.output().unwrap();
    let said = String::from_utf8_lossy(&stdout).into_owned();
    let complaint = String::from_utf8_lossy(&stderr);
    assert!(status.success(), "{status}: {said}{complaint}");
    said
}

#[test]
fn a_process_that_may_start_no_thread_is_told_what_to_do() {
    // A stack that is larger than the memory that there can be: as if the limit of threads were reached.
    let said = output(Command::new(LONE).env("RUST_MIN_STACK", (1_u64 << 47).to_string()));
    assert!(said.starts_with("System: thread: "), "{said}");
    assert!(said.contains("ulimit -u"), "{said}");
}

/// What a process says that forks while it has a lease on `nodes`, and what its child does.
fn forked(nodes: &[String]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let (source, library) = (folder.path().join("fork.c"), folder.path().join("fork.so"));
    fs::write(&source, FORK).unwrap();
    let compiler = env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let mut words = compiler.split_whitespace();
    let mut compile = Command::new(words.next().unwrap_or("cc"));
    compile.args(words).args(["-shared", "-fPIC", "-o"]);
    output(compile.args([&library, &source]));
    output(Command::new(LONE).args(nodes).env("LD_PRELOAD", &library))
}

fn assert_told(said: &str) {
    assert!(said.contains("Closed: "), "{said}");
    assert!(said.contains("build a client in each process"), "{said}");
    assert!(said.contains("0 reports; Err(Lost)"), "{said}");
}

#[test]
fn a_process_that_was_forked_is_told_to_build_a_client_of_its_own() {
    assert_told(&forked(&[]));
}

// Shows: T2.3.
#[test]
fn a_child_that_has_a_runtime_that_drives_leaves_the_sockets_to_its_parent() {
    let nodes = Nodes::start(3);
    let said = forked(&nodes.urls());
    assert_told(&said);
    assert!(said.contains("held by the child: false"), "{said}");
    assert!(said.contains("held by the parent: true"), "{said}");
    // Two scripts are brought over each connection, and none was lost.
    assert_eq!(nodes.calls_in_all("script|load"), 2 * 3);
}
