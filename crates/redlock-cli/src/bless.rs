//! `redlock bless`: an operator vouches that nodes have forgotten nothing.

use std::{io, time::Duration};

use futures_util::future::join_all;
use redlock_core::{NodeReport, Redlock};
use serde::Serialize;
use serde_json::json;

use crate::{
    clock::rounded,
    connection::{ConnectionArgs, NodeSettings},
    context::CommandContext,
    exit::{CommandError, CommandResult, Exit},
    nodes::{connect, have_quorum, line, ready_in, settled, votes, words},
    operator::OperatorArgs,
    output::{LineMark, Output},
    probe::{self, Info, ProbedNode},
};

/// The arguments of `bless`.
#[derive(clap::Args, Debug)]
pub(crate) struct BlessArgs {
    /// Does not ask for confirmation
    #[arg(long)]
    yes: bool,

    #[command(flatten)]
    operator: OperatorArgs,

    #[command(flatten)]
    connection: ConnectionArgs,
}

/// Shows the evidence of each node, asks for confirmation, and lets quarantined nodes vote.
pub(crate) async fn run(args: BlessArgs, context: &CommandContext) -> CommandResult {
    let settings = args.connection.settings().await?;
    let output = context.output;
    // Before the client leaves its mark there.
    let servers = servers(&settings).await;
    let (client, reports) = connect(context, &settings).await?;
    let evidence = evidence(&reports, &servers);
    if !evidence.iter().any(Evidence::is_waiting) {
        if output.is_json() {
            output.json(&json!({"evidence": evidence, "voting": null}))?;
        } else {
            output.line("no node is in quarantine: there is nothing to bless")?;
            for report in reports.iter().filter(|report| !votes(report)) {
                output.marked(LineMark::Bad, &line(report))?;
            }
        }
        return Ok(Exit::of_quorum(have_quorum(&reports)));
    }
    if !output.is_json() {
        show(&evidence, &settings, output)?;
    }
    if !args.yes && !output.is_confirmed("Type yes to vouch for it:").await? {
        return Err(CommandError::wrong(
            "nothing was done; --yes does it without asking",
        ));
    }
    let client: Redlock = match client {
        Some(client) => client,
        None => context.client(settings.builder().connect_lazily()).await?,
    };
    if let Some(node) = changed(&client, &settings, &evidence).await {
        return Err(CommandError::wrong(format!(
            "nothing was done: {node} is not as it was shown any more; look again"
        )));
    }
    let after = client.dangerous_bless().await;
    let was_waiting = evidence.iter().filter(|it| it.is_waiting());
    let blessed: Vec<&str> = was_waiting.map(|it| &*it.node).collect();
    let what = ("bless", &*blessed.join(" "));
    args.operator.log(&client, what, context).await;
    if output.is_json() {
        // Which nodes vote since then.
        let voting = after.iter().filter(|report| votes(report));
        let voting: Vec<&str> = voting.map(|report| &*report.node).collect();
        output.json(&json!({"evidence": evidence, "voting": voting}))?;
    } else {
        for report in &after {
            let mark = if votes(report) {
                LineMark::Good
            } else {
                LineMark::Bad
            };
            output.marked(mark, &line(report))?;
        }
    }
    Ok(Exit::of_quorum(have_quorum(&after)))
}

/// What is known of a node that may have forgotten leases.
#[derive(Serialize)]
struct Evidence {
    node: String,
    standing: String,
    votes: bool,
    uptime_seconds: Option<u64>,
    keys: Option<u64>,
    #[serde(skip)]
    ready_in: Option<Duration>,
    /// Which run of the server it is.
    #[serde(skip)]
    run_id: Option<String>,
}

impl Evidence {
    /// Returns whether the node is in quarantine, so that the command blesses it.
    const fn is_waiting(&self) -> bool {
        self.ready_in.is_some()
    }

    /// Returns whether the evidence of a node still holds, except for the time that has passed.
    fn still_holds(&self, now: &Self) -> bool {
        self.run_id == now.run_id
            // It may have got its vote by itself.
            && (self.is_waiting() == now.is_waiting() || now.votes)
            // A quarantine that began again has another reason.
            && self.ready_in >= now.ready_in
    }
}

/// Asks all servers at once what `INFO` says.
async fn servers(settings: &NodeSettings) -> Vec<(ProbedNode, Option<Info>)> {
    let places = probe::connect(settings).await;
    let all = places.into_iter().map(async |place| {
        let info = match &place.probe {
            Ok(probe) => probe.clone().info().await.ok(),
            Err(_) => None,
        };
        (place, info)
    });
    join_all(all).await
}

/// Reads the evidence again, and returns the first node for which the shown evidence no longer holds.
async fn changed(client: &Redlock, settings: &NodeSettings, shown: &[Evidence]) -> Option<String> {
    let servers = servers(settings).await;
    let reports = settled(client, settings).await;
    let now = evidence(&reports, &servers);
    let mut pairs = shown.iter().zip(&now);
    let other = pairs.find(|(shown, now)| !shown.still_holds(now));
    other.map(|(shown, _)| shown.node.clone())
}

fn evidence(reports: &[NodeReport], servers: &[(ProbedNode, Option<Info>)]) -> Vec<Evidence> {
    let nodes = reports.iter().zip(servers);
    let of_node = |(report, (place, info)): (&NodeReport, &(ProbedNode, Option<Info>))| {
        let info = info.as_ref();
        Evidence {
            node: report.node.to_string(),
            standing: words(report),
            votes: votes(report),
            ready_in: ready_in(report),
            run_id: info.map(|info| info.text("run_id").to_owned()),
            uptime_seconds: info.and_then(|info| info.number("uptime_in_seconds")),
            keys: info.map(|info| info.keys_in(place.database())),
        }
    };
    nodes.map(of_node).collect()
}

fn show(evidence: &[Evidence], settings: &NodeSettings, output: Output) -> io::Result<()> {
    for node in evidence {
        let up = node.uptime_seconds.map(Duration::from_secs);
        let up = up.map_or_else(|| "unknown".to_owned(), rounded);
        let keys = node.keys.map_or_else(
            || "an unknown number of".to_owned(),
            |keys| keys.to_string(),
        );
        let mark = if node.votes {
            LineMark::Good
        } else {
            LineMark::Warning
        };
        let (name, standing) = (&node.node, &node.standing);
        output.marked(
            mark,
            &format!("{name} up for {up}, {keys} keys: {standing}"),
        )?;
    }
    let voting = evidence.iter().filter(|node| node.votes).count();
    if voting > 0 {
        let they_vote = match voting {
            1 => "1 node votes".to_owned(),
            _ => format!("{voting} nodes vote"),
        };
        let line =
            format!("{they_vote} already: clients may hold leases that the others have forgotten");
        output.marked(LineMark::Warning, &line)?;
    }
    output.line(&format!(
        "To bless is to vouch that none of the nodes in quarantine has forgotten a lease that may still be valid, or \
         a tick of a job that may still be claimed: that they are new to the namespace {}, or that no client of it \
         has run for {}. If that is not so, two clients can hold one lock.",
        settings.namespace(),
        rounded(settings.max_ttl())
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn evidence(run: &str, ready_in: Option<u64>) -> Evidence {
        Evidence {
            node: "node".to_owned(),
            standing: String::new(),
            votes: ready_in.is_none(),
            uptime_seconds: None,
            keys: None,
            ready_in: ready_in.map(Duration::from_secs),
            run_id: Some(run.to_owned()),
        }
    }

    #[test]
    fn time_that_has_passed_changes_nothing_and_another_run_does() {
        let shown = evidence("a", Some(3));
        assert!(shown.still_holds(&evidence("a", Some(1))));
        assert!(
            shown.still_holds(&evidence("a", None)),
            "it votes by itself"
        );
        assert!(!shown.still_holds(&evidence("a", Some(4))), "it began anew");
        assert!(!shown.still_holds(&evidence("b", Some(1))));
        assert!(!evidence("a", None).still_holds(&evidence("a", Some(1))));
    }
}
