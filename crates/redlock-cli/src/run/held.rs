//! A command that runs under a lease: what it needs, and how it and the lock end.

use std::{ffi::OsString, io, time::Duration};

use redlock_core::{Lease, LockGuard, Redlock, ReleaseError, Term};
use tokio::time::timeout;

use super::{
    supervision::{CommandEnd, Supervision},
    tree::{self, own_program},
};
use crate::{
    clock::{duration, now},
    connection::{ConnectionArgs, NodeSettings, whole_ttl},
    context::CommandContext,
    context::signals::Signals,
    exit::{CommandError, Exit},
    nodes::votes,
};

/// The arguments of a command that runs under a lease.
#[derive(clap::Args, Debug)]
pub(super) struct HeldArgs {
    /// The time for which the lease outlasts this process, from 1s to --max-ttl; it is renewed while the command runs
    #[arg(long, value_name = "TIME", value_parser = duration)]
    ttl: Option<Duration>,

    /// The time between SIGTERM and SIGKILL for the command when the lease cannot be renewed, a third of the ttl at
    /// most [default: 5s, or that third]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    grace: Option<Duration>,

    #[command(flatten)]
    connection: ConnectionArgs,

    /// The command and its arguments, which no shell reads
    #[arg(required = true, last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// A command that is to run under a lease, and the signals for it.
pub(super) struct HeldCommand<'a> {
    command: Vec<OsString>,
    pub(super) settings: NodeSettings,
    pub(super) ttl: Duration,
    grace: Duration,
    pub(super) signals: Signals,
    context: &'a CommandContext,
}

/// The lock under which a command runs.
pub(super) enum HeldLock {
    Key(LockGuard),
    Role(Box<Term>),
}

impl<'a> HeldCommand<'a> {
    pub(super) async fn new(
        args: HeldArgs,
        context: &'a CommandContext,
    ) -> Result<Self, CommandError> {
        let settings = args.connection.settings().await?;
        let ttl = args.ttl.map_or_else(|| whole_ttl(&settings), Ok)?;
        let grace = grace(args.grace, ttl)?;
        // Both before the lock is asked for: from here on no signal is lost, and what can fail has not failed.
        let signals = Signals::new().map_err(|error| not_supervised(&error))?;
        own_program().map_err(|error| not_supervised(&error))?;
        Ok(Self {
            command: args.command,
            settings,
            ttl,
            grace,
            signals,
            context,
        })
    }

    /// Runs the command under the lock, and releases the lock; returns how that ended, and whether it was asked to end.
    pub(super) async fn run(
        &mut self,
        client: &Redlock,
        held: HeldLock,
        at_least: Duration,
    ) -> Result<(Exit, bool), CommandError> {
        let lease = held.lease().clone();
        if let Some(exit) = self.before_its_length(&lease).await {
            // It was not used, so its end may as well be left to the nodes.
            drop(held.release().await);
            return Ok((exit, true));
        }
        let held_since = now();
        // If the supervisor is killed, its descendants stay below this process.
        #[cfg(target_os = "linux")]
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
            .map_err(|error| not_supervised(&error.into()))?;
        let supervision = match Supervision::start(&self.command, &lease, self.grace).await {
            Ok(supervision) => supervision,
            // A key of the terminal also ends a supervisor that does not lead its group yet.
            Err(error) => match timeout(NOTICE, self.signals.interrupted()).await {
                Ok(signal) => return Ok((interrupted(signal), true)),
                Err(_) => return Err(not_supervised(&error)),
            },
        };
        let has_terminal = supervision.has_terminal();
        let ended = self.supervise(supervision, client, &lease).await;
        let Some((exit, is_to_end)) = ended else {
            // Its end would be its release, and what goes on must not meet the next holder: the lease outlives this process.
            Box::leak(Box::new(held));
            return Ok((Exit::Wrong, true));
        };
        if lease.is_held() {
            // What has not run here may run on another machine, and what was interrupted is to end now.
            let is_interrupted = has_terminal && matches!(exit, Exit::Child(INTERRUPTED | QUIT));
            let keeps = exit != Exit::Lost && !is_to_end && !is_interrupted;
            let at_least = if keeps { at_least } else { Duration::ZERO };
            let rest = at_least.saturating_sub(held_since.elapsed());
            let lost = tokio::select! {
                () = tokio::time::sleep(rest) => None,
                _ = self.signals.interrupted() => None,
                reason = lease.lost() => Some(reason),
            };
            // A lost lock needs no release.
            let complaint = match lost {
                Some(reason) => Some(format!(
                    "the lease was lost: {reason}; the lock is kept no longer"
                )),
                None => held.release().await.err().map(|error| error.to_string()),
            };
            // Nodes that do not renew a lease do not confirm its end either, and it was said already.
            if let Some(complaint) = complaint
                && exit != Exit::Lost
            {
                drop(self.context.output.complain(&complaint));
            }
        }
        let exit = match exit {
            Exit::Child(code @ (INTERRUPTED | QUIT)) if has_terminal => Exit::Key(code - 128),
            exit => exit,
        };
        Ok((exit, is_to_end))
    }

    /// Waits until the lease has its length: one that was given in line lasts for about a second at first, and a command
    /// that began under it would be told to end at once.
    ///
    /// Returns the exit if a signal or the loss of the lease comes before.
    async fn before_its_length(&mut self, lease: &Lease) -> Option<Exit> {
        let mut look = tokio::time::interval(LOOK);
        while lease.remaining() < self.ttl / 2 {
            tokio::select! {
                signal = self.signals.interrupted() => return Some(interrupted(signal)),
                reason = lease.lost() => {
                    let message = format!("the lease was lost before the command began: {reason}");
                    drop(self.context.output.complain(&message));
                    return Some(Exit::Lost);
                }
                _ = look.tick() => {}
            }
        }
        None
    }

    /// Runs the command until it ends or must not go on.
    ///
    /// Returns its exit, and whether that was asked for, or the command did not begin.
    /// Returns `None` if the supervisor died: then no process can tell whether the command goes on.
    async fn supervise(
        &mut self,
        mut supervision: Supervision,
        client: &Redlock,
        lease: &Lease,
    ) -> Option<(Exit, bool)> {
        let context = self.context;
        let exit = match supervision.hold(lease, &mut self.signals, context).await {
            CommandEnd::Exited(code) => Exit::Child(code),
            CommandEnd::NotStarted { code, reason } => {
                let command = self.command.first().map(|name| name.to_string_lossy());
                let command = command.unwrap_or_default();
                drop(context.output.complain(&format!("{command}: {reason}")));
                return Some((Exit::Child(code), true));
            }
            CommandEnd::Stopped => {
                let reason = match lease.is_held() {
                    true => "the lease could not be renewed".to_owned(),
                    false => format!("the lease was lost: {}", lease.lost().await),
                };
                let mut message = format!("{reason}; the command was stopped");
                let reports = client.node_reports().await;
                for report in reports.iter().filter(|report| !votes(report)) {
                    message += &format!("\n  {report}");
                }
                drop(context.output.complain(&message));
                Exit::Lost
            }
            CommandEnd::SupervisorDied { is_all, was_killed } => {
                let ended = if was_killed {
                    "was killed"
                } else {
                    "has ended by itself"
                };
                let killed = if is_all {
                    "the command was killed"
                } else {
                    "the command's group was killed; look whether anything else of it goes on"
                };
                let message = format!(
                    "the process that watches over the command {ended}: {killed}; the lock is left to its lease"
                );
                drop(context.output.complain(&message));
                return None;
            }
        };
        Some((exit, supervision.is_to_end()))
    }
}

impl HeldLock {
    fn lease(&self) -> &Lease {
        match self {
            Self::Key(guard) => guard.lease(),
            Self::Role(term) => term.lease(),
        }
    }

    async fn release(self) -> Result<(), ReleaseError> {
        match self {
            Self::Key(guard) => guard.release().await,
            Self::Role(term) => term.resign().await,
        }
    }
}

/// Returns how the command ends that a signal has ended before it had begun.
///
/// A script that its user interrupts must not go on behind it.
pub(super) fn interrupted(signal: Exit) -> Exit {
    match signal {
        Exit::Signal(number)
            if tree::has_terminal() && [INTERRUPTED, QUIT].contains(&(128 + number)) =>
        {
            Exit::Key(number)
        }
        signal => signal,
    }
}

fn not_supervised(error: &io::Error) -> CommandError {
    CommandError::wrong(format!("the command cannot be supervised: {error}"))
}

/// Returns how long the command has between the two signals that stop it.
///
/// Both must come before the lease is over, and a healthy lease may have a third of its time left when it is renewed.
fn grace(asked: Option<Duration>, ttl: Duration) -> Result<Duration, CommandError> {
    if ttl < SHORTEST {
        return Err(CommandError::wrong(format!(
            "a ttl of {ttl:?} leaves no time to stop a command: give {SHORTEST:?} at least"
        )));
    }
    let most = ttl / 3;
    match asked {
        Some(grace) if grace > most => Err(CommandError::wrong(format!(
            "--grace of {grace:?} is more than a third of the ttl of {ttl:?}; the command must be stopped before the lease is over: give at most {most:?}, or a longer --ttl"
        ))),
        Some(grace) => Ok(grace),
        None => Ok(GRACE.min(most)),
    }
}

/// How often a lease is looked at that has not its length yet.
const LOOK: Duration = Duration::from_millis(20);
/// The shortest lease under which a command can be stopped in time.
const SHORTEST: Duration = Duration::from_secs(1);
/// The exit codes of commands that Ctrl-C or Ctrl-\ ended.
const INTERRUPTED: u8 = 128 + 2;
const QUIT: u8 = 128 + 3;
const GRACE: Duration = Duration::from_secs(5);
/// How long a signal takes at most to be noticed here, once another process has ended by it.
const NOTICE: Duration = Duration::from_millis(200);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_grace_leaves_a_healthy_lease_alone() {
        let second = Duration::from_secs(1);
        assert_eq!(grace(None, 30 * second).unwrap(), 5 * second);
        assert_eq!(grace(None, 3 * second).unwrap(), second);
        assert_eq!(grace(Some(2 * second), 6 * second).unwrap(), 2 * second);
        let refused = grace(Some(2 * second), 5 * second).unwrap_err();
        assert!(refused.to_string().contains("longer --ttl"), "{refused}");
        assert!(grace(None, second / 2).is_err());
    }
}
