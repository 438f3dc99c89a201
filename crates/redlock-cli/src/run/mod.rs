//! `redlock run` and `redlock elect`: a command under a lock, and one that a leader runs.
//!
//! Three processes take part.
//! This one holds the lock.
//! It starts a *warden*, which leads a process group of its own and starts the command in it.
//! The kernel ends the command with the warden.
//! Over a socket, this process tells the warden until when the command may run, again after each renewal of the lease.
//! Without a later time the warden stops the group before the lease ends, because this process may be killed, stopped
//! or cut off from the nodes.
//! If the warden is stopped, too, the kernel kills it in time.

mod elect;
mod leash;
mod line;
mod tree;
mod warden;

use std::{
    ffi::OsString,
    io,
    path::{Path, PathBuf},
    pin::pin,
    time::Duration,
};

use redlock_core::{
    AcquireError, AcquireErrorKind, AcquireOptions, BuildErrorKind, Lease, LockGuard, NodeReport,
    Redlock, ReleaseError, ResourceKey, Term, Wait,
};
use tokio::time::timeout;

use self::leash::{CommandEnd, Leash};
pub(crate) use self::{
    elect::{ElectArgs, elect},
    tree::press,
    warden::{LEASHED, WARDEN, leashed, warden},
};
use crate::{
    clock::{duration, now},
    connection::{ConnectionArgs, NodeSettings},
    context::CommandContext,
    exit::{CommandError, CommandResult, Exit},
    nodes::{ready_in, votes},
    signals::Signals,
};

/// Runs a command while it holds a lock, and stops it before another holder can get the lock
#[derive(clap::Args, Debug)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct RunArgs {
    /// The resource to lock
    key: String,

    /// The time to wait for the lock, including a quarantine and an outage of the nodes; 0s makes one attempt [env:
    /// REDLOCK_WAIT] [default: 10s, and 2s of an outage]
    #[arg(long, value_name = "TIME", value_parser = duration, conflicts_with = "no_wait")]
    wait: Option<Duration>,

    /// Gives up at once if another holder has the lock
    #[arg(short = 'n', long)]
    no_wait: bool,

    /// The exit code if another holder has the lock
    #[arg(short = 'E', long, value_name = "CODE", default_value_t = 75)]
    conflict_exit_code: u8,

    /// Keeps the lock for this time at least, for commands that end before other machines have begun; a signal or
    /// the loss of the lease ends this
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "0s")]
    at_least: Duration,

    #[command(flatten)]
    held: HeldArgs,
}

/// The arguments of a command that runs under a lease.
#[derive(clap::Args, Debug)]
struct HeldArgs {
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
struct HeldCommand<'a> {
    command: Vec<OsString>,
    settings: NodeSettings,
    ttl: Duration,
    grace: Duration,
    signals: Signals,
    context: &'a CommandContext,
}

/// The lock under which a command runs.
enum HeldLock {
    Key(LockGuard),
    Role(Box<Term>),
}

const EXIT_CODES: &str = "\
Example:
  redlock run nightly-report --wait 1m -- ./report.sh --all

Exit codes:
  the command's own, or 128 and the number of the signal that ended it
  69   no quorum: too few nodes granted the lock
  75   somebody else has the lock (-E)
  76   the lease was lost, and the command was stopped
  126  the command cannot be run
  127  there is no such command
  2    wrong: bad usage or configuration, or the command cannot be supervised any more

The command finds the resource in REDLOCK_KEY and its fencing token in REDLOCK_FENCE.
SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1 and SIGUSR2 are passed on to its process group; before it has begun, each of them
ends the wait.";

/// Runs the command under the lock.
pub(crate) async fn run(args: RunArgs, context: &CommandContext) -> CommandResult {
    let mut held = HeldCommand::new(args.held, context).await?;
    let settings = &held.settings;
    let key = args.key.parse::<ResourceKey>()?;
    let longest = match args.no_wait {
        true => Duration::ZERO,
        false => args.wait.or(settings.config.wait).unwrap_or(WAIT),
    };
    let mut options = AcquireOptions::new().ttl(held.ttl).class("run");
    options = match longest {
        Duration::ZERO => options.wait(Wait::Never),
        longest => options.wait(Wait::UpTo(longest)),
    };
    if let Some(wait) = args.wait {
        // An explicit wait is also the wait for a quorum.
        options = options.quorum_wait(wait);
    }
    let mut builder = settings.builder();
    if longest > settings.connect_timeout() {
        // Nodes that are down now may be back within the wait; a shorter one is not for connections.
        builder = builder.connect_lazily();
    }
    let client = tokio::select! {
        biased;
        signal = held.signals.interrupted() => return Ok(interrupted(signal)),
        client = context.client(builder) => client,
    };
    let client = match client {
        Err(error) if error.kind() == BuildErrorKind::NoQuorum => {
            drop(context.output.complain(&error.to_string()));
            return Ok(Exit::Unavailable);
        }
        client => client?,
    };
    client
        .check(&options)
        .map_err(|error| CommandError::wrong(error.to_string()))?;
    let acquired = tokio::select! {
        biased;
        signal = held.signals.interrupted() => return Ok(interrupted(signal)),
        acquired = acquire(&client, key, options, context) => acquired,
    };
    let guard = match acquired {
        Ok(guard) => guard,
        Err(error) => {
            drop(context.output.complain(&error.to_string()));
            return Ok(unacquired(&error, args.conflict_exit_code));
        }
    };
    let (exit, _) = held
        .run(&client, HeldLock::Key(guard), args.at_least)
        .await?;
    Ok(exit)
}

impl<'a> HeldCommand<'a> {
    async fn new(args: HeldArgs, context: &'a CommandContext) -> Result<Self, CommandError> {
        let settings = args.connection.settings().await?;
        let ttl = args.ttl.map_or_else(|| settings.whole_ttl(), Ok)?;
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
    async fn run(
        &mut self,
        client: &Redlock,
        held: HeldLock,
        at_least: Duration,
    ) -> Result<(Exit, bool), CommandError> {
        let held_since = now();
        let lease = held.lease().clone();
        // If the warden is killed, its descendants stay below this process.
        #[cfg(target_os = "linux")]
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
            .map_err(|error| not_supervised(&error.into()))?;
        let leash = match Leash::start(&self.command, &lease, self.grace).await {
            Ok(leash) => leash,
            // A key of the terminal also ends a warden that does not lead its group yet.
            Err(error) => match timeout(NOTICE, self.signals.interrupted()).await {
                Ok(signal) => return Ok((interrupted(signal), true)),
                Err(_) => return Err(not_supervised(&error)),
            },
        };
        let has_terminal = leash.has_terminal();
        let ended = self.supervise(leash, client, &lease).await;
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

    /// Runs the command until it ends or must not go on.
    ///
    /// Returns its exit, and whether that was asked for, or the command did not begin.
    /// Returns `None` if the warden died: then no process can tell whether the command goes on.
    async fn supervise(
        &mut self,
        mut leash: Leash,
        client: &Redlock,
        lease: &Lease,
    ) -> Option<(Exit, bool)> {
        let context = self.context;
        let exit = match leash.hold(lease, &mut self.signals, context).await {
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
            CommandEnd::WardenDied { is_all } => {
                let killed = if is_all {
                    "so is the command"
                } else {
                    "so is the command's group; look whether anything else of it goes on"
                };
                let message = format!(
                    "the process that watches over the command was killed: {killed}; the lock is left to its lease"
                );
                drop(context.output.complain(&message));
                return None;
            }
        };
        Some((exit, leash.is_to_end()))
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

/// Acquires the lock; says what it waits for if that takes long.
async fn acquire(
    client: &Redlock,
    key: ResourceKey,
    options: AcquireOptions,
    context: &CommandContext,
) -> Result<LockGuard, AcquireError> {
    let mut acquired = pin!(client.acquire_with(key, options));
    tokio::select! {
        biased;
        acquired = &mut acquired => return acquired,
        () = tokio::time::sleep(PATIENCE) => {}
    }
    if let Some(ready_in) = quarantine(client).await {
        let seconds = ready_in.as_secs_f64();
        let message = format!(
            "waits: nodes that may have forgotten leases do not vote for {seconds:.1} s more"
        );
        // Standard error may be closed: the command gets the lock all the same.
        drop(context.output.complain(&message));
    }
    acquired.await
}

/// Returns for how long a majority is missing because of nodes in quarantine, if it is.
async fn quarantine(client: &Redlock) -> Option<Duration> {
    let reports = client.node_reports().await;
    let wait = |report: &NodeReport| match votes(report) {
        true => Some(Duration::ZERO),
        false => ready_in(report),
    };
    let waits: Option<Vec<Duration>> = reports.iter().map(wait).collect();
    let mut waits = waits.unwrap_or_default();
    waits.sort_unstable();
    let last = waits.get(client.majority() - 1)?;
    (!last.is_zero()).then_some(*last)
}

/// Returns how the command ends that a signal has ended before it had begun.
///
/// A script that its user interrupts must not go on behind it.
fn interrupted(signal: Exit) -> Exit {
    match signal {
        Exit::Signal(number)
            if tree::has_terminal() && [INTERRUPTED, QUIT].contains(&(128 + number)) =>
        {
            Exit::Key(number)
        }
        signal => signal,
    }
}

/// Returns how the command ends without the lock.
fn unacquired(error: &AcquireError, conflict: u8) -> Exit {
    match error.kind() {
        AcquireErrorKind::Contended => Exit::Child(conflict),
        AcquireErrorKind::NoQuorum | AcquireErrorKind::Quarantined => Exit::Unavailable,
        _ => Exit::Wrong,
    }
}

fn not_supervised(error: &io::Error) -> CommandError {
    CommandError::wrong(format!("the command cannot be supervised: {error}"))
}

/// Returns the program that runs, though another version may have been put in its place.
fn own_program() -> io::Result<PathBuf> {
    if cfg!(target_os = "linux") {
        shown_in(Path::new("/proc"))
    } else {
        std::env::current_exe()
    }
}

fn shown_in(processes: &Path) -> io::Result<PathBuf> {
    let program = processes.join("self/exe");
    // Processes that the command starts are found there, too.
    program.symlink_metadata().map_err(|error| {
        let message = format!(
            "{} does not show this process ({error}): mount it, because redlock run finds there what the command starts",
            processes.display()
        );
        io::Error::new(error.kind(), message)
    })?;
    Ok(program)
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

/// The shortest lease under which a command can be stopped in time.
const SHORTEST: Duration = Duration::from_secs(1);
const WAIT: Duration = Duration::from_secs(10);
/// The exit codes of commands that Ctrl-C or Ctrl-\ ended.
const INTERRUPTED: u8 = 128 + 2;
const QUIT: u8 = 128 + 3;
const GRACE: Duration = Duration::from_secs(5);
/// How long a signal takes at most to be noticed here, once another process has ended by it.
const NOTICE: Duration = Duration::from_millis(200);
/// How long it takes until an acquire is worth a word.
const PATIENCE: Duration = Duration::from_millis(500);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_proc_is_told_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("proc");
        let error = not_supervised(&shown_in(&missing).unwrap_err()).to_string();
        let name = missing.display().to_string();
        assert!(
            error.contains(&name) && error.contains("mount it"),
            "{error}"
        );
        assert!(own_program().is_ok());
    }

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
