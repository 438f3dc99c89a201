//! Failovers of a Cluster.

use redlock_core::{NodeConfig, Redlock};
use redlock_tests::{Bus, ClusterNodes, eventually};

use super::{
    FOLLOWED,
    form::{Form, Way},
};

/// A Cluster of three masters with a replica each, which has one vote or three.
pub(super) struct ClusterForm {
    nodes: ClusterNodes,
    bus: Bus,
    url: String,
    /// The hash tag of each vote.
    tags: Vec<String>,
    /// The server of each vote that was replaced last, how it was, and whether it has come back.
    old: Vec<Option<Old>>,
}

struct Old {
    port: u16,
    way: Way,
    is_back: bool,
}

impl ClusterForm {
    /// Starts a Cluster with this number of votes.
    pub(super) async fn start(votes: usize) -> Self {
        let nodes = ClusterNodes::start(3);
        let bus = Bus::of(&nodes).await;
        let url = match votes {
            1 => nodes.url(),
            _ => format!("{}?votes={votes}", nodes.url()),
        };
        let tags = tags_of(&url);
        assert_eq!(tags.len(), votes);
        Self {
            nodes,
            bus,
            url,
            tags,
            old: (0..votes).map(|_| None).collect(),
        }
    }
}

impl Form for ClusterForm {
    fn name(&self) -> &'static str {
        match self.tags.len() {
            1 => "a Cluster with one vote",
            _ => "a Cluster with three votes",
        }
    }

    fn urls(&self) -> Vec<String> {
        vec![self.url.clone()]
    }

    fn votes(&self) -> usize {
        self.tags.len()
    }

    fn at_once(&self, way: Way) -> usize {
        match way {
            Way::Planned => self.tags.len() / 2 + 1,
            // A majority of the masters elects the replica.
            _ => 1,
        }
    }

    async fn replace(&mut self, vote: usize, way: Way) {
        let port = self.nodes.owner(&self.tags[vote]);
        match way {
            Way::Freeze => self.nodes.at(port).freeze().unwrap(),
            Way::Kill => self.nodes.at_mut(port).kill().unwrap(),
            Way::Planned => self.nodes.fail_over(port).unwrap(),
            Way::Cut => self.bus.cut_off(&[port]),
        }
        let is_back = false;
        self.old[vote] = Some(Old { port, way, is_back });
    }

    async fn is_replaced(&self, vote: usize) {
        let Some(old) = &self.old[vote] else { return };
        if old.way == Way::Planned {
            self.nodes.promote_replica(&self.tags[vote], old.port).await;
        } else {
            self.nodes.succeeded(&self.tags[vote], old.port).await;
        }
    }

    fn bring_back(&mut self, vote: usize) {
        let Some(old) = self.old[vote].as_mut().filter(|old| !old.is_back) else {
            return;
        };
        old.is_back = true;
        match old.way {
            Way::Freeze => self.nodes.at(old.port).thaw().unwrap(),
            Way::Kill => {
                let server = self.nodes.at_mut(old.port);
                server.restart().unwrap();
                self.bus.announce(server);
            }
            Way::Cut => self.bus.let_through(),
            Way::Planned => {}
        }
    }

    async fn can_be_promoted(&self, vote: usize) {
        let Some(old) = &self.old[vote] else { return };
        let server = self.nodes.at(old.port);
        let is_copy = || {
            let info = server.command(&["INFO", "replication"]);
            let info = info.as_ref().ok().and_then(|info| info.as_text());
            info.is_some_and(|info| info.contains("master_link_status:up"))
        };
        eventually("the old owner follows", FOLLOWED, is_copy, |is| *is).await;
    }

    async fn lose_file(&mut self) {
        // A node without its file is a new member, and the old one has to be forgotten.
    }

    fn keys(&self) -> Vec<String> {
        self.nodes.keys()
    }
}

/// The hash tag of each node that a URL means.
fn tags_of(url: &str) -> Vec<String> {
    let nodes = NodeConfig::from(url).votes();
    let keys = Redlock::builder().node_keys().unwrap();
    let patterns = nodes.iter().map(|node| node.node_keys(&keys).pattern());
    let tags = patterns.map(|pattern| pattern.split_inclusive('}').next().unwrap().to_owned());
    tags.collect()
}
