//! The Sentinels of a master, or the nodes of a Cluster: whether those count that the mark of its server lists.

#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, sync::Arc};

use futures_util::future::join_all;
use redlock_core::{
    deadpool_redis::redis::{cmd, from_redis_value},
    node::{InformantAnswer, NamingReport},
};
use redlock_proto::{InformantId, Mark, Roll};
use serde_json::{Value, json};

use super::finding::{Findings, Severity};
use crate::look::{probe::ProbedNode, settings::NodeSettings};

/// What is known of those that name the server of one node.
#[derive(Clone, Debug)]
pub struct Naming {
    report: NamingReport,
    /// The roll of the mark of the server, if that can be read.
    roll: Option<Roll>,
}

/// Asks all of them at once; `None` for a node that no others name, or of which that is not known.
///
/// The client has connected before: a server without a mark has one by then.
pub(super) async fn gather(places: &[ProbedNode], settings: &NodeSettings) -> Vec<Option<Naming>> {
    let nodes = settings.config.nodes.iter().zip(places);
    let all = nodes.map(async |(node, place)| {
        let limit = settings.connect_timeout();
        let report = node.naming(settings.namespace(), limit).await.ok()??;
        let mark = settings.mark_of(&place.keys);
        let roll = roll(place, &mark).await;
        Some(Naming { report, roll })
    });
    join_all(all).await
}

async fn roll(place: &ProbedNode, mark: &str) -> Option<Roll> {
    let mut probe = place.probe.clone().ok()?;
    let answer = probe.ask(cmd("MGET").arg(mark)).await.ok()?;
    let [text]: [Option<String>; 1] = from_redis_value(answer).ok()?;
    let text = text?;
    let mark = Mark::read(&text)?;
    mark.term().map(|term| term.roll.clone())
}

/// Adds what is wrong with those that name the server of each node.
pub(super) fn check(places: &[ProbedNode], namings: &[Option<Naming>], findings: &mut Findings) {
    let mut votes: Option<&String> = None;
    for (place, naming) in places.iter().zip(namings) {
        let Some(naming) = naming else { continue };
        naming.check(&place.name, findings);
        votes = votes.or(naming.report.votes.as_ref());
    }
    if let Some((found, advice)) = votes.and_then(|votes| votes.split_once("; ")) {
        findings.fail(None, "votes", found, advice);
    }
}

impl Naming {
    /// Returns the address of the server that a majority names.
    pub fn server(&self) -> Option<&str> {
        let (server, _) = self.report.majority.as_ref()?;
        Some(server)
    }

    /// Returns how many of them the mark counts, and how many of these answer, in a line.
    pub fn line(&self) -> Option<String> {
        let count = self.roll.as_ref()?.count();
        let whom = self.whom();
        let (answering, listed) = (self.answers().count(), self.listed());
        Some(format!(
            "its mark counts {count} {whom}: {answering} answer, and {listed} of these are on its roll"
        ))
    }

    pub fn to_json(&self) -> Value {
        json!({
            "counted": self.roll.as_ref().map(Roll::count),
            "asked": self.report.informants.len(),
            "answering": self.answers().count(),
            "on_roll": self.listed(),
        })
    }

    fn check(&self, node: &Arc<str>, findings: &mut Findings) {
        self.same_ids(node, findings);
        self.silent(node, findings);
        let ghosts = self.ghosts();
        if ghosts.is_some() || !self.differs(node, findings) {
            self.unlisted(node, ghosts.is_some(), findings);
        }
        if let Some((found, advice)) = ghosts {
            findings.warn(Some(node), "forgotten", found, advice);
        }
        self.dissent(node, findings);
    }

    /// Checks that each has an id of its own: a roll lists ids.
    fn same_ids(&self, node: &Arc<str>, findings: &mut Findings) {
        let mut ids: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (address, answer) in self.answers() {
            ids.entry(&answer.id).or_default().push(address);
        }
        for addresses in ids.values().filter(|addresses| addresses.len() > 1) {
            let (all, whom) = (addresses.join(" and "), self.whom());
            let found =
                format!("{all} answer with one id, so that they count as one of its {whom}");
            let advice = match self.report.master {
                Some(_) => {
                    "if they are two, delete the line sentinel myid from the file of one and restart it, and from its image: each must make an id of its own; if they are one, name it once"
                }
                None => {
                    "if they are two, give one a new file nodes.conf; if they are one, name it once"
                }
            };
            findings.fail(Some(node), "same-id", found, advice);
        }
    }

    /// Checks that all answer.
    fn silent(&self, node: &Arc<str>, findings: &mut Findings) {
        // That none of them answers keeps the client from the node, which is a failure of its own.
        if findings.has(node, "reachable") {
            return;
        }
        let (total, whom) = (self.report.informants.len(), self.whom());
        let answering = self.answers().count();
        for informant in &self.report.informants {
            let Err(why) = &informant.answer else {
                continue;
            };
            let address = &informant.address;
            let (why, advice) = why.split_once("; ").unwrap_or((
                why,
                "bring it back: the node has no vote while a majority of them is silent",
            ));
            let found = format!("has {total} {whom}, and {answering} answer; not {address}: {why}");
            findings.warn(Some(node), "informants", found, advice);
        }
    }

    /// Returns those that are gone and that others remember, and what to do; `None` if there are none.
    fn ghosts(&self) -> Option<(String, String)> {
        let answers = self.answers().map(|(_, answer)| answer);
        let mut gone: Vec<&str> = answers
            .flat_map(|answer| answer.gone.iter().map(|it| &**it))
            .collect();
        gone.sort_unstable();
        gone.dedup();
        let known = self.known();
        let named = self.report.named.unwrap_or(usize::MAX);
        if gone.is_empty() && known <= named {
            return None;
        }
        let (whom, ids) = (self.whom(), gone.join(" "));
        Some(match &self.report.master {
            Some(master) => {
                let gone = match gone.len() {
                    0 => format!("the URL names {named}"),
                    count => format!("{count} of them are gone ({ids})"),
                };
                (
                    format!(
                        "its {whom} know of {known}, and {gone}: none can join the roll of its mark"
                    ),
                    format!(
                        "type SENTINEL RESET {master} on each Sentinel, one each 30 s, while the master is up; name all that run in the URL of each client"
                    ),
                )
            }
            None => (
                format!(
                    "its Cluster remembers {} nodes that have failed ({ids}): none can join the roll of its mark",
                    gone.len()
                ),
                format!(
                    "bring them back, or within one minute type CLUSTER FORGET on each node for {ids}"
                ),
            ),
        })
    }

    /// Checks that the mark counts as many as run; returns whether it does not.
    fn differs(&self, node: &Arc<str>, findings: &mut Findings) -> bool {
        let (Some(roll), running) = (&self.roll, self.running()) else {
            return false;
        };
        let count = roll.count();
        if running == 0 || running == count {
            return false;
        }
        let whom = self.whom();
        let found = format!("its mark counts {count} {whom}, and {running} run");
        let advice = "only as many as it counts are needed for a majority, and the others never count; to count all, move to a new namespace, as for another policy".to_owned();
        findings.warn(Some(node), "roll", found, advice);
        true
    }

    /// Notes those that name the server and are not on the roll, most of all after they lost their file.
    fn unlisted(&self, node: &Arc<str>, has_ghosts: bool, findings: &mut Findings) {
        let Some(roll) = &self.roll else { return };
        let is_unlisted = |answer: &InformantAnswer| {
            let id = InformantId::read(&answer.id);
            id.is_some_and(|id| !roll.has(id))
        };
        let unlisted = self.answers().filter(|(_, answer)| is_unlisted(answer));
        let unlisted: Vec<&str> = unlisted.map(|(address, _)| address).collect();
        if unlisted.is_empty() {
            return;
        }
        let found = format!(
            "{} answers, and is not on the roll of its mark: a new one, or one that lost its file",
            unlisted.join(" and ")
        );
        let (level, advice) = match has_ghosts {
            true => (
                Severity::Warning,
                "it joins once those that are gone are forgotten",
            ),
            false => (
                Severity::Note,
                "wait, while a client is connected: it joins by itself within seconds, once it names the same server as the others",
            ),
        };
        findings.add(level, Some(node), "roll", found, advice);
    }

    /// Checks that all name one server under one epoch.
    fn dissent(&self, node: &Arc<str>, findings: &mut Findings) {
        let Some((server, epoch)) = &self.report.majority else {
            return;
        };
        for (address, answer) in self.answers() {
            let Some((other, its)) = &answer.names else {
                continue;
            };
            if (other, its) != (server, epoch) {
                let found = format!(
                    "{address} names {other} under the epoch {its}, and the majority names {server} under {epoch}"
                );
                let advice =
                    "wait for some seconds; if it stays so, look at its network and its log";
                findings.warn(Some(node), "informants", found, advice);
            }
        }
    }

    fn answers(&self) -> impl Iterator<Item = (&str, &InformantAnswer)> {
        let informants = self.report.informants.iter();
        informants.filter_map(|it| Some((&*it.address, it.answer.as_ref().ok()?)))
    }

    fn listed(&self) -> usize {
        let Some(roll) = &self.roll else { return 0 };
        let ids = self
            .answers()
            .filter_map(|(_, answer)| InformantId::read(&answer.id));
        let mut ids: Vec<InformantId> = ids.filter(|id| roll.has(*id)).collect();
        ids.sort_unstable();
        ids.dedup();
        ids.len()
    }

    /// Returns the greatest number of them of which one knows.
    fn known(&self) -> usize {
        self.answers()
            .map(|(_, answer)| answer.known)
            .max()
            .unwrap_or(0)
    }

    /// Returns how many run, as far as they know, or as the URL says.
    fn running(&self) -> usize {
        self.report.named.unwrap_or_else(|| self.known())
    }

    fn whom(&self) -> &'static str {
        match self.report.master {
            Some(_) => "Sentinels",
            None => "nodes of the Cluster",
        }
    }
}
