//! `redlock doctor`: looks at everything that a lock rests on, and says what to do about it.

mod clocks;
mod deep;
mod disk;
mod facts;
mod finding;
mod report;
mod rights;
mod scratch;
mod server;
mod set;
mod standing;

use self::{
    facts::known,
    finding::{Findings, Level},
    report::Report,
};
use crate::{
    connection::Connection,
    context::Context,
    exit::{Exit, Failure},
    policy, probe,
    standing::stand,
};

/// The arguments of `doctor`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Looks at every key too; its user needs +scan
    #[arg(long)]
    deep: bool,

    /// Ends with 1 if there are warnings
    #[arg(long)]
    strict: bool,

    #[command(flatten)]
    connection: Connection,
}

/// Examines the nodes.
///
/// It is a client of the namespace while it runs, so nodes that are new to it begin their first quarantine.
/// It makes locks on keys of its own, and releases them.
pub(crate) async fn run(args: Args, context: &Context) -> Result<Exit, Failure> {
    let settings = policy::settings(&args.connection).await?;
    let mut places = probe::connect(&settings).await;
    let (client, reports) = stand(context, &settings).await?;

    let mut findings = Findings::default();
    let votes = standing::check(&reports, &mut findings);
    let facts = facts::gather(&mut places, &settings, &mut findings).await;
    set::check(&places, &facts, votes, &settings, &mut findings);
    for (node, place, facts) in known(&places, &facts) {
        server::check(node, place, facts, &settings, &mut findings);
    }
    let clocks: Vec<_> = known(&places, &facts)
        .filter_map(|(node, _, facts)| Some((node, facts.clock?)))
        .collect();
    clocks::check(&clocks, settings.clock_rate_error(), &mut findings);
    if args.deep {
        deep::check(&places, &settings, &mut findings).await;
    }
    let mut scratch = None;
    if let Some(client) = &client
        && votes >= settings.majority()
    {
        let other = context.client(settings.builder()).await?;
        scratch = scratch::check(client, &other, &mut findings).await;
    }

    let report = Report {
        settings: &settings,
        reports: &reports,
        facts: &facts,
        votes,
        scratch: scratch.as_ref(),
        findings: &findings,
    };
    report.print(context.output)?;
    Ok(if votes < settings.majority() {
        Exit::NoQuorum
    } else if findings.count(Level::Failure) > 0 {
        Exit::Wrong
    } else if args.strict && findings.count(Level::Warning) > 0 {
        Exit::No
    } else {
        Exit::Yes
    })
}
