//! The doctor: the checks of everything that a lock rests on, and what to do about what they find.

pub mod facts;
pub mod finding;
mod lines;
pub mod locks;
mod managed;
pub mod naming;
mod server;
mod set;

use redlock_core::NodeReport;

use self::{
    facts::{Facts, known},
    finding::Findings,
    naming::Naming,
};
use super::{nodes::voting, probe::ProbedNode, settings::NodeSettings};

/// What an examination of the nodes has found, before the locks are tried.
#[derive(Debug)]
#[non_exhaustive]
pub struct Examination {
    /// What was found.
    pub findings: Findings,
    /// What each node has said of itself; `None` for a node that did not answer everything.
    pub facts: Vec<Option<Facts>>,
    /// What others say of the server of each node, if others name it.
    pub namings: Vec<Option<Naming>>,
}

/// Examines the nodes, of which the client has these reports; `is_deep` looks at every key too.
///
/// It tries the rights of each node's user on a key of its own, which it deletes.
pub async fn examine(
    places: &mut [ProbedNode],
    reports: &[NodeReport],
    settings: &NodeSettings,
    is_deep: bool,
) -> Examination {
    let mut findings = Findings::default();
    set::check_votes(reports, &mut findings);
    let facts = facts::gather(places, settings, &mut findings).await;
    set::check(places, &facts, voting(reports), settings, &mut findings);
    managed::check(places, &facts, &mut findings);
    let namings = naming::gather(places, settings).await;
    naming::check(places, &namings, &mut findings);
    for (place, facts) in known(places, &facts) {
        server::check(place, facts, settings, &mut findings);
    }
    let clocks: Vec<_> = known(places, &facts)
        .filter_map(|(place, facts)| Some((&place.name, facts.clock?)))
        .collect();
    set::check_clocks(&clocks, settings.clock_rate_error(), &mut findings);
    if is_deep {
        locks::check_keys(places, settings, &mut findings).await;
    }
    Examination {
        findings,
        facts,
        namings,
    }
}
