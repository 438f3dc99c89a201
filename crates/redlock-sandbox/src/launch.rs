//! From a command line to a server that answers.

use std::{
    fs::{self, File},
    net::Ipv4Addr,
    process::Stdio,
    thread,
    time::{Duration, Instant},
};

use crate::{
    ServerBinary, ServerClock, ServerOptions, command, error::StartError, folder::Folder,
    options::Role, port, process::Process,
};

/// Starts a server on `port`, with its files in `folder`, and waits until it answers.
pub(crate) fn launch(
    binary: &ServerBinary,
    options: &ServerOptions,
    port: u16,
    folder: &Folder,
    clock: Option<&ServerClock>,
) -> Result<Process, StartError> {
    let log = folder.path().join("server.log");
    let output = File::create(&log).map_err(|error| StartError::io("create a log", error))?;
    let errors = output
        .try_clone()
        .map_err(|error| StartError::io("share a log", error))?;

    let mut command = Process::command(binary.path());
    if options.role == Role::Sentinel {
        let file = folder.path().join(SENTINEL_FILE);
        if !file.exists() {
            fs::write(&file, "").map_err(|error| StartError::io("write a file", error))?;
        }
        command.arg(file).arg("--sentinel");
    } else {
        command.args(["--save", ""]);
        command.args(options.persistence.arguments());
    }
    if options.role == Role::ClusterNode {
        // The others learn of another port from its first message.
        let bus = port::free().map_err(|error| StartError::io("find a free port", error))?;
        command
            .args(["--cluster-enabled", "yes", "--cluster-node-timeout", "1000"])
            .args(["--cluster-port", &bus.number().to_string()]);
    }
    command
        .args(["--bind", "127.0.0.1", "--port", &port.to_string()])
        .args(["--daemonize", "no", "--dir"])
        .arg(folder.path())
        .stdout(Stdio::from(output))
        .stderr(Stdio::from(errors));
    if let Some(password) = &options.password {
        command.args(["--requirepass", password]);
    }
    if let Some(clock) = clock {
        clock.give_to(&mut command);
        // jemalloc's own thread sleeps until a time of the wall clock that it works out itself, and
        // never does so on a clock that is behind the kernel's: it keeps a processor busy.
        command.args(["--jemalloc-bg-thread", "no"]);
    }
    command.args(&options.arguments);

    let process =
        Process::spawn(command).map_err(|error| StartError::io("start a process", error))?;
    let log = || fs::read_to_string(&log).unwrap_or_default();
    let process = await_answer(process, options, port, log)?;
    if let Some(clock) = clock {
        clock.check(process.pid())?;
    }
    Ok(process)
}

/// Gives `process` back once it answers; drops it, and so kills it, if it does not.
#[expect(
    clippy::disallowed_methods,
    reason = "a patience limit, not the deadline of a lease"
)]
fn await_answer(
    mut process: Process,
    options: &ServerOptions,
    port: u16,
    log: impl Fn() -> String,
) -> Result<Process, StartError> {
    let started = Instant::now();
    loop {
        if answers(process.pid(), options, port) {
            return Ok(process);
        }
        if !process.is_running() {
            let status = process.kill().ok();
            let log = log();
            return Err(if log.contains("Address already in use") {
                StartError::port_taken(port)
            } else {
                StartError::exited(status, &log)
            });
        }
        if started.elapsed() >= LIMIT {
            return Err(StartError::timed_out(LIMIT, &log()));
        }
        thread::sleep(POLL);
    }
}

/// Returns whether a server answers at `port`, and is the process `pid`.
///
/// If another program took the port, its server may answer there while ours is about to give up.
fn answers(pid: u32, options: &ServerOptions, port: u16) -> bool {
    let ask = |question: &[&str]| {
        let address = (Ipv4Addr::LOCALHOST, port).into();
        command::send(address, options.password.as_deref(), question, PROBE)
    };
    ask(&["PING"]).is_ok()
        && ask(&["INFO", "server"]).is_ok_and(|info| {
            let own = format!("process_id:{pid}");
            info.as_text()
                .is_some_and(|text| text.lines().any(|line| line == own))
        })
}

/// The file in which a Sentinel keeps what it knows, also over a restart.
pub(crate) const SENTINEL_FILE: &str = "sentinel.conf";
const LIMIT: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(2);
/// The limit of a probe: the socket of another program may accept it and say nothing.
const PROBE: Duration = Duration::from_millis(250);
