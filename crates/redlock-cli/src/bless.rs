//! `redlock bless`: an operator vouches that nodes have forgotten nothing.

use std::{io, time::Duration};

use redlock_core::{NodeReport, Redlock};
use serde::Serialize;

use crate::{
    confirm::is_confirmed,
    connection::{Connection, Settings},
    context::Context,
    exit::{Exit, Failure},
    output::{Mark, Output, rounded},
    policy,
    probe::{self, Info, Place},
    standing::{line, ready_in, settled, stand, votes, words},
};

/// The arguments of `bless`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Does not ask for confirmation
    #[arg(long)]
    yes: bool,

    #[command(flatten)]
    connection: Connection,
}

/// Shows the evidence of each node, asks for confirmation, and lets quarantined nodes vote.
pub(crate) async fn run(args: Args, context: &Context) -> Result<Exit, Failure> {
    let settings = policy::settings(&args.connection).await?;
    let output = context.output;
    // Before the client leaves its mark there.
    let places = probe::connect(&settings).await;
    let infos = infos(&places).await;
    let (client, reports) = stand(context, &settings).await?;
    let evidence = evidence(&reports, &places, &infos);
    if !evidence.iter().any(Evidence::is_waiting) {
        if output.is_json() {
            output.json(&Json::new(&evidence, None))?;
        } else {
            output.line("no node is in quarantine: there is nothing to bless")?;
            for report in reports.iter().filter(|report| !votes(report)) {
                output.marked(Mark::Bad, &line(report))?;
            }
        }
        let count = reports.iter().filter(|report| votes(report)).count();
        return Ok(if count < settings.majority() {
            Exit::NoQuorum
        } else {
            Exit::Yes
        });
    }
    if !output.is_json() {
        show(&evidence, &settings, output)?;
    }
    if !args.yes && !is_confirmed("Type yes to vouch for it:", output).await? {
        return Err(Failure::wrong(
            "nothing was done; --yes does it without asking",
        ));
    }
    let client: Redlock = match client {
        Some(client) => client,
        None => context.client(settings.builder().connect_lazily()).await?,
    };
    if let Some(node) = changed(&client, &settings, &evidence).await {
        return Err(Failure::wrong(format!(
            "nothing was done: {node} is not as it was shown any more; look again"
        )));
    }
    let after = client.dangerous_bless().await;
    if output.is_json() {
        output.json(&Json::new(&evidence, Some(&after)))?;
    } else {
        for report in &after {
            let mark = if votes(report) { Mark::Good } else { Mark::Bad };
            output.marked(mark, &line(report))?;
        }
    }
    let count = after.iter().filter(|report| votes(report)).count();
    Ok(if count < settings.majority() {
        Exit::NoQuorum
    } else {
        Exit::Yes
    })
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

#[derive(Serialize)]
struct Json<'a> {
    evidence: &'a [Evidence],
    /// Which nodes vote since then; `None` if nothing was done.
    voting: Option<Vec<&'a str>>,
}

impl<'a> Json<'a> {
    fn new(evidence: &'a [Evidence], after: Option<&'a Vec<NodeReport>>) -> Self {
        let voting = after.map(|after| {
            let voting = after.iter().filter(|report| votes(report));
            voting.map(|report| &*report.node).collect()
        });
        Self { evidence, voting }
    }
}

async fn infos(places: &[Place]) -> Vec<Option<Info>> {
    let mut infos = Vec::new();
    for place in places {
        infos.push(match &place.probe {
            Ok(probe) => probe.clone().info().await.ok(),
            Err(_) => None,
        });
    }
    infos
}

/// Reads the evidence again, and returns the first node for which the shown evidence no longer holds.
async fn changed(client: &Redlock, settings: &Settings, shown: &[Evidence]) -> Option<String> {
    let places = probe::connect(settings).await;
    let infos = infos(&places).await;
    let reports = settled(client, settings).await;
    let now = evidence(&reports, &places, &infos);
    let mut pairs = shown.iter().zip(&now);
    let other = pairs.find(|(shown, now)| !shown.still_holds(now));
    other.map(|(shown, _)| shown.node.clone())
}

fn evidence(reports: &[NodeReport], places: &[Place], infos: &[Option<Info>]) -> Vec<Evidence> {
    let nodes = reports.iter().zip(places).zip(infos);
    let of_node = |((report, place), info): ((&NodeReport, &Place), &Option<Info>)| {
        let info = info.as_ref();
        let database = place
            .info
            .as_ref()
            .map_or(0, |info| info.redis_settings().db());
        Evidence {
            node: report.node.to_string(),
            standing: words(&report.answer),
            votes: votes(report),
            ready_in: ready_in(&report.answer),
            run_id: info.map(|info| info.text("run_id").to_owned()),
            uptime_seconds: info.and_then(|info| info.number("uptime_in_seconds")),
            keys: info.map(|info| info.keys_in(database)),
        }
    };
    nodes.map(of_node).collect()
}

fn show(evidence: &[Evidence], settings: &Settings, output: Output) -> io::Result<()> {
    for node in evidence {
        let up = node.uptime_seconds.map(Duration::from_secs);
        let up = up.map_or_else(|| "unknown".to_owned(), rounded);
        let keys = node.keys.map_or_else(
            || "an unknown number of".to_owned(),
            |keys| keys.to_string(),
        );
        let mark = if node.votes {
            Mark::Good
        } else {
            Mark::Warning
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
        output.marked(Mark::Warning, &line)?;
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
