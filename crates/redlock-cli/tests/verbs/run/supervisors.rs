//! The process between the command and the holder of its lock: what it adopts, what it is told too early, and its death.

use std::{
    fs,
    io::{BufRead, BufReader, IoSlice, Write},
    mem::MaybeUninit,
    os::{
        fd::{AsFd, OwnedFd},
        unix::{net::UnixStream, process::CommandExt},
    },
    process::Command,
    time::Duration,
};

use redlock_core::AcquireErrorKind;
use rustix::{
    net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg},
    process::{Pid, Signal, kill_process},
};

use super::{Run, under};
use crate::kit::{Nodes, eventually};

/// A process's state and parent, as `/proc` has them.
fn state_of(pid: i32) -> Option<(String, i32)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut words = stat.rsplit_once(')')?.1.split_whitespace();
    Some((words.next()?.to_owned(), words.next()?.parse().ok()?))
}

/// The processes that a process started or adopted, with their states.
fn children(parent: i32) -> Vec<(i32, String)> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let states = pids.filter_map(|pid| Some((pid, state_of(pid)?)));
    let own = states.filter(|(_, (_, its))| *its == parent);
    own.map(|(pid, (state, _))| (pid, state)).collect()
}

/// The supervisor below a process that runs `redlock run`.
fn supervisor_of(run: u32) -> Pid {
    let children = children(i32::try_from(run).unwrap());
    let [(supervisor, _)] = &*children else {
        panic!("{children:?}")
    };
    Pid::from_raw(*supervisor).unwrap()
}

#[tokio::test]
async fn what_a_command_orphans_is_not_left_as_zombies() {
    const ORPHANS: usize = 20;
    let nodes = Nodes::blessed(3).await;
    let folder = tempfile::tempdir().unwrap();
    let told = folder.path().join("told");
    let script = r#"
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do (sh -c 'sleep 0.1; echo over >>"$TOLD"' &); done
while :; do sleep 0.02; done
"#;
    let mut child = under(&nodes, &[], &["sh", "-c", script])
        .env("TOLD", &told)
        .spawn()
        .unwrap();
    eventually("they are over", || {
        let told = fs::read_to_string(&told).unwrap_or_default();
        told.lines().count() == ORPHANS
    });
    let supervisor = supervisor_of(child.id());
    eventually("the command is all that is left", || {
        let left = children(supervisor.as_raw_nonzero().get());
        matches!(&*left, [(_, state)] if state != "Z")
    });
    drop(child.kill());
    drop(child.wait());
}

/// As when a key is pressed once the terminal is the supervisor's, and before that has an order.
#[test]
fn a_signal_to_a_supervisor_that_has_no_order_yet_reaches_the_command() {
    let (mut stream, of_supervisor) = UnixStream::pair().unwrap();
    let stdin = [std::io::stdin()];
    let stdin = stdin.each_ref().map(AsFd::as_fd);
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    control.push(SendAncillaryMessage::ScmRights(&stdin));
    let byte = [IoSlice::new(&[0])];
    sendmsg(&stream, &byte, &mut control, SendFlags::empty()).unwrap();
    let mut supervisor = Command::new(env!("CARGO_BIN_EXE_redlock"))
        .args(["__supervisor", "1", "sleep", "20"])
        .stdin(OwnedFd::from(of_supervisor))
        .process_group(0)
        .spawn()
        .unwrap();
    let mut news = BufReader::new(stream.try_clone().unwrap()).lines();
    let mut next = || news.next().transpose().unwrap();
    assert_eq!(next().as_deref(), Some(r#""Ready""#));
    kill_process(Pid::from_child(&supervisor), Signal::TERM).unwrap();
    // Times are since the machine was started: this one is far away.
    let far = u64::MAX / 1_000_000;
    writeln!(stream, r#"{{"term":{far},"kill":{far}}}"#).unwrap();
    assert_eq!(next().as_deref(), Some(r#""Started""#));
    assert_eq!(next().as_deref(), Some(r#"{"Exited":143}"#));
    assert_eq!(next(), None);
    assert_eq!(supervisor.wait().unwrap().code(), Some(143));
}

/// How often the command itself has said that it lives.
fn beats_of_the_leader(run: &Run) -> usize {
    let beats = fs::read_to_string(&run.beats).unwrap();
    beats.lines().filter(|line| *line == "leader").count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_ends_before_the_next_holder_though_its_holder_is_stopped_and_its_supervisor_killed()
 {
    ends_before_the_next_holder(Signal::KILL).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_ends_before_the_next_holder_though_its_holder_and_its_supervisor_are_stopped() {
    ends_before_the_next_holder(Signal::STOP).await;
}

/// Stops the holder, sends the supervisor this signal, and acquires the lock.
async fn ends_before_the_next_holder(signal: Signal) {
    let nodes = Nodes::blessed(3).await;
    let mut run = Run::stubborn(&nodes, &["run", "job"]);
    let client = nodes.client().await;
    let supervisor = supervisor_of(run.child.id());
    run.signal(Signal::STOP);
    kill_process(supervisor, signal).unwrap();
    let guard = super::next(&client).await;
    let before = beats_of_the_leader(&run);
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(
        beats_of_the_leader(&run),
        before,
        "it works beside the next holder"
    );
    // What the command has started is ended as soon as its holder goes on.
    run.signal(Signal::CONT);
    let code = run.code();
    assert!(code == 2 || code == 76, "{code}");
    run.is_over();
    guard.release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_whose_supervisor_is_killed_is_killed_and_its_lock_is_left_to_its_lease() {
    for program in [&[][..], &["setsid", "--wait"]] {
        let nodes = Nodes::blessed(3).await;
        let mut run = Run::started_by(&nodes, &["run", "job"], program);
        kill_process(supervisor_of(run.child.id()), Signal::KILL).unwrap();
        assert_eq!(run.code(), 2);
        run.is_over();
        let client = nodes.client().await;
        let refused = client.try_acquire("job").await.unwrap_err();
        assert_eq!(refused.kind(), AcquireErrorKind::Contended);
        drop(super::next(&client).await);
    }
}
