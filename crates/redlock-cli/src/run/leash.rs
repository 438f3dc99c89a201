//! The warden and its group, as the holder of the lock sees them.

use std::{ffi::OsString, io, os::unix::fs::PermissionsExt, process::Stdio, time::Duration};

use redlock_core::LockGuard;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, getpgrp, kill_process_group, waitid};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    net::{
        UnixListener,
        unix::{OwnedReadHalf, OwnedWriteHalf},
    },
    process::{Child, Command},
    time::{interval, timeout},
};

use super::{
    WARDEN,
    forward::Signals,
    line::{News, Until, since_start},
    terminal,
};
use crate::context::Context;

/// How the command ended.
#[derive(Debug)]
pub(super) enum End {
    /// By itself, with this exit code.
    Exited(u8),
    /// It never began.
    NotStarted { code: u8, reason: String },
    /// It was stopped because the lease was ending, or had ended.
    Stopped,
}

/// A warden that runs, with the command in its group.
#[derive(Debug)]
pub(super) struct Leash {
    // invariant: it is waited for at the very end only, so its id, which is the group's, is not another's before
    warden: Child,
    group: Pid,
    news: Lines<BufReader<OwnedReadHalf>>,
    orders: OwnedWriteHalf,
    grace: Duration,
    told: Option<Until>,
    /// Whether the group has the terminal.
    has_terminal: bool,
}

impl Leash {
    /// Starts a warden that starts the command.
    pub(super) async fn start(
        command: &[OsString],
        guard: &LockGuard,
        grace: Duration,
    ) -> io::Result<Self> {
        let folder = tempfile::Builder::new()
            .prefix("redlock-run-")
            .permissions(std::fs::Permissions::from_mode(0o700))
            .tempdir()?;
        let socket = folder.path().join("socket");
        let listener = UnixListener::bind(&socket)?;
        let mut warden = Command::new(own_program()?)
            .arg(WARDEN)
            .arg(&socket)
            .arg(getpgrp().as_raw_nonzero().to_string())
            .args(command)
            .env("REDLOCK_KEY", guard.key().as_str())
            .env("REDLOCK_FENCE", guard.token().to_string())
            .stdin(Stdio::inherit())
            .process_group(0)
            .spawn()?;
        let group = warden
            .id()
            .and_then(|id| Pid::from_raw(id.try_into().ok()?))
            .ok_or(io::ErrorKind::NotFound)?;
        let accepted = tokio::select! {
            accepted = timeout(PATIENCE, listener.accept()) => accepted,
            ended = warden.wait() => {
                return Err(io::Error::other(format!("its warden ended at once: {}", ended?)));
            }
        };
        let (stream, _) = accepted.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
        let (read, orders) = stream.into_split();
        let mut leash = Self {
            warden,
            group,
            news: BufReader::new(read).lines(),
            orders,
            grace,
            told: None,
            has_terminal: terminal::lend(group),
        };
        leash.tell(guard).await?;
        Ok(leash)
    }

    /// Keeps the warden told while the lease lasts, until the command has ended or was stopped.
    pub(super) async fn hold(
        &mut self,
        guard: &LockGuard,
        signals: &mut Signals,
        context: &Context,
    ) -> io::Result<End> {
        let (mut end, mut is_lost) = (None, false);
        let mut look = interval(LOOK);
        loop {
            tokio::select! {
                news = self.news.next_line() => match news.ok().flatten().map(|line| line.parse()) {
                    Some(Ok(News::Exited(code))) => end = end.or(Some(End::Exited(code))),
                    Some(Ok(News::NotStarted { code, reason })) => {
                        end = Some(End::NotStarted { code, reason });
                    }
                    Some(Ok(News::Stopping)) => {
                        end = Some(End::Stopped);
                        let message = "the lease cannot be renewed: stops the command";
                        drop(context.output.complain(message));
                    }
                    Some(Err(_)) => return Err(io::ErrorKind::InvalidData.into()),
                    None => break,
                },
                signal = signals.next() => self.signal(signal),
                _ = guard.lease().lost(), if !is_lost => {
                    is_lost = true;
                    end = Some(End::Stopped);
                    self.signal(Signal::KILL);
                }
                _ = look.tick() => {
                    // A warden that is gone is noticed by its silence.
                    drop(self.tell(guard).await);
                    self.keep_going(context);
                }
            }
        }
        let end = end.unwrap_or_else(|| {
            // The warden ended without a word, and its command may not have.
            self.signal(Signal::KILL);
            End::Stopped
        });
        self.warden.wait().await?;
        Ok(end)
    }

    /// Tells the warden until when the command may run, if that has changed.
    async fn tell(&mut self, guard: &LockGuard) -> io::Result<()> {
        // In this order, so that what is told is never later than the truth.
        let now = since_start();
        let left = guard.lease().remaining();
        let kill = now + millis(left).saturating_sub(MARGIN);
        let until = Until {
            term: kill.saturating_sub(millis(self.grace)),
            kill,
        };
        if self.told.is_none_or(|told| told.kill + 1 < until.kill) {
            self.orders.write_all(until.to_string().as_bytes()).await?;
            self.told = Some(until);
        }
        Ok(())
    }

    /// Lets a group go on that was stopped at the terminal, where nobody could start it again.
    fn keep_going(&self, context: &Context) {
        let stopped = WaitIdOptions::STOPPED | WaitIdOptions::NOHANG;
        if self.has_terminal && matches!(waitid(WaitId::Pid(self.group), stopped), Ok(Some(_))) {
            self.signal(Signal::CONT);
            let message = "a command that is stopped would lose its lock: it goes on";
            drop(context.output.complain(message));
        }
    }

    /// Sends a signal to the warden's group, which exists as long as the warden was not waited for.
    fn signal(&self, signal: Signal) {
        // It may have ended meanwhile.
        let _: Result<_, _> = kill_process_group(self.group, signal);
    }
}

/// Returns the program that runs, though another version may have been put in its place.
fn own_program() -> io::Result<std::path::PathBuf> {
    if cfg!(target_os = "linux") {
        Ok("/proc/self/exe".into())
    } else {
        std::env::current_exe()
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// How long before the end of the lease the group is killed, in milliseconds: for timers that are late.
const MARGIN: u64 = 150;

/// How often the lease is looked at.
const LOOK: Duration = Duration::from_millis(50);

/// How long the warden may take to come up.
const PATIENCE: Duration = Duration::from_secs(10);
