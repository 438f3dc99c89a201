//! Failovers by Sentinels.

use redlock_sandbox::ServerOptions;
use redlock_tests::{WatchedNodes, eventually};

use super::{
    FOLLOWED, agreed, can_be_promoted,
    form::{Form, Way},
    named_by, replaced_by_all,
};

/// Masters with a replica each behind three Sentinels.
pub(super) struct SentinelForm {
    nodes: WatchedNodes,
    /// The server of each vote that was replaced last, how it was, and whether it has come back.
    old: Vec<Option<Old>>,
    /// How many files of Sentinels were lost.
    lost: usize,
}

struct Old {
    port: u16,
    way: Way,
    is_back: bool,
}

impl SentinelForm {
    /// Starts `count` masters.
    pub(super) fn start(count: usize) -> Self {
        let options = ServerOptions::default().password("secret");
        Self {
            nodes: WatchedNodes::start_with(count, 3, &options),
            old: (0..count).map(|_| None).collect(),
            lost: 0,
        }
    }
}

impl Form for SentinelForm {
    fn name(&self) -> &'static str {
        match self.old.len() {
            1 => "a master behind Sentinels",
            _ => "three masters behind Sentinels",
        }
    }

    fn urls(&self) -> Vec<String> {
        self.nodes.urls()
    }

    fn votes(&self) -> usize {
        self.old.len()
    }

    fn at_once(&self, _way: Way) -> usize {
        // Two of three are a majority that two servers may claim.
        self.old.len() / 2 + 1
    }

    async fn replace(&mut self, vote: usize, way: Way) {
        let named = named_by(&self.nodes.sentinels[0], vote);
        let port = named.expect("a Sentinel answers");
        match way {
            Way::Freeze => self.nodes.at(port).freeze().unwrap(),
            Way::Kill => self.nodes.at_mut(port).kill().unwrap(),
            Way::Cut => self.nodes.cut_off(port).unwrap(),
            Way::Planned => {
                let begins = || {
                    self.nodes
                        .fail_over(vote)
                        .map_err(|error| error.to_string())
                };
                eventually("a planned failover", FOLLOWED, begins, Result::is_ok)
                    .await
                    .expect("it has begun");
            }
        }
        let is_back = false;
        self.old[vote] = Some(Old { port, way, is_back });
    }

    async fn is_replaced(&self, vote: usize) {
        let Some(old) = &self.old[vote] else { return };
        if old.way == Way::Planned {
            self.nodes.promote_another(vote, old.port).await;
        }
        replaced_by_all(&self.nodes, vote, old.port).await;
    }

    fn bring_back(&mut self, vote: usize) {
        let Some(old) = self.old[vote].as_mut().filter(|old| !old.is_back) else {
            return;
        };
        old.is_back = true;
        match old.way {
            Way::Freeze => self.nodes.at(old.port).thaw().unwrap(),
            Way::Kill => self.nodes.at_mut(old.port).restart().unwrap(),
            Way::Cut => self.nodes.reconnect(old.port).unwrap(),
            Way::Planned => {}
        }
    }

    async fn can_be_promoted(&self, vote: usize) {
        // Sentinels may go back by themselves, so the old server may be the master again.
        let other = || {
            let named = named_by(&self.nodes.sentinels[0], vote);
            let [master, replica] = [&self.nodes.masters, &self.nodes.replicas];
            let pair = [master[vote].port(), replica[vote].port()];
            pair.into_iter().find(|port| Some(*port) != named)
        };
        can_be_promoted(&self.nodes, vote, || other().unwrap_or_default()).await;
    }

    async fn lose_file(&mut self) {
        self.nodes.reinstall(self.lost % 3).unwrap();
        self.lost += 1;
        for vote in 0..self.votes() {
            agreed(&self.nodes, vote).await;
        }
    }

    fn keys(&self) -> Vec<String> {
        self.nodes.keys()
    }
}
