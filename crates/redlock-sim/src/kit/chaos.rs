use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::{Fault, Links, SimNodes, VirtualProcess};
use crate::random::Random;

/// Makes nodes and connections fail at random, from a seed.
///
/// Usually a minority of the nodes is down or frozen at a time, and sometimes more nodes are; any connection may fail
/// at any time.
#[derive(Clone, Debug)]
pub struct Chaos {
    random: Random,
    forgets: bool,
    processes: Vec<VirtualProcess>,
}

impl Chaos {
    /// Returns chaos whose faults all follow from the seed.
    pub fn new(seed: u64) -> Self {
        Self {
            random: Random::new(seed),
            forgets: false,
            processes: Vec::new(),
        }
    }

    /// Makes nodes lose their data too, after which they do not vote for some time.
    pub fn with_forgetful_nodes(mut self) -> Self {
        self.forgets = true;
        self
    }

    /// Makes processes stand still too, each for a second on average.
    pub fn with_processes(mut self, processes: &[VirtualProcess]) -> Self {
        self.processes = processes.to_vec();
        self
    }

    /// Breaks and repairs until `until`, and then repairs everything.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, broken nodes and connections stay broken.
    pub async fn run(mut self, nodes: &SimNodes, links: &[Links], until: Instant) {
        while Instant::now() < until {
            match self.random.below(10) {
                0..6 => self.break_link(nodes, links),
                6 => self.break_node(nodes),
                7 => nodes.repair(),
                _ => links.iter().for_each(Links::heal),
            }
            if !self.processes.is_empty() {
                self.freeze_or_thaw();
            }
            sleep(self.ms(250)).await;
        }
        nodes.repair();
        links.iter().for_each(Links::heal);
        self.processes.iter().for_each(VirtualProcess::thaw);
    }

    fn freeze_or_thaw(&mut self) {
        // A step in eight ends all pauses, and there are eight steps in a second.
        let process = &self.processes[self.random.index(self.processes.len())];
        match self.random.below(16) {
            0 => process.freeze(),
            1 | 2 => self.processes.iter().for_each(VirtualProcess::thaw),
            _ => {}
        }
    }

    fn break_link(&mut self, nodes: &SimNodes, links: &[Links]) {
        let link = self.random.index(links.len());
        let node = self.random.index(nodes.len());
        let fault = match self.random.below(7) {
            0 => Fault::Slow {
                request: self.ms(200),
                reply: self.ms(5),
            },
            1 => Fault::Slow {
                request: self.ms(5),
                reply: self.ms(200),
            },
            2 => Fault::NoReplies,
            3 => Fault::BlackHole,
            4 => Fault::CutBefore,
            5 => Fault::CutAfter,
            _ => Fault::Late { by: self.ms(2_000) },
        };
        if let Some(links) = links.get(link) {
            links.set(node, fault);
        }
    }

    fn break_node(&mut self, nodes: &SimNodes) {
        let node = nodes.node(self.random.index(nodes.len()));
        match self.random.below(4) {
            0 => node.freeze(),
            1 if self.forgets => node.forget(),
            2 if self.forgets => {
                node.crash();
                node.forget();
            }
            3 if self.forgets => node.crash(),
            _ => node.thaw(),
        }
    }

    fn ms(&mut self, bound: u64) -> Duration {
        Duration::from_millis(self.random.below(bound))
    }
}
