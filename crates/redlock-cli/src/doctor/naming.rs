//! The Sentinels of a master, or the nodes of a Cluster: whether those count that the mark of its server lists.

use std::{collections::BTreeMap, sync::Arc};

use futures_util::future::join_all;
use redlock_core::{
    deadpool_redis::redis::{ConnectionAddr, ConnectionInfo, cmd, from_redis_value},
    node::{InformantAnswer, NamingReport},
};
use redlock_proto::{InformantId, Mark, Roll};
use serde_json::{Value, json};

use super::finding::{Findings, Severity};
use crate::{connection::NodeSettings, probe::ProbedNode};

/// What is known of those that name the server of one node.
#[derive(Clone, Debug)]
pub(super) struct Naming {
    report: NamingReport,
    /// The roll of the mark of the server, if that can be read.
    roll: Option<Roll>,
    /// The command that deletes the mark.
    delete: Option<String>,
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
        let delete = place.info.as_ref().map(|info| delete(info, &mark));
        let roll = roll(place, &mark).await;
        Some(Naming {
            report,
            roll,
            delete,
        })
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

/// Returns the command that deletes a mark at a server; it asks for the password.
fn delete(info: &ConnectionInfo, mark: &str) -> String {
    let (place, tls) = match info.addr() {
        ConnectionAddr::Tcp(host, port) => (format!("-h {host} -p {port}"), ""),
        ConnectionAddr::TcpTls { host, port, .. } => (format!("-h {host} -p {port}"), " --tls"),
        other => (format!("-s {other}"), ""),
    };
    let settings = info.redis_settings();
    let database = match settings.db() {
        0 => String::new(),
        database => format!(" -n {database}"),
    };
    let user = match (settings.username(), settings.password()) {
        (Some(user), _) => format!(" --user {user} --askpass"),
        (None, Some(_)) => " --askpass".to_owned(),
        (None, None) => String::new(),
    };
    format!("redis-cli {place}{tls}{database}{user} DEL '{mark}'")
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
    pub(super) fn server(&self) -> Option<&str> {
        let (server, _) = self.report.majority.as_ref()?;
        Some(server)
    }

    /// Returns how many of them the mark counts, and how many of these answer, in a line.
    pub(super) fn line(&self) -> Option<String> {
        let count = self.roll.as_ref()?.count();
        let whom = self.whom();
        let (answering, listed) = (self.answers().count(), self.listed());
        Some(format!(
            "its mark counts {count} {whom}: {answering} answer, and {listed} of these are on its roll"
        ))
    }

    pub(super) fn to_json(&self) -> Value {
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
        let advice = match (&self.delete, self.server()) {
            (Some(delete), Some(server)) => format!(
                "delete the mark on {server}, one vote at a time: {delete}; a quarantine begins, and the mark lists those that run"
            ),
            _ => "delete the mark on its server, one vote at a time, so that a quarantine begins"
                .to_owned(),
        };
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

#[cfg(test)]
mod tests {
    use redlock_core::{deadpool_redis::redis::IntoConnectionInfo, node::InformantReport};

    use super::*;

    const SERVER: &str = "10.0.0.9:6379";

    fn id(number: u64) -> String {
        format!("{number:016x}")
    }

    /// Sentinels that answer with these ids, and know of each other.
    fn sentinels(ids: &[u64], on_roll: &[u64]) -> Naming {
        let informant = |(at, number): (usize, &u64)| InformantReport {
            address: format!("s{}:26379", at + 1).into(),
            answer: Ok(InformantAnswer {
                id: id(*number),
                names: Some((SERVER.into(), 3)),
                known: ids.len(),
                gone: Vec::new(),
            }),
        };
        let info = "redis://lock:hunter2@10.0.0.9/2".into_connection_info();
        Naming {
            report: NamingReport {
                master: Some("orders".into()),
                named: Some(ids.len()),
                majority: Some((SERVER.into(), 3)),
                informants: ids.iter().enumerate().map(informant).collect(),
                votes: None,
            },
            roll: Some(Roll::new(
                on_roll.len(),
                on_roll.iter().map(|number| InformantId::new(*number)),
            )),
            delete: Some(delete(&info.unwrap(), "{redlock}:mark")),
        }
    }

    fn answer(naming: &mut Naming, at: usize) -> &mut InformantAnswer {
        naming.report.informants[at].answer.as_mut().unwrap()
    }

    fn found(naming: &Naming) -> Vec<(Severity, &'static str, String)> {
        let mut findings = Findings::default();
        naming.check(&"orders@s1:26379".into(), &mut findings);
        let line = |finding: super::super::finding::Finding| {
            let text = format!("{} -> {}", finding.found, finding.advice);
            (finding.level, finding.check, text)
        };
        findings.0.into_iter().map(line).collect()
    }

    fn one(naming: &Naming, level: Severity, check: &str, words: &[&str]) {
        let found = found(naming);
        let [(its, of, text)] = &*found else {
            panic!("{found:?}");
        };
        assert_eq!((*its, *of), (level, check), "{text}");
        for word in words {
            assert!(text.contains(word), "{word}: {text}");
        }
        assert!(!text.contains("hunter2"), "{text}");
    }

    #[test]
    fn what_is_well_is_a_line_and_no_finding() {
        let naming = sentinels(&[1, 2, 3], &[1, 2, 3]);
        assert_eq!(found(&naming), []);
        assert_eq!(naming.server(), Some(SERVER));
        let line = "its mark counts 3 Sentinels: 3 answer, and 3 of these are on its roll";
        assert_eq!(naming.line().as_deref(), Some(line));
    }

    #[test]
    fn one_that_does_not_answer_is_named_with_the_remedy() {
        let mut naming = sentinels(&[1, 2, 3], &[1, 2, 3]);
        naming.report.informants[2].answer = Err("Connection refused".into());
        let words = [
            "3 Sentinels, and 2 answer",
            "not s3:26379: Connection refused",
            "bring it back",
        ];
        one(&naming, Severity::Warning, "informants", &words);
        naming.report.informants[2].answer = Err("it wants a password; write it".into());
        one(&naming, Severity::Warning, "informants", &["-> write it"]);
    }

    #[test]
    fn one_that_is_not_on_the_roll_is_a_hint() {
        let naming = sentinels(&[1, 2, 9], &[1, 2, 3]);
        let words = [
            "s3:26379 answers, and is not on the roll",
            "joins by itself",
        ];
        one(&naming, Severity::Note, "roll", &words);
        assert!(
            naming
                .line()
                .unwrap()
                .contains("2 of these are on its roll")
        );
    }

    #[test]
    fn those_that_are_gone_are_to_be_forgotten() {
        let mut naming = sentinels(&[1, 2, 9], &[1, 2, 3]);
        for at in 0..3 {
            answer(&mut naming, at).known = 4;
        }
        answer(&mut naming, 0).gone = vec!["10.0.0.3:26379".into()];
        let found = found(&naming);
        let text = |check: &str| {
            let mut found = found.iter();
            let found = found.find(|(_, its, _)| *its == check);
            found.map_or("", |(_, _, text)| text)
        };
        assert!(text("forgotten").contains("10.0.0.3:26379"), "{found:?}");
        assert!(
            text("forgotten").contains("SENTINEL RESET orders"),
            "{found:?}"
        );
        assert!(text("roll").contains("once those that are gone are forgotten"));
        // In a Cluster by their ids.
        naming.report.master = None;
        naming.report.named = None;
        answer(&mut naming, 0).gone = vec!["07c37dfeb2".into()];
        let mut findings = Findings::default();
        naming.check(&"1of3@c1:6379".into(), &mut findings);
        let mut all = findings.0.iter();
        let forget = all.find(|finding| finding.check == "forgotten").unwrap();
        assert!(forget.advice.contains("CLUSTER FORGET"), "{forget:?}");
        assert!(forget.advice.ends_with("for 07c37dfeb2"), "{forget:?}");
    }

    #[test]
    fn a_mark_that_counts_another_number_is_to_be_deleted() {
        let naming = sentinels(&[1, 2, 3, 4, 5], &[1, 2, 3]);
        let command =
            "redis-cli -h 10.0.0.9 -p 6379 -n 2 --user lock --askpass DEL '{redlock}:mark'";
        let words = [
            "counts 3 Sentinels, and 5 run",
            "one vote at a time",
            SERVER,
            command,
        ];
        one(&naming, Severity::Warning, "roll", &words);
    }

    #[test]
    fn two_with_one_id_defeat_the_roll() {
        let naming = sentinels(&[1, 2, 2], &[1, 2, 3]);
        let words = ["s2:26379 and s3:26379 answer with one id", "sentinel myid"];
        one(&naming, Severity::Failure, "same-id", &words);
    }

    #[test]
    fn one_that_names_another_server_is_named() {
        let mut naming = sentinels(&[1, 2, 3], &[1, 2, 3]);
        answer(&mut naming, 2).names = Some((SERVER.into(), 2));
        let words = ["s3:26379 names 10.0.0.9:6379 under the epoch 2", "under 3"];
        one(&naming, Severity::Warning, "informants", &words);
    }
}
