//! `redlock run` and `redlock elect`: a command under a lock, and one that a leader runs.
//!
//! Three processes take part.
//! This one holds the lock.
//! It starts a *supervisor*, which leads a process group of its own and starts the command in it.
//! The kernel ends the command with the supervisor.
//! Over a socket, this process tells the supervisor until when the command may run, again after each renewal of the lease.
//! Without a later time the supervisor stops the group before the lease ends, because this process may be killed, stopped
//! or cut off from the nodes.
//! If the supervisor is stopped, too, the kernel kills it in time.

mod elect;
mod held;
mod line;
mod supervision;
mod supervisor;
mod tree;

use std::{pin::pin, time::Duration};

use redlock_core::{
    AcquireError, AcquireErrorKind, AcquireOptions, BuildErrorKind, LockGuard, NodeReport, Redlock,
    ResourceKey, Wait,
};

use self::held::{HeldArgs, HeldCommand, HeldLock, interrupted};
pub(crate) use self::{
    elect::{ElectArgs, elect},
    supervisor::{COMMAND, SUPERVISOR, become_command, supervisor},
    tree::press,
};
use crate::{
    clock::duration,
    context::CommandContext,
    exit::{CommandError, CommandResult, Exit},
    nodes::{ready_in, votes},
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

/// Returns how the command ends without the lock.
fn unacquired(error: &AcquireError, conflict: u8) -> Exit {
    match error.kind() {
        AcquireErrorKind::Contended => Exit::Child(conflict),
        AcquireErrorKind::NoQuorum | AcquireErrorKind::Quarantined => Exit::Unavailable,
        _ => Exit::Wrong,
    }
}

const WAIT: Duration = Duration::from_secs(10);
/// How long it takes until an acquire is worth a word.
const PATIENCE: Duration = Duration::from_millis(500);
