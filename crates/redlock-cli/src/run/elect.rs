//! A command that runs while this process leads.

use std::time::Duration;

use redlock_core::{AcquireErrorKind, Wait};

use super::held::{HeldArgs, HeldCommand, HeldLock, interrupted};
use crate::{
    context::CommandContext,
    exit::{CommandResult, Exit},
};

/// Runs a command while this process leads, and campaigns again when its term is lost
#[derive(clap::Args, Debug)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct ElectArgs {
    /// The name of the election, which is a resource
    name: String,

    /// The public name of this candidate, 1 to 64 printable characters [default: the host and the process]
    #[arg(long, value_name = "TEXT")]
    candidate: Option<String>,

    #[command(flatten)]
    held: HeldArgs,
}

const EXIT_CODES: &str = "\
Example:
  redlock elect importer --candidate web-7 -- ./importer

Exit codes:
  the command's own, or 128 and the number of the signal that ended it
  126  the command cannot be run
  127  there is no such command
  2    wrong: bad usage or configuration, or the command cannot be supervised any more

It waits for its term without end, also while too few nodes vote.
If the term is lost, it stops the command as redlock run does, and campaigns again.
When the command ends by itself, the role is free and redlock elect ends.
The command finds the name in REDLOCK_KEY and the fencing token of its term in REDLOCK_FENCE.
Signals are passed on to the command as by redlock run; before it has begun, each of them ends the wait.";

/// Campaigns, runs the command in each term, and ends with the command.
pub(crate) async fn elect(args: ElectArgs, context: &CommandContext) -> CommandResult {
    let mut held = HeldCommand::new(args.held, context).await?;
    // An outage ends no campaign.
    let builder = held.settings.builder().connect_lazily();
    let client = context.client(builder).await?;
    let election = client.election(&*args.name).ttl(held.ttl);
    let election = match args.candidate {
        Some(candidate) => election.candidate(candidate),
        None => election,
    };
    let election = election.build()?;
    let output = context.output;
    let (name, candidate) = (&args.name, election.candidate());
    loop {
        output.progress(&format!("{candidate} campaigns for {name}"));
        let campaign = async {
            let mut told = None;
            loop {
                let error = match election.lead_with(Wait::UpTo(CAMPAIGN)).await {
                    Ok(term) => return Ok(term),
                    Err(error) => error,
                };
                match error.kind() {
                    AcquireErrorKind::AlreadyHeld
                    | AcquireErrorKind::Deadlock
                    | AcquireErrorKind::Misuse
                    | AcquireErrorKind::Closed => return Err(error),
                    AcquireErrorKind::Contended => continue,
                    // An outage may be long.
                    kind if told.replace(kind) == Some(kind) => {}
                    _ => output.progress(&format!("waits: {error}")),
                }
                tokio::time::sleep(held.ttl / 3).await;
            }
        };
        let term = tokio::select! {
            biased;
            signal = held.signals.interrupted() => return Ok(interrupted(signal)),
            term = campaign => term?,
        };
        output.progress(&format!(
            "{candidate} leads, with the token {}",
            term.token()
        ));
        let ended = held.run(&client, HeldLock::Role(Box::new(term)), Duration::ZERO);
        match ended.await? {
            (Exit::Lost, false) => {}
            (exit, _) => return Ok(exit),
        }
    }
}

/// How long one acquire of a campaign waits; the next follows it.
const CAMPAIGN: Duration = Duration::from_secs(60 * 60);
