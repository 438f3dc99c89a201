//! The answers of Sentinels and of the nodes of a Cluster about a node's server, and the majority among them.

use std::{
    collections::{HashMap, HashSet},
    fmt::Write as _,
};

use super::directory::Subject;

/// The answer of a Sentinel or of a node of a Cluster.
#[derive(Debug, Eq, PartialEq)]
pub(super) struct Testimony {
    /// The identity that it has given itself: two addresses may lead to one of them.
    pub(super) by: String,
    /// The server that it names, if it names one.
    pub(super) server: Option<NamedServer>,
    /// How many of them there are, as far as this one knows.
    pub(super) known: usize,
    /// Where others are that can be asked, too.
    pub(super) others: Vec<(String, u16)>,
}

/// A server, as an informant names it.
#[derive(Clone, Debug)]
pub(super) struct NamedServer {
    /// What all informants call it alike.
    id: String,
    pub(super) host: String,
    pub(super) port: u16,
}

impl PartialEq for NamedServer {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl Eq for NamedServer {}

impl Testimony {
    /// Reads the answers of a Sentinel to `SENTINEL MYID` and `SENTINEL MASTER`.
    pub(super) fn of_sentinel(by: String, answer: &HashMap<String, String>) -> Option<Self> {
        let host = answer.get("ip").filter(|host| is_shown(host))?;
        let port = answer.get("port")?.parse().ok()?;
        let others: usize = answer.get("num-other-sentinels")?.parse().ok()?;
        Some(Self {
            by,
            server: Some(NamedServer {
                id: format!("{host}:{port}"),
                host: host.clone(),
                port,
            }),
            known: others + 1,
            others: Vec::new(),
        })
    }

    /// Reads the answer to `CLUSTER NODES` of the node at `host`, which may not know its own address.
    ///
    /// Certificates are of names, so with TLS a name is taken where there is one.
    pub(super) fn of_cluster_node(
        answer: &str,
        slot: u16,
        host: &str,
        with_tls: bool,
    ) -> Option<Self> {
        let members = answer.lines().map(|line| Member::read(line, with_tls));
        let mut members = members.collect::<Option<Vec<_>>>()?;
        // One that is being introduced is no member yet.
        members.retain(|member| !member.has("handshake"));
        let itself = members.iter().find(|member| member.has("myself"))?;
        let host_of = |member: &Member<'_>| match member.host {
            "" if member.has("myself") => host.to_owned(),
            known => known.to_owned(),
        };
        let owner = members.iter().find(|member| member.owns(slot));
        let can_be_asked = |member: &&Member<'_>| {
            !member.has("myself") && !member.has("noaddr") && !member.host.is_empty()
        };
        let others = members.iter().filter(can_be_asked);
        Some(Self {
            by: itself.id.to_owned(),
            server: owner.map(|owner| NamedServer {
                id: owner.id.to_owned(),
                host: host_of(owner),
                port: owner.port,
            }),
            known: members.len(),
            others: others
                .map(|member| (member.host.to_owned(), member.port))
                .collect(),
        })
    }
}

/// A line of `CLUSTER NODES`.
struct Member<'a> {
    id: &'a str,
    host: &'a str,
    port: u16,
    flags: &'a str,
    slots: Vec<&'a str>,
}

impl<'a> Member<'a> {
    /// Reads `id ip:port@bus,hostname flags master ping-sent pong-received epoch link slots…`.
    fn read(line: &'a str, with_tls: bool) -> Option<Self> {
        let mut fields = line.split(' ');
        let (id, address, flags) = (fields.next()?, fields.next()?, fields.next()?);
        let mut address = address.split(',');
        let (host, port) = address.next()?.split('@').next()?.rsplit_once(':')?;
        let name = address.next().filter(|name| !name.is_empty());
        let host = name.filter(|_| with_tls || host.is_empty()).unwrap_or(host);
        Some(Self {
            id,
            host: Some(host).filter(|host| is_shown(host))?,
            port: port.parse().ok()?,
            flags,
            slots: fields.skip(5).collect(),
        })
    }

    fn has(&self, flag: &str) -> bool {
        self.flags.split(',').any(|has| has == flag)
    }

    /// Returns whether it has this slot; one that is on its way stands in brackets, too.
    fn owns(&self, slot: u16) -> bool {
        let is_in = |range: &&str| {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let bounds = first.parse::<u16>().ok().zip(last.parse::<u16>().ok());
            bounds.is_some_and(|(first, last)| (first..=last).contains(&slot))
        };
        self.slots.iter().any(is_in)
    }
}

/// Returns whether a host may be shown to operators.
fn is_shown(host: &str) -> bool {
    let is_shown = |c: char| c.is_ascii_alphanumeric() || ".:_-".contains(c);
    host.chars().all(is_shown)
}

/// The answers to one question.
pub(super) struct Tally {
    /// The servers that are named, and which informants these are.
    votes: Vec<(NamedServer, HashSet<String>)>,
    /// How many informants there are, as far as it is known.
    known: usize,
    /// Why others have named none.
    failed: Vec<String>,
}

impl Tally {
    /// Begins to count; there are as many informants as the URL names, or more.
    pub(super) const fn of(known: usize) -> Self {
        Self {
            votes: Vec::new(),
            known,
            failed: Vec::new(),
        }
    }

    pub(super) fn fail(&mut self, why: String) {
        self.failed.push(why);
    }

    /// Counts an answer; returns the server that a majority has named.
    pub(super) fn count(&mut self, testimony: Testimony) -> Option<NamedServer> {
        self.known = self.known.max(testimony.known);
        let by = testimony.by;
        let Some(server) = testimony.server else {
            self.fail(format!("node {by} names no owner of the slot"));
            return None;
        };
        match self.votes.iter_mut().find(|(other, _)| *other == server) {
            Some((_, votes)) => _ = votes.insert(by),
            None => self.votes.push((server, HashSet::from([by]))),
        }
        let mut votes = self.votes.iter();
        let named = votes.find(|(_, by)| by.len() > self.known / 2);
        named.map(|(server, _)| server.clone())
    }

    /// Returns why no server is named by a majority.
    pub(super) fn failure(&self, subject: &Subject) -> String {
        let (known, needed) = (self.known, self.known / 2 + 1);
        let mut why = match subject {
            Subject::Master(name) => {
                format!("fewer than {needed} of {known} Sentinels name one server as {name}")
            }
            Subject::SlotOwner(_) => format!(
                "fewer than {needed} of {known} nodes of the Cluster name one owner of the namespace's slot"
            ),
        };
        let answered = self.votes.iter().map(|(_, by)| by.len()).sum::<usize>();
        if answered + self.failed.len() < needed {
            let _ = write!(why, "; the URL must name {needed} different ones at least");
        }
        for failed in &self.failed {
            let _ = write!(why, ", {failed}");
        }
        why
    }
}

#[cfg(test)]
mod tests {
    use super::{super::directory::Votes, *};

    #[test]
    fn the_address_that_a_sentinel_names_is_read() {
        let answer = |host: &str| {
            let pairs = [("ip", host), ("port", "6379"), ("num-other-sentinels", "2")];
            let pairs = HashMap::from(pairs.map(|(name, value)| (name.into(), value.into())));
            Testimony::of_sentinel("a".to_owned(), &pairs)
        };
        let testimony = answer("10.0.0.9").unwrap();
        let server = testimony.server.unwrap();
        assert_eq!((&*server.host, server.port), ("10.0.0.9", 6379));
        assert_eq!((testimony.known, testimony.others), (3, vec![]));
        assert_eq!(answer("a b\r\nc"), None);
        assert_eq!(
            Testimony::of_sentinel("a".to_owned(), &HashMap::new()),
            None
        );
    }

    /// A Cluster whose first node has not been told its own address, with a slot on its way.
    const NODES: &str = "\
aaa :7000@17000 myself,master - 0 0 1 connected 0-100 102 [77->-bbb]
bbb 10.0.0.2:7001@17001,two.example master,fail - 0 1 2 connected 101 200-300 [77-<-aaa]
ccc 10.0.0.3:7002@17002,,shard-id=5 slave bbb 0 1 2 connected
ddd :0@0 slave,noaddr aaa 0 1 1 disconnected
eee 10.0.0.5:7004@17004 handshake - 0 0 0 connected
";

    fn testimony(slot: u16, with_tls: bool) -> Testimony {
        Testimony::of_cluster_node(NODES, slot, "c1", with_tls).unwrap()
    }

    #[test]
    fn a_node_of_a_cluster_names_the_owner_of_a_slot_and_the_other_nodes() {
        let own = testimony(77, false);
        let server = own.server.unwrap();
        assert_eq!(
            (&*server.id, &*server.host, server.port),
            ("aaa", "c1", 7000)
        );
        assert_eq!((&*own.by, own.known), ("aaa", 4));
        let others = [("10.0.0.2", 7001), ("10.0.0.3", 7002)];
        assert_eq!(
            own.others,
            others.map(|(host, port)| (host.to_owned(), port))
        );
        for (slot, owner) in [
            (101, Some("10.0.0.2")),
            (250, Some("10.0.0.2")),
            (301, None),
        ] {
            let named = testimony(slot, false).server.map(|server| server.host);
            assert_eq!(named.as_deref(), owner, "{slot}");
        }
        assert_eq!(testimony(101, true).server.unwrap().host, "two.example");
        for nonsense in ["", "aaa\n", "aaa a b:1@2 myself,master - 0 0 1 connected\n"] {
            assert_eq!(Testimony::of_cluster_node(nonsense, 1, "c1", false), None);
        }
    }

    #[test]
    fn a_majority_of_all_that_are_known_is_needed_and_each_counts_once() {
        let says = |by: &str, id: &str, known| Testimony {
            by: by.to_owned(),
            server: Some(NamedServer {
                id: id.to_owned(),
                host: "h".to_owned(),
                port: 1,
            }),
            known,
            others: Vec::new(),
        };
        let mut tally = Tally::of(1);
        for _ in 0..6 {
            assert_eq!(tally.count(says("a", "old", 6)), None);
        }
        assert_eq!(tally.count(says("b", "new", 6)), None);
        assert_eq!(tally.count(says("c", "new", 6)), None);
        assert_eq!(tally.count(says("d", "new", 6)), None);
        assert!(
            tally
                .failure(&Subject::SlotOwner(Votes::One))
                .starts_with("fewer than 4 of 6 nodes")
        );
        assert_eq!(tally.count(says("e", "new", 6)).unwrap().id, "new");
        assert_eq!(Tally::of(3).count(says("a", "old", 1)), None);
    }
}
