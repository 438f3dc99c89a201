//! The answers of Sentinels and of the nodes of a Cluster about a node's server.

use std::collections::HashMap;

use redlock_proto::{InformantId, Pair, Statement};

/// The answer of an informant.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Testimony {
    Sentinel(SentinelAnswer),
    Member(View),
}

/// The answer of a Sentinel.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct SentinelAnswer {
    by: InformantId,
    pub(super) names: Pair<NamedServer>,
    /// Whether it is about to promote another server: it may name the old one under the new epoch until that is over.
    is_failing_over: bool,
    /// How many Sentinels it knows, itself among them.
    pub(super) known: usize,
    /// How many of these are not down.
    pub(super) running: usize,
    /// The addresses of those that are, as far as it was asked.
    pub(super) gone: Vec<String>,
}

/// The Cluster, as one of its nodes sees it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct View {
    by: InformantId,
    // invariant: the node itself is among them, and none that is being introduced
    members: Vec<Member>,
}

/// A server, as an informant names it.
#[derive(Clone, Debug)]
pub(crate) struct NamedServer {
    /// What all informants call it alike.
    pub(super) id: String,
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
    /// Returns what it says of the owner of a slot; of a master, whatever the slot is.
    pub(crate) fn statement(&self, slot: u16) -> Statement<NamedServer> {
        match self {
            Self::Sentinel(answer) => Statement {
                by: answer.by,
                names: (!answer.is_failing_over).then(|| answer.names.clone()),
                known: answer.known,
                running: answer.running,
                is_moving: None,
            },
            Self::Member(view) => view.statement(slot),
        }
    }

    /// Returns where others are that can be asked, too.
    pub(crate) fn others(&self) -> impl Iterator<Item = (&str, u16)> {
        let members = match self {
            Self::Sentinel(_) => &[],
            Self::Member(view) => &*view.members,
        };
        let can_be_asked = |member: &&Member| {
            !member.is_itself() && !member.has("noaddr") && !member.host.is_empty()
        };
        let others = members.iter().filter(can_be_asked);
        others.map(|member| (&*member.host, member.port))
    }

    /// Returns the informants that have failed and were not forgotten: the addresses of Sentinels, or the ids of nodes of a
    /// Cluster.
    #[cfg(feature = "deadpool-redis")]
    pub(super) fn gone(&self) -> impl Iterator<Item = &str> {
        let sentinels = match self {
            Self::Sentinel(answer) => &*answer.gone,
            Self::Member(_) => &[],
        };
        let sentinels = sentinels.iter().map(String::as_str);
        sentinels.chain(self.failed_members())
    }

    /// Returns how many members have slots.
    pub(super) fn masters(&self) -> usize {
        match self {
            Self::Sentinel(_) => 0,
            Self::Member(view) => {
                let members = view.members.iter();
                members.filter(|member| !member.slots.is_empty()).count()
            }
        }
    }

    /// Returns the members that the Cluster has found to have failed, and has not forgotten.
    pub(crate) fn failed_members(&self) -> impl Iterator<Item = &str> {
        let members = match self {
            Self::Sentinel(_) => &[],
            Self::Member(view) => &*view.members,
        };
        let failed = members.iter().filter(|member| member.has("fail"));
        failed.map(|member| &*member.id)
    }
}

impl SentinelAnswer {
    /// Reads the answers of a Sentinel to `SENTINEL MYID` and `SENTINEL MASTER`.
    pub(super) fn read(by: &str, answer: &HashMap<String, String>) -> Option<Self> {
        let host = answer.get("ip").filter(|host| is_shown(host))?;
        let port = answer.get("port")?.parse().ok()?;
        let others: usize = answer.get("num-other-sentinels")?.parse().ok()?;
        Some(Self {
            by: InformantId::read(by)?,
            names: Pair {
                server: NamedServer {
                    id: format!("{}:{port}", host.to_ascii_lowercase()),
                    host: host.clone(),
                    port,
                },
                epoch: answer.get("config-epoch")?.parse().ok()?,
            },
            is_failing_over: answer
                .get("flags")
                .is_some_and(|flags| flags.contains("failover_in_progress")),
            known: others + 1,
            running: others + 1,
            gone: Vec::new(),
        })
    }
}

impl View {
    /// Reads the answer to `CLUSTER NODES` of the node at `host`, which may not know its own address.
    ///
    /// Certificates are of names, so with TLS a name is taken where there is one.
    pub(crate) fn read(answer: &str, host: &str, with_tls: bool) -> Option<Self> {
        let members = answer.lines().map(|line| Member::read(line, with_tls));
        let mut members = members.collect::<Option<Vec<_>>>()?;
        // One that is being introduced is no member yet.
        members.retain(|member| !member.has("handshake"));
        let itself = members.iter_mut().find(|member| member.is_itself())?;
        if itself.host.is_empty() {
            itself.host = host.to_owned();
        }
        Some(Self {
            by: InformantId::read(&itself.id)?,
            members,
        })
    }

    fn statement(&self, slot: u16) -> Statement<NamedServer> {
        let owner = self.members.iter().find(|member| member.owns(slot));
        let names = owner.map(|owner| Pair {
            server: NamedServer {
                id: owner.id.clone(),
                host: owner.host.clone(),
                port: owner.port,
            },
            epoch: owner.epoch,
        });
        let itself = owner.filter(|owner| owner.is_itself());
        Statement {
            by: self.by,
            names,
            known: self.members.len(),
            running: self.members.len(),
            is_moving: itself.map(|itself| itself.moving.contains(&slot)),
        }
    }
}

/// A line of `CLUSTER NODES`.
#[derive(Clone, Debug, Eq, PartialEq)]
struct Member {
    id: String,
    host: String,
    port: u16,
    flags: String,
    epoch: u64,
    /// The first and the last of each range.
    slots: Vec<(u16, u16)>,
    /// The slots that are on their way to or from it; a node tells that of itself only.
    moving: Vec<u16>,
}

impl Member {
    /// Reads `id ip:port@bus,hostname flags master ping-sent pong-received epoch link slots…`.
    fn read(line: &str, with_tls: bool) -> Option<Self> {
        let fields: Vec<&str> = line.split(' ').collect();
        let (&[id, address, flags, _, _, _, epoch, _], slots) = fields.split_first_chunk::<8>()?;
        let mut address = address.split(',');
        let (host, port) = address.next()?.split('@').next()?.rsplit_once(':')?;
        let name = address.next().filter(|name| !name.is_empty());
        let host = name.filter(|_| with_tls || host.is_empty()).unwrap_or(host);
        let range = |range: &&str| {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            first.parse().ok().zip(last.parse().ok())
        };
        // Written as `[77->-id]` or `[77-<-id]`.
        let moving = |slot: &&str| {
            let (slot, _) = slot.strip_prefix('[')?.split_once('-')?;
            slot.parse().ok()
        };
        Some(Self {
            id: id.to_owned(),
            host: Some(host).filter(|host| is_shown(host))?.to_owned(),
            port: port.parse().ok()?,
            flags: flags.to_owned(),
            epoch: epoch.parse().ok()?,
            slots: slots.iter().filter_map(range).collect(),
            moving: slots.iter().filter_map(moving).collect(),
        })
    }

    fn has(&self, flag: &str) -> bool {
        self.flags.split(',').any(|has| has == flag)
    }

    fn is_itself(&self) -> bool {
        self.has("myself")
    }

    fn owns(&self, slot: u16) -> bool {
        let mut ranges = self.slots.iter();
        ranges.any(|(first, last)| (*first..=*last).contains(&slot))
    }
}

/// Returns whether a host may be shown to operators.
pub(super) fn is_shown(host: &str) -> bool {
    let is_shown = |c: char| c.is_ascii_alphanumeric() || ".:_-".contains(c);
    host.chars().all(is_shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "00000000000000aaffffffffffffffffffffffff";

    #[test]
    fn the_address_and_the_epoch_that_a_sentinel_names_are_read() {
        let answer = |host: &str| {
            let pairs = [
                ("ip", host),
                ("port", "6379"),
                ("num-other-sentinels", "2"),
                ("config-epoch", "7"),
            ];
            let pairs = HashMap::from(pairs.map(|(name, value)| (name.into(), value.into())));
            SentinelAnswer::read(ID, &pairs)
        };
        let answered = answer("10.0.0.9").unwrap();
        let Pair { server, epoch } = &answered.names;
        assert_eq!((&*server.host, server.port, *epoch), ("10.0.0.9", 6379, 7));
        assert_eq!((answered.by, answered.known), (InformantId::new(0xaa), 3));
        let statement = Testimony::Sentinel(answered).statement(0);
        assert_eq!(statement.names.unwrap().epoch, 7);
        assert_eq!(answer("a b\r\nc"), None);
        assert_eq!(SentinelAnswer::read(ID, &HashMap::new()), None);
    }

    // Shows: R7.1.
    #[test]
    fn a_sentinel_that_fails_a_master_over_names_nothing() {
        let pairs = [
            ("ip", "10.0.0.9"),
            ("port", "6379"),
            ("flags", "master,failover_in_progress"),
            ("num-other-sentinels", "2"),
            ("config-epoch", "8"),
        ];
        let pairs = HashMap::from(pairs.map(|(name, value)| (name.into(), value.into())));
        let answered = SentinelAnswer::read(ID, &pairs).unwrap();
        let statement = Testimony::Sentinel(answered).statement(0);
        assert_eq!((statement.names, statement.known), (None, 3));
    }

    /// A Cluster whose first node has not been told its own address, with a slot on its way.
    const NODES: &str = "\
aaaaaaaaaaaaaaaaaaaa :7000@17000 myself,master - 0 0 1 connected 0-100 102 [77->-bbbbbbbbbbbbbbbbbbbb]
bbbbbbbbbbbbbbbbbbbb 10.0.0.2:7001@17001,two.example master,fail - 0 1 2 connected 101 200-300 [250-<-aaaaaaaaaaaaaaaaaaaa]
cccccccccccccccccccc 10.0.0.3:7002@17002,,shard-id=5 slave bbbbbbbbbbbbbbbbbbbb 0 1 2 connected
dddddddddddddddddddd :0@0 slave,noaddr aaaaaaaaaaaaaaaaaaaa 0 1 1 disconnected
eeeeeeeeeeeeeeeeeeee 10.0.0.5:7004@17004 handshake - 0 0 0 connected
";

    fn view(with_tls: bool) -> Testimony {
        Testimony::Member(View::read(NODES, "c1", with_tls).unwrap())
    }

    #[test]
    fn a_node_of_a_cluster_names_the_owner_of_a_slot_and_the_other_nodes() {
        let view = view(false);
        let own = view.statement(76);
        let Pair { server, epoch } = own.names.unwrap();
        assert_eq!((&*server.host, server.port, epoch), ("c1", 7000, 1));
        assert_eq!(own.by, InformantId::new(0xaaaa_aaaa_aaaa_aaaa));
        assert_eq!((own.known, own.is_moving), (4, Some(false)));
        let others: Vec<_> = view.others().collect();
        assert_eq!(others, [("10.0.0.2", 7001), ("10.0.0.3", 7002)]);
        let failed: Vec<_> = view.failed_members().collect();
        assert_eq!(failed, ["bbbbbbbbbbbbbbbbbbbb"]);
        for (slot, owner) in [
            (101, Some(("10.0.0.2", 2))),
            (250, Some(("10.0.0.2", 2))),
            (301, None),
        ] {
            let statement = view.statement(slot);
            let named = statement.names.as_ref();
            let named = named.map(|pair| (&*pair.server.host, pair.epoch));
            assert_eq!(named, owner, "{slot}");
            assert_eq!(statement.is_moving, None, "only its owner knows: {slot}");
        }
    }

    // Shows: R7.10.
    #[test]
    fn the_owner_of_a_slot_says_that_it_is_on_its_way() {
        assert_eq!(view(false).statement(77).is_moving, Some(true));
    }

    #[test]
    fn with_tls_a_node_is_named_by_its_host_name() {
        let named = view(true).statement(101).names.unwrap();
        assert_eq!(named.server.host, "two.example");
    }

    #[test]
    fn what_no_node_of_a_cluster_answers_is_refused() {
        for nonsense in [
            "",
            "aaaaaaaaaaaaaaaa\n",
            "aaaaaaaaaaaaaaaa a b:1@2 myself,master - 0 0 1 connected\n",
            "short h:1@2 myself,master - 0 0 1 connected\n",
            "aaaaaaaaaaaaaaaa h:1@2 myself,master - 0 0 x connected\n",
        ] {
            assert_eq!(View::read(nonsense, "c1", false), None, "{nonsense}");
        }
    }
}
