//! Commands over a connection of ours, with a server that is the other end of a pipe in memory.

#[cfg(unix)]
mod moves;
mod streams;

use std::{
    io,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
        mpsc,
    },
    task::{Context, Poll, Waker},
    thread,
    time::Duration,
};

use deadpool_redis::redis::{Cmd, IntoConnectionInfo, RedisResult, Value, cmd};
use futures_util::{FutureExt, future::join, poll};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, DuplexStream, ReadBuf, duplex},
    task::JoinSet,
    time::timeout,
};

use self::streams::{Bell, Dropper, Read};
use super::{super::error::call_error, Answered, Direct, Pipe};

const SOON: Duration = Duration::from_secs(10);

fn connected() -> (Pipe, DuplexStream) {
    let (ours, theirs) = duplex(64);
    (Pipe::new(Box::pin(ours)), theirs)
}

fn echo(text: &str) -> Cmd {
    let mut cmd = cmd("ECHO");
    cmd.arg(text);
    cmd
}

fn said(text: &str) -> RedisResult<Answered> {
    Ok(alone(Value::BulkString(text.as_bytes().to_vec())))
}

fn alone(answer: Value) -> Answered {
    let cause = None;
    Answered { answer, cause }
}

/// Reads an `ECHO`, and returns what is to be said.
async fn read_echo(server: &mut DuplexStream) -> String {
    let mut text = String::new();
    for _ in 0..5 {
        text = read_line(server).await;
    }
    text
}

async fn read_line(server: &mut DuplexStream) -> String {
    let mut line = Vec::new();
    while !line.ends_with(b"\r\n") {
        line.push(server.read_u8().await.expect("the client is there"));
    }
    String::from_utf8_lossy(&line).trim_end().to_owned()
}

async fn say(server: &mut DuplexStream, text: &str) {
    let answer = format!("${}\r\n{text}\r\n", text.len());
    server
        .write_all(answer.as_bytes())
        .await
        .expect("the client is there");
}

/// Returns a connection over which a server sends the beginning of an answer, and then more as fast as it is read;
/// counts the reads.
fn flooded(mut beginning: &'static [u8]) -> (Pipe, Arc<AtomicUsize>) {
    let reads = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&reads);
    let read = move |_: &mut Context<'_>, buffer: &mut ReadBuf<'_>| {
        count.fetch_add(1, Ordering::Relaxed);
        match std::mem::take(&mut beginning) {
            b"" => {
                let length = buffer.remaining().min(1_000);
                buffer.initialize_unfilled_to(length).fill(b'x');
                buffer.advance(length);
            }
            beginning => buffer.put_slice(beginning),
        }
        Poll::Ready(Ok(()))
    };
    (Pipe::new(Box::pin(Read(read))), reads)
}

#[test]
fn an_answer_that_comes_without_a_pause_lets_others_have_their_turn() {
    let (pipe, reads) = flooded(b"$3000000\r\n");
    let command = echo("a");
    let mut asking = pin!(pipe.ask(&command));
    let bell = Arc::new(Bell::default());
    let waker = Waker::from(Arc::clone(&bell));
    let cx = &mut Context::from_waker(&waker);
    let mut answer = asking.as_mut().poll(cx);
    let mut polls = 0;
    while answer.is_pending() && polls < 1_000 {
        let (woken, read) = (
            bell.0.swap(0, Ordering::Relaxed),
            reads.swap(0, Ordering::Relaxed),
        );
        assert!(woken > 0, "it hangs after {polls} looks");
        assert!(read <= 16, "{read} reads in one look");
        polls += 1;
        answer = asking.as_mut().poll(cx);
    }
    // Nothing but `x` follows, where the end of the line is to be.
    let Poll::Ready(Err(error)) = answer else {
        panic!("{answer:?}");
    };
    assert!(call_error(&error).session_lost, "{error}");
}

#[test]
fn an_answer_without_end_ends_the_connection_before_it_takes_memory() {
    for beginning in [&b"$99999999999\r\n"[..], b"*99999999999\r\n", b"+"] {
        let (pipe, reads) = flooded(beginning);
        let command = echo("a");
        let mut asking = pin!(pipe.ask(&command));
        let cx = &mut Context::from_waker(Waker::noop());
        let looked = (0..5).find_map(|_| match asking.as_mut().poll(cx) {
            Poll::Ready(answer) => Some(answer),
            Poll::Pending => None,
        });
        let error = looked.expect("it does not go on").unwrap_err();
        assert!(call_error(&error).session_lost, "{error}");
        assert!(reads.load(Ordering::Relaxed) <= 80);
    }
}

#[tokio::test]
async fn a_connection_that_the_system_gave_up_is_lost_and_not_only_late() {
    // The system has sent in vain.
    let read =
        |_: &mut Context<'_>, _: &mut ReadBuf<'_>| Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
    let pipe = Pipe::new(Box::pin(Read(read)));
    for _ in 0..2 {
        let error = soon(pipe.ask(&echo("a"))).await.unwrap_err();
        let lost = call_error(&error);
        assert!(lost.session_lost && lost.may_have_run, "{lost:?}");
    }
}

#[test]
fn a_waker_may_drop_its_task_at_once() {
    for becomes in [io::ErrorKind::WouldBlock, io::ErrorKind::ConnectionReset] {
        let (done, is_done) = mpsc::channel();
        thread::spawn(move || {
            let is_odd = Arc::new(AtomicBool::new(false));
            let odd = Arc::clone(&is_odd);
            let read = move |cx: &mut Context<'_>, _: &mut ReadBuf<'_>| {
                if !odd.load(Ordering::Relaxed) {
                    Poll::Pending
                } else if becomes == io::ErrorKind::WouldBlock {
                    // As a stream of tokio does, when its task has done enough for now.
                    cx.waker().wake_by_ref();
                    Poll::Pending
                } else {
                    Poll::Ready(Err(becomes.into()))
                }
            };
            let pipe = Pipe::new(Box::pin(Read(read)));
            let dropper = Arc::new(Dropper::default());
            let waker = Waker::from(Arc::clone(&dropper));
            let other = pipe.clone();
            let mut waits = async move { other.ask(&echo("waits")).await }.boxed();
            for _ in 0..2 {
                let cx = &mut Context::from_waker(&waker);
                assert!(waits.poll_unpin(cx).is_pending());
            }
            *dropper.0.lock().unwrap() = Some(waits);
            is_odd.store(true, Ordering::Relaxed);
            let command = echo("looks");
            let mut looks = pin!(pipe.ask(&command));
            for _ in 0..2 {
                let cx = &mut Context::from_waker(Waker::noop());
                drop(looks.as_mut().poll(cx));
            }
            let is_dropped = dropper.0.lock().unwrap().is_none();
            done.send(is_dropped).unwrap();
        });
        let is_dropped = is_done.recv_timeout(SOON);
        assert_eq!(is_dropped, Ok(true), "{becomes:?}");
    }
}

async fn soon<F: Future>(work: F) -> F::Output {
    timeout(SOON, work).await.expect("it does not hang")
}

#[tokio::test]
async fn commands_of_one_task_are_answered_each_with_its_own() {
    let (pipe, mut server) = connected();
    let (one, other) = (echo("one"), echo("other"));
    // More than the pipe takes at once.
    let long = "long".repeat(100);
    let third = echo(&long);
    let serve = async {
        for _ in 0..3 {
            let text = read_echo(&mut server).await;
            say(&mut server, &text).await;
        }
    };
    let asked = join(join(pipe.ask(&one), pipe.ask(&other)), pipe.ask(&third));
    let (((first, second), third), ()) = soon(join(asked, serve)).await;
    assert_eq!(
        (first, second, third),
        (said("one"), said("other"), said(&long))
    );
}

#[tokio::test]
async fn an_answer_that_another_task_has_read_wakes_the_one_that_waits_for_it() {
    let (pipe, mut server) = connected();
    let mut tasks = JoinSet::new();
    for text in ["one", "other"] {
        let pipe = pipe.clone();
        tasks.spawn(async move { assert_eq!(pipe.ask(&echo(text)).await, said(text)) });
    }
    let first = soon(read_echo(&mut server)).await;
    let second = soon(read_echo(&mut server)).await;
    // In one piece, so that the task that is woken first reads both.
    let both = format!(
        "${}\r\n{first}\r\n${}\r\n{second}\r\n",
        first.len(),
        second.len()
    );
    server.write_all(both.as_bytes()).await.unwrap();
    while let Some(task) = soon(tasks.join_next()).await {
        task.unwrap();
    }
}

#[tokio::test]
async fn a_command_that_is_given_up_is_sent_and_its_answer_goes_to_nobody_else() {
    let (pipe, mut server) = connected();
    let (given_up, next) = (echo("given up"), echo("next"));
    {
        let mut asking = pin!(pipe.ask(&given_up));
        assert!(poll!(&mut asking).is_pending());
    }
    assert_eq!(soon(read_echo(&mut server)).await, "given up");
    let mut asking = pin!(pipe.ask(&next));
    assert!(poll!(&mut asking).is_pending());
    assert!(poll!(&mut asking).is_pending());
    assert_eq!(soon(read_echo(&mut server)).await, "next");
    say(&mut server, "given up").await;
    assert!(poll!(&mut asking).is_pending(), "that was not for it");
    say(&mut server, "next").await;
    assert_eq!(soon(asking).await, said("next"));
}

#[tokio::test]
async fn what_does_not_fit_of_a_command_that_is_given_up_is_sent_before_the_next() {
    let (pipe, mut server) = connected();
    let long = "long".repeat(100);
    let (given_up, next) = (echo(&long), echo("next"));
    {
        let mut asking = pin!(pipe.ask(&given_up));
        assert!(poll!(&mut asking).is_pending());
    }
    let serve = async {
        assert_eq!(read_echo(&mut server).await, long);
        say(&mut server, "long").await;
        assert_eq!(read_echo(&mut server).await, "next");
        say(&mut server, "next").await;
    };
    let (answer, ()) = soon(join(pipe.ask(&next), serve)).await;
    assert_eq!(answer, said("next"));
}

#[tokio::test]
async fn a_command_is_sent_at_its_first_poll_which_wakes_no_task() {
    let (pipe, mut server) = connected();
    let command = echo("a");
    let mut asking = pin!(pipe.ask(&command));
    let bell = Arc::new(Bell::default());
    let waker = Waker::from(Arc::clone(&bell));
    let polled = asking.as_mut().poll(&mut Context::from_waker(&waker));
    assert!(polled.is_pending());
    assert_eq!(soon(read_echo(&mut server)).await, "a");
    assert_eq!(bell.0.load(Ordering::Relaxed), 0);
    say(&mut server, "a").await;
    assert_eq!(bell.0.load(Ordering::Relaxed), 1);
    assert_eq!(soon(asking).await, said("a"));
}

#[tokio::test]
async fn a_command_that_was_never_polled_is_not_sent() {
    let (pipe, mut server) = connected();
    drop(pipe.ask(&echo("never")));
    drop(pipe);
    assert_eq!(server.read(&mut [0; 8]).await.unwrap(), 0);
}

#[tokio::test]
async fn answers_that_come_in_pieces_are_put_together() {
    let (pipe, mut server) = connected();
    let command = echo("a text");
    let serve = async {
        read_echo(&mut server).await;
        for byte in b"$6\r\na text\r\n" {
            server.write_all(&[*byte]).await.unwrap();
            tokio::task::yield_now().await;
        }
    };
    let (answer, ()) = soon(join(pipe.ask(&command), serve)).await;
    assert_eq!(answer, said("a text"));
}

#[tokio::test]
async fn an_answer_longer_than_the_buffer_is_read() {
    let (pipe, mut server) = connected();
    let command = echo("x");
    let long = "y".repeat(100_000);
    let serve = async {
        read_echo(&mut server).await;
        say(&mut server, &long).await;
    };
    let (answer, ()) = soon(join(pipe.ask(&command), serve)).await;
    assert_eq!(answer, said(&long));
}

#[tokio::test]
async fn a_server_that_hangs_up_has_answered_what_it_answered() {
    let (pipe, mut server) = connected();
    let (answered, unanswered) = (echo("answered"), echo("unanswered"));
    let serve = async {
        let text = read_echo(&mut server).await;
        read_echo(&mut server).await;
        say(&mut server, &text).await;
        drop(server);
    };
    let asked = join(pipe.ask(&answered), pipe.ask(&unanswered));
    let ((first, second), ()) = soon(join(asked, serve)).await;
    assert_eq!(first, said("answered"));
    assert!(second.unwrap_err().is_connection_dropped());
    let late = pipe.ask(&answered).now_or_never();
    assert!(late.expect("there is nothing to wait for").is_err());
}

#[tokio::test]
async fn what_nobody_asked_for_ends_the_connection() {
    let (pipe, mut server) = connected();
    let command = echo("a");
    let serve = async {
        read_echo(&mut server).await;
        server.write_all(b"+one\r\n+too many\r\n").await.unwrap();
    };
    let (first, ()) = soon(join(pipe.ask(&command), serve)).await;
    assert_eq!(first, Ok(alone(Value::SimpleString("one".to_owned()))));
    assert!(soon(pipe.ask(&command)).await.is_err());
}

#[tokio::test]
async fn an_answer_that_makes_no_sense_ends_the_connection_and_is_told_as_such() {
    let (pipe, mut server) = connected();
    let command = echo("a");
    let serve = async {
        read_echo(&mut server).await;
        server.write_all(b"what?\r\n").await.unwrap();
    };
    let (answer, ()) = soon(join(pipe.ask(&command), serve)).await;
    let error = call_error(&answer.unwrap_err());
    assert!(
        error.session_lost && error.reason.contains("makes no sense"),
        "{error:?}"
    );
}

#[test]
fn only_plain_connections_are_made_here() {
    let is_ours = |url: &str| {
        let info = url.into_connection_info().unwrap();
        Direct::new(&info, SOON).is_some()
    };
    assert!(is_ours("redis://user:secret@host:6380/3"));
    assert!(is_ours("redis+unix:///tmp/redis.sock") == cfg!(unix));
    assert!(!is_ours("redis://host?protocol=resp3"));
    #[cfg(feature = "tls-rustls")]
    assert!(!is_ours("rediss://host"));
}
