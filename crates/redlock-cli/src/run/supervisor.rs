//! The process that starts the command, leads its group, and outlives the process that holds the lock.
//!
//! It starts this program once more, which ties its life to the supervisor's and becomes the command.

use std::{
    ffi::OsString,
    io::{self, Write},
    os::unix::{
        net,
        process::{CommandExt, ExitStatusExt},
    },
    pin::pin,
    process::{self, ExitCode, ExitStatus, Stdio},
    time::Duration,
};

use futures_util::{FutureExt, future::FusedFuture};
#[cfg(target_os = "linux")]
use nix::{
    sys::{
        signal::{SigEvent, SigevNotify, Signal as SignalNumber},
        time::TimeSpec,
        timer::{Expiration, Timer, TimerSetTimeFlags},
    },
    time::ClockId,
};
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitOptions, getpgrp, getpid, getppid, kill_process,
    kill_process_group, waitid, waitpid,
};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Lines},
    net::{
        UnixStream,
        unix::{OwnedReadHalf, OwnedWriteHalf},
    },
    process::{Child, Command},
    runtime,
    time::interval,
};

use super::{
    line::{CommandDeadline, SupervisorMessage, hand_over, read, since_start, take_over, written},
    tree::{self, own_program},
};
use crate::context::signals::Signals;

/// The first argument of a supervisor, which no user types.
pub(crate) const SUPERVISOR: &str = "__supervisor";

/// Runs the supervisor; its arguments are the group that otherwise has the terminal, and the command.
pub(crate) fn supervisor(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let Ok(holder) = take_over() else {
        return ExitCode::FAILURE;
    };
    // A command is a child of the thread that starts it, which is the only one here.
    let runtime = runtime::Builder::new_current_thread().enable_all().build();
    let watched = runtime.and_then(|runtime| runtime.block_on(watch(arguments.collect(), holder)));
    // The holder notices a failure by the silence of the supervisor.
    watched.unwrap_or(ExitCode::FAILURE)
}

async fn watch(arguments: Vec<OsString>, holder: net::UnixStream) -> io::Result<ExitCode> {
    let [home, command @ ..] = &*arguments else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    if getpgrp() != getpid() {
        // It must never kill a group that it does not lead.
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // What the command starts stays below this process, whatever group it is in.
    #[cfg(target_os = "linux")]
    rustix::process::set_child_subreaper(Some(getpid()))?;
    let home = home.to_str().and_then(|id| Pid::from_raw(id.parse().ok()?));
    // Signals to the group are the command's.
    let mut signals = Signals::new()?;
    holder.set_nonblocking(true)?;
    let (orders, mut news) = UnixStream::from_std(holder)?.into_split();
    news.write_all(&written(&SupervisorMessage::Ready)).await?;
    let mut orders = BufReader::new(orders).lines();
    let Some(until) = order(&mut orders).await else {
        return Err(io::ErrorKind::UnexpectedEof.into());
    };
    if since_start() >= until.term {
        // So much time has passed meanwhile.
        return Err(io::ErrorKind::TimedOut.into());
    }
    let mut program = Command::new(own_program()?);
    let program = program.arg(COMMAND);
    program.arg(getpid().as_raw_nonzero().to_string());
    let of_command = hand_over(program.args(command).as_std_mut())?;
    let child = program.spawn();
    // The other end is the command's now.
    program.stdin(Stdio::null());
    let child = match child {
        Ok(child) => child,
        Err(error) => {
            return not_started(SupervisorMessage::not_started(&error), home, &mut news).await;
        }
    };
    let refusal = refusal(UnixStream::from_std(of_command)?);
    pass_on_early(&child, &mut signals).await;
    let held = (&mut orders, &mut news);
    let (status, was_stopped) = match attend(child, until, refusal, held, &mut signals).await? {
        Ok(ended) => ended,
        Err(why) => return not_started(why, home, &mut news).await,
    };
    if was_stopped {
        // What the command has left must not go on either.
        kill_all();
    }
    give_back(home);
    let code = code_of(status);
    // As above.
    drop(
        news.write_all(&written(&SupervisorMessage::Exited(code)))
            .await,
    );
    Ok(code.into())
}

/// Waits for the end of the command, and stops the command when its time is over.
///
/// Returns how the command ended, and whether it was stopped; or else why it did not begin.
async fn attend(
    mut child: Child,
    mut until: CommandDeadline,
    refusal: impl Future<Output = Option<SupervisorMessage>>,
    (orders, news): (&mut Lines<BufReader<OwnedReadHalf>>, &mut OwnedWriteHalf),
    signals: &mut Signals,
) -> io::Result<Result<(ExitStatus, bool), SupervisorMessage>> {
    let mut refusal = pin!(refusal.fuse());
    let mut last_resort = LastResort::new();
    let mut look = interval(LOOK);
    let mut was_stopped = false;
    let status = loop {
        last_resort.set(until.kill + LATE);
        tokio::select! {
            biased;
            refused = &mut refusal => match refused {
                Some(why) => {
                    child.wait().await?;
                    return Ok(Err(why));
                }
                // The process that holds the lock may be gone.
                None => drop(news.write_all(&written(&SupervisorMessage::Started)).await),
            },
            // A command that has not begun says why before it ends.
            status = child.wait(), if refusal.is_terminated() => break status?,
            told = order(orders) => match told {
                // No process renews the lease any longer.
                Some(CommandDeadline::OVER) | None => {
                    was_stopped = true;
                    break kill(&mut child, last_resort).await?;
                }
                Some(later) => until = later,
            },
            _ = look.tick() => {
                reap(&child);
                let now = since_start();
                if now >= until.kill {
                    was_stopped = true;
                    break kill(&mut child, last_resort).await?;
                }
                if now >= until.term && !was_stopped {
                    was_stopped = true;
                    // As above.
                    drop(news.write_all(&written(&SupervisorMessage::Stopping)).await);
                    // The command may be stopped at the terminal, where it would not see the first of them.
                    for signal in [Signal::TERM, Signal::CONT] {
                        to_all(signal);
                        tree::signal_those_who_left(getpid(), signal);
                    }
                }
            }
            _ = signals.next() => {}
        }
    };
    Ok(Ok((status, was_stopped)))
}

/// Kills all that the command has started, and waits for its end.
async fn kill(child: &mut Child, last_resort: LastResort) -> io::Result<ExitStatus> {
    // This process is not stopped, and is not to be killed before it has done this.
    drop(last_resort);
    kill_all();
    child.wait().await
}

/// Waits until a command has begun; returns why it has not, if it cannot be started.
async fn refusal(mut of_command: UnixStream) -> Option<SupervisorMessage> {
    let mut line = String::new();
    of_command.read_to_string(&mut line).await.ok()?;
    read(&line)
}

/// Passes on to the command what was sent to the group before the command was in it.
async fn pass_on_early(child: &Child, signals: &mut Signals) {
    let pid = child.id().and_then(|id| Pid::from_raw(id.try_into().ok()?));
    let Some(pid) = pid else { return };
    // The runtime hears of signals when it is given a turn.
    tokio::task::yield_now().await;
    while let Some(signal) = signals.next().now_or_never() {
        // No task waits for the command yet, so the id is still its own.
        let _: Result<_, _> = kill_process(pid, signal);
    }
}

/// Waits for the next order; `None` if there will be none, or none that can be read.
async fn order(orders: &mut Lines<BufReader<OwnedReadHalf>>) -> Option<CommandDeadline> {
    read(&orders.next_line().await.ok()??)
}

async fn not_started(
    why: SupervisorMessage,
    home: Option<Pid>,
    news: &mut OwnedWriteHalf,
) -> io::Result<ExitCode> {
    give_back(home);
    news.write_all(&written(&why)).await?;
    Ok(ExitCode::FAILURE)
}

fn give_back(home: Option<Pid>) {
    if let Some(home) = home {
        tree::give_back(home);
    }
}

/// Returns the exit code as shells give it.
fn code_of(status: ExitStatus) -> u8 {
    let signal = status.signal().map(|signal| 128 + signal);
    let code = status.code().or(signal).unwrap_or(1);
    u8::try_from(code).unwrap_or(1)
}

/// Waits for the orphans of the command that have ended, so that they do not stay as zombies.
fn reap(command: &Child) {
    let any = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    if !matches!(waitid(WaitId::All, any), Ok(Some(_))) {
        // Nearly always there is none, which saves the look at all processes.
        return;
    }
    let command = command.id().and_then(|id| i32::try_from(id).ok());
    for orphan in tree::zombies_of(getpid()) {
        // The runtime waits for the command itself.
        if Some(orphan.as_raw_nonzero().get()) != command {
            let _: Result<_, _> = waitpid(Some(orphan), WaitOptions::NOHANG);
        }
    }
}

/// Kills all that the command has started; where that cannot be seen, the whole group and this process with it.
fn kill_all() {
    if !tree::kill_below(getpid()) {
        to_all(Signal::KILL);
    }
}

fn to_all(signal: Signal) {
    // The group is this process's own, so there is one.
    let _: Result<_, _> = kill_process_group(getpgrp(), signal);
}

/// The first argument of a command that has not begun, which no user types.
pub(crate) const COMMAND: &str = "__command";

/// Becomes the command: the id of the supervisor and the command are its arguments.
///
/// Returns if the command cannot be started, after a message to the supervisor that says why.
pub(crate) fn become_command(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<_> = arguments.collect();
    let Ok(mut supervisor) = take_over() else {
        return ExitCode::FAILURE;
    };
    let error = begin(&arguments);
    let news = SupervisorMessage::not_started(&error);
    // The supervisor may be gone.
    drop(supervisor.write_all(&written(&news)));
    ExitCode::FAILURE
}

/// Returns why the command cannot begin.
fn begin(arguments: &[OsString]) -> io::Error {
    let [supervisor, command, rest @ ..] = arguments else {
        return io::ErrorKind::InvalidInput.into();
    };
    // The kernel ends the command with its supervisor, also when no process is left that could.
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::set_parent_process_death_signal(Some(Signal::KILL)) {
        return error.into();
    }
    let supervisor = supervisor
        .to_str()
        .and_then(|id| Pid::from_raw(id.parse().ok()?));
    if getppid() != supervisor {
        // It ended before that.
        return io::ErrorKind::BrokenPipe.into();
    }
    process::Command::new(command).args(rest).exec()
}

/// A timer that kills this process, and with it the command, unless it is set again or dropped.
///
/// A process that is stopped cannot look at a clock. Other systems than Linux have no such timer.
struct LastResort(#[cfg(target_os = "linux")] Option<Timer>);

#[cfg(target_os = "linux")]
impl LastResort {
    /// Makes a timer that is not set; where the system has none left, it never is.
    fn new() -> Self {
        let kill = SigEvent::new(SigevNotify::SigevSignal {
            signal: SignalNumber::SIGKILL,
            si_value: 0,
        });
        Self(Timer::new(ClockId::CLOCK_BOOTTIME, kill).ok())
    }

    /// Sets it to this time, in milliseconds since the machine was started.
    fn set(&mut self, at: u64) {
        let at = TimeSpec::from_duration(Duration::from_millis(at));
        if let Some(timer) = &mut self.0 {
            let flags = TimerSetTimeFlags::TFD_TIMER_ABSTIME;
            // It fails for no time that a lease has.
            let _: Result<_, _> = timer.set(Expiration::OneShot(at), flags);
        }
    }
}

#[cfg(not(target_os = "linux"))]
impl LastResort {
    const fn new() -> Self {
        Self()
    }

    #[expect(clippy::unused_self, reason = "as where there is one")]
    fn set(&mut self, _: u64) {}
}

/// How often the clock is looked at: timers stand still while the machine is suspended.
const LOOK: Duration = Duration::from_millis(50);

/// How much later than this process the kernel kills the command, in milliseconds.
const LATE: u64 = 100;
