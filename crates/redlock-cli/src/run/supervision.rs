//! The supervisor and its group, as the holder of the lock sees them.

use std::{ffi::OsString, io, time::Duration};

use redlock_core::Lease;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, getpgrp, getpid, kill_process, kill_process_group, waitid,
};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    net::{
        UnixStream,
        unix::{OwnedReadHalf, OwnedWriteHalf},
    },
    process::{Child, Command},
    time::{interval, timeout},
};

use super::{
    SUPERVISOR,
    line::{CommandDeadline, SupervisorMessage, hand_over, read, since_start, written},
    tree::{self, own_program},
};
use crate::context::{CommandContext, signals::Signals};

/// How the command ended.
#[derive(Debug)]
pub(super) enum CommandEnd {
    /// By itself, with this exit code.
    Exited(u8),
    /// It never began.
    NotStarted { code: u8, reason: String },
    /// It was stopped because the lease was ending, or had ended.
    Stopped,
    /// Its supervisor was killed, or has ended by itself, and the processes of the command were killed that could be found:
    /// all of them if `is_all`.
    SupervisorDied { is_all: bool, was_killed: bool },
}

/// A supervisor that runs, with the command in its group.
#[derive(Debug)]
pub(super) struct Supervision {
    // invariant: it is waited for at the very end only, so its id, which is the group's, is not another's before
    supervisor: Child,
    group: Pid,
    news: Lines<BufReader<OwnedReadHalf>>,
    orders: OwnedWriteHalf,
    grace: Duration,
    told: Option<CommandDeadline>,
    /// Whether there is a command to which signals can be passed on.
    has_started: bool,
    /// How often the group was stopped because it wants the terminal.
    stops: u32,
    /// When the supervisor must have ended, once its command was killed.
    ends_at: Option<u64>,
    /// Whether the group was lent the terminal.
    has_terminal: bool,
    /// Whether a signal that ends the command was passed on.
    is_to_end: bool,
}

impl Supervision {
    /// Starts a supervisor that starts the command.
    pub(super) async fn start(
        command: &[OsString],
        lease: &Lease,
        grace: Duration,
    ) -> io::Result<Self> {
        let mut program = Command::new(own_program()?);
        program
            .arg(SUPERVISOR)
            .arg(getpgrp().as_raw_nonzero().to_string())
            .args(command)
            .env("REDLOCK_KEY", lease.key().as_str())
            .env("REDLOCK_FENCE", lease.token().to_string())
            .process_group(0);
        let stream = hand_over(program.as_std_mut())?;
        let mut supervisor = program.spawn()?;
        // Its end of the socket is its own.
        drop(program);
        let group = supervisor
            .id()
            .and_then(|id| Pid::from_raw(id.try_into().ok()?))
            .ok_or(io::ErrorKind::NotFound)?;
        let (read, orders) = UnixStream::from_std(stream)?.into_split();
        let mut news = BufReader::new(read).lines();
        // Before that, a key of the terminal would end it.
        let ready = timeout(PATIENCE, news.next_line()).await;
        if ready.map_err(|_| io::ErrorKind::TimedOut)??.is_none() {
            let ended = supervisor.wait().await?;
            return Err(io::Error::other(format!(
                "its supervisor ended at once: {ended}"
            )));
        }
        let mut supervision = Self {
            supervisor,
            group,
            news,
            orders,
            grace,
            told: None,
            has_started: false,
            stops: 0,
            ends_at: None,
            has_terminal: tree::lend(group),
            is_to_end: false,
        };
        supervision.tell(lease).await?;
        Ok(supervision)
    }

    /// Returns whether the command's group has the terminal, so that its keys reach only this group.
    pub(super) const fn has_terminal(&self) -> bool {
        self.has_terminal
    }

    /// Returns whether a signal has asked for the end of the command, or of what keeps the lock behind it.
    pub(super) const fn is_to_end(&self) -> bool {
        self.is_to_end
    }

    /// Tells the supervisor about each renewal of the lease, until the command has ended or was stopped.
    pub(super) async fn hold(
        &mut self,
        lease: &Lease,
        signals: &mut Signals,
        context: &CommandContext,
    ) -> CommandEnd {
        let (mut end, mut is_lost) = (None, false);
        // A supervisor says how the command has ended before it ends itself.
        let mut is_over = false;
        let mut look = interval(LOOK);
        loop {
            tokio::select! {
                news = self.news.next_line() => match news.ok().flatten().and_then(|line| read(&line)) {
                    Some(SupervisorMessage::Ready) => {}
                    Some(SupervisorMessage::Started) => self.has_started = true,
                    Some(SupervisorMessage::Exited(code)) => {
                        is_over = true;
                        end = end.or(Some(CommandEnd::Exited(code)));
                    }
                    Some(SupervisorMessage::NotStarted { code, reason }) => {
                        is_over = true;
                        end = Some(CommandEnd::NotStarted { code, reason });
                    }
                    Some(SupervisorMessage::Stopping) => {
                        end = Some(CommandEnd::Stopped);
                        let message = "the lease cannot be renewed: stops the command";
                        drop(context.output.complain(message));
                    }
                    // The supervisor is gone: no supervisor writes such a line.
                    None => break,
                },
                // The supervisor is not ended by it, so before that it would be lost.
                signal = signals.next(), if self.has_started => self.pass_on(signal),
                _ = lease.lost(), if !is_lost => {
                    is_lost = true;
                    end = Some(CommandEnd::Stopped);
                    self.end_all().await;
                }
                _ = look.tick() => {
                    // A supervisor that is gone is noticed by its silence.
                    drop(self.tell(lease).await);
                    if !self.continue_group(context) {
                        end = end.or(Some(CommandEnd::Exited(STUCK)));
                        self.end_all().await;
                    }
                    if self.ends_at.is_some_and(|at| since_start() >= at) {
                        // It does not answer.
                        tree::kill_below(self.group);
                        self.signal(Signal::KILL);
                    }
                }
            }
        }
        // Elsewhere than on Linux the supervisor kills itself with the command, and can say nothing more.
        let is_told = is_over || !cfg!(target_os = "linux");
        if let Some(end) = end.filter(|_| is_told) {
            // It has ended or was killed, and there is nothing to learn from how.
            drop(self.supervisor.wait().await);
            return end;
        }
        self.signal(Signal::KILL);
        // What has left the group is below this process now; another user's processes cannot be killed.
        let is_all = tree::kill_below(getpid());
        // A supervisor that is about to end keeps its exit code under this signal.
        let ended = self.supervisor.wait().await;
        match (is_lost || !lease.is_held()) && is_all {
            true => CommandEnd::Stopped,
            false => CommandEnd::SupervisorDied {
                is_all,
                was_killed: !ended.is_ok_and(|status| status.code().is_some()),
            },
        }
    }

    /// Tells the supervisor until when the command may run, if that has changed.
    async fn tell(&mut self, lease: &Lease) -> io::Result<()> {
        // The clock is read first, so that the time in the order is never later than the end of the lease.
        let now = since_start();
        let left = lease.remaining();
        let kill = now + millis(left).saturating_sub(MARGIN);
        let until = CommandDeadline {
            term: kill.saturating_sub(millis(self.grace)),
            kill,
        };
        let is_later = self.told.is_none_or(|told| told.kill + 1 < until.kill);
        if is_later && self.ends_at.is_none() {
            self.orders.write_all(&written(&until)).await?;
            self.told = Some(until);
        }
        Ok(())
    }

    /// Passes a signal on to the command.
    fn pass_on(&mut self, signal: Signal) {
        self.signal(signal);
        tree::signal_those_who_left(self.group, signal);
        if [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT].contains(&signal) {
            self.is_to_end = true;
            // A stopped process would not handle the signal.
            self.signal(Signal::CONT);
        }
    }

    /// Has the supervisor kill the command and all that it has started, and end then.
    ///
    /// Only the supervisor can: what the command leaves is below the supervisor only as long as the supervisor lives.
    async fn end_all(&mut self) {
        // The supervisor may have ended meanwhile.
        drop(
            self.orders
                .write_all(&written(&CommandDeadline::OVER))
                .await,
        );
        // It may be stopped with its group, of which nothing else is to go on.
        let _: Result<_, _> = kill_process(self.group, Signal::CONT);
        self.ends_at = Some(since_start() + LAST_WORD);
    }

    /// Continues the group if it was stopped at the terminal, where its user could not continue it.
    ///
    /// Returns `false` if that is in vain, because the group wants a terminal that it does not have.
    fn continue_group(&mut self, context: &CommandContext) -> bool {
        let stopped = WaitIdOptions::STOPPED | WaitIdOptions::NOHANG;
        let Ok(Some(status)) = waitid(WaitId::Pid(self.group), stopped) else {
            return true;
        };
        let wants = [Signal::TTIN.as_raw(), Signal::TTOU.as_raw()];
        if status
            .stopping_signal()
            .is_some_and(|signal| wants.contains(&signal))
        {
            // A command that was begun in the background may have been brought to the front meanwhile.
            if tree::lend(self.group) {
                self.stops = 0;
            } else {
                self.stops += 1;
            }
            if self.stops >= STOPS {
                let message = "the command wants the terminal, which it has only if input and output are the terminal's: it is ended";
                drop(context.output.complain(message));
                return false;
            }
        } else {
            let message = "a command that is stopped would lose its lock: it goes on";
            drop(context.output.complain(message));
        }
        tree::go_on(self.group);
        true
    }

    /// Sends a signal to the supervisor's group, which exists as long as the supervisor was not waited for.
    fn signal(&self, signal: Signal) {
        // It may have ended meanwhile.
        let _: Result<_, _> = kill_process_group(self.group, signal);
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// How long before the end of the lease the group is killed, in milliseconds: for timers that are late.
const MARGIN: u64 = 150;

/// How long a supervisor may take to end after its command was killed, in milliseconds.
const LAST_WORD: u64 = 1_000;

/// How often a command may be stopped because it wants the terminal.
const STOPS: u32 = 3;

/// The exit code of a command that wants a terminal that it does not have: that of `SIGTTIN`, as shells give it.
const STUCK: u8 = 128 + 21;

/// How often the lease is looked at.
const LOOK: Duration = Duration::from_millis(50);

/// How long the supervisor may take to come up.
const PATIENCE: Duration = Duration::from_secs(10);
