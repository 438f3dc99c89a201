//! The answers of all informants of a node, for tools.

use std::sync::Arc;

use redlock_proto::Pair;

use super::{
    address::Address,
    naming_url::{ClusterVotes, NamingUrl, Subject},
    round::InquiryRound,
    testimony::{NamedServer, Testimony},
    texts,
};

/// The answers of the Sentinels of a master, or of the nodes of a Cluster, about a node's server; see
/// `NodeConfig::naming` of `redlock-core`.
#[derive(Clone, Debug, Eq, PartialEq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "the tests of a tool make one without servers"
)]
pub struct NamingReport {
    /// The name of the master; `None` in a Cluster.
    pub master: Option<String>,
    /// The number of Sentinels that the URL names; `None` in a Cluster, whose nodes know each other.
    pub named: Option<usize>,
    /// The address of the server that a majority names under one epoch, and the epoch.
    pub majority: Option<(Arc<str>, u64)>,
    /// Those that were asked: those of the URL, and in a Cluster those of which these have told.
    pub informants: Vec<InformantReport>,
    /// The mistake in the number of votes in the URL, and its remedy.
    pub votes: Option<String>,
}

/// One of these servers.
#[derive(Clone, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "as above")]
pub struct InformantReport {
    /// Its address, without credentials.
    pub address: Arc<str>,
    /// Its answer, or the reason why there is none, in words for an operator.
    pub answer: Result<InformantAnswer, Arc<str>>,
}

/// The answer of one of these servers.
#[derive(Clone, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "as above")]
pub struct InformantAnswer {
    /// The beginning of the identity that it has given itself, as a mark lists it.
    pub id: String,
    /// The address of the server that it names, and the epoch.
    pub names: Option<(Arc<str>, u64)>,
    /// The number of these servers that it knows, itself among them.
    pub known: usize,
    /// Those of them that have failed and were not forgotten: the addresses of Sentinels, or the ids of nodes of a Cluster.
    pub gone: Vec<Arc<str>>,
}

impl NamingReport {
    /// Makes it of an inquiry that is complete.
    pub(super) fn of(url: &NamingUrl, round: &InquiryRound, slot: u16) -> Self {
        let majority = round.majority(slot);
        let address = |server: &NamedServer| -> Arc<str> {
            // Informants may spell it in different ways.
            let alike = majority.as_ref().filter(|pair| pair.server == *server);
            let NamedServer { host, port, .. } = alike.map_or(server, |pair| &pair.server);
            let info = url.at(host, *port);
            Address::of(&info).to_string().into()
        };
        let pair = |pair: &Pair<NamedServer>| (address(&pair.server), pair.epoch);
        let answer = |testimony: &Testimony| {
            let statement = testimony.statement(slot);
            InformantAnswer {
                id: statement.by.to_string(),
                names: statement.names.as_ref().map(pair),
                known: statement.known,
                gone: testimony.gone().map(Arc::from).collect(),
            }
        };
        let heard = round.from.iter().zip(&round.testimonies);
        let heard = heard.map(|(address, testimony)| (address, Ok(answer(testimony))));
        let failed = round.failed.iter();
        let failed = failed.map(|(address, why)| (address, Err(Arc::clone(why))));
        let informants = heard
            .chain(failed)
            .map(|(address, answer)| InformantReport {
                address: address.to_string().into(),
                answer,
            });
        let mut informants: Vec<_> = informants.collect();
        informants.sort_by(|a, b| a.address.cmp(&b.address));
        let (master, named) = match &url.subject {
            Subject::Master(name) => (Some(name.clone()), Some(url.informants.len())),
            Subject::SlotOwner(_) => (None, None),
        };
        let votes = match url.subject {
            Subject::SlotOwner(ClusterVotes::This(vote)) => {
                texts::too_many_votes(vote.of(), round.masters())
            }
            _ => None,
        };
        Self {
            master,
            named,
            majority: majority.as_ref().map(pair),
            informants,
            votes,
        }
    }
}
