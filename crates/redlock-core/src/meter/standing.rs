//! The standing of nodes, in gauges that all clients of a namespace in this process share.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use metrics::{Gauge, gauge};
use redlock_proto::NodeAnswer;

use super::{Offsets, tell};

/// The gauges of one client; the last one that goes takes back what they say.
pub(super) struct NodeGauges {
    majority: usize,
    nodes: Vec<GaugesOfNode>,
    margin: SharedGauge,
    clock_offset: SharedGauge,
    /// Those that say what does not change.
    _fixed: [SharedGauge; 2],
}

struct GaugesOfNode {
    up: SharedGauge,
    votes: SharedGauge,
    quarantine: SharedGauge,
    clock_offset: SharedGauge,
}

impl NodeGauges {
    pub(super) fn new(namespace: &Arc<str>, majority: usize, nodes: &[Arc<str>]) -> Self {
        let of_client = |name, value| SharedGauge::new(name, namespace, None, value);
        let of_node = |node: &Arc<str>| {
            let shared = |name| SharedGauge::new(name, namespace, Some(node), 0.0);
            let offset = "redlock_node_clock_offset_seconds";
            GaugesOfNode {
                up: shared("redlock_node_up"),
                votes: shared("redlock_node_votes"),
                quarantine: shared("redlock_node_quarantine_remaining_seconds"),
                clock_offset: SharedGauge::new(offset, namespace, Some(node), UNKNOWN),
            }
        };
        Self {
            majority,
            nodes: nodes.iter().map(of_node).collect(),
            margin: of_client("redlock_quorum_margin", -(majority as f64)),
            clock_offset: of_client("redlock_clock_offset_seconds", UNKNOWN),
            _fixed: [
                of_client("redlock_nodes", nodes.len() as f64),
                of_client("redlock_quorum", majority as f64),
            ],
        }
    }

    /// Notes which nodes there is a connection to, how they stand, and how far clocks are off.
    pub(super) fn look(&self, up: &[bool], answers: &[NodeAnswer], offsets: &Offsets) {
        let mut votes = 0;
        for ((node, is_up), answer) in self.nodes.iter().zip(up).zip(answers) {
            let is_voting = matches!(answer, NodeAnswer::Reachable);
            votes += u32::from(is_voting);
            node.up.set(f64::from(u8::from(*is_up)));
            node.votes.set(f64::from(u8::from(is_voting)));
            let ready_in = match answer {
                NodeAnswer::NotAVote { reason } => reason.ready_in(),
                _ => None,
            };
            node.quarantine
                .set(ready_in.unwrap_or_default().as_secs_f64());
        }
        self.margin.set(f64::from(votes) - self.majority as f64);
        for (node, offset) in self.nodes.iter().zip(&offsets.nodes) {
            node.clock_offset.set(offset.unwrap_or(UNKNOWN));
        }
        self.clock_offset.set(offsets.own.unwrap_or(UNKNOWN));
    }
}

/// A gauge that other clients of this process may set, too.
struct SharedGauge {
    series: Series,
    gauge: Gauge,
}

/// The name of a gauge and its labels: a namespace, and perhaps a node.
type Series = (&'static str, Arc<str>, Option<Arc<str>>);

impl SharedGauge {
    /// Registers it, with this value unless another client sets it already.
    fn new(name: &'static str, namespace: &Arc<str>, node: Option<&Arc<str>>, first: f64) -> Self {
        let namespace = Arc::clone(namespace);
        let gauge = match node {
            Some(node) => {
                gauge!(name, "namespace" => Arc::clone(&namespace), "node" => Arc::clone(node))
            }
            None => gauge!(name, "namespace" => Arc::clone(&namespace)),
        };
        let series = (name, namespace, node.cloned());
        let mut clients = clients();
        let others = clients.entry(series.clone()).or_default();
        *others += 1;
        let is_first = *others == 1;
        drop(clients);
        let shared = Self { series, gauge };
        if is_first {
            shared.set(first);
        }
        shared
    }

    fn set(&self, value: f64) {
        tell(|| self.gauge.set(value));
    }
}

impl Drop for SharedGauge {
    fn drop(&mut self) {
        let mut clients = clients();
        // invariant: it was counted when it was made
        if let Some(count) = clients.get_mut(&self.series) {
            *count -= 1;
            if *count > 0 {
                return;
            }
            clients.remove(&self.series);
        }
        drop(clients);
        self.set(UNKNOWN);
    }
}

/// Returns how many clients of this process set each gauge.
fn clients() -> MutexGuard<'static, BTreeMap<Series, usize>> {
    static CLIENTS: Mutex<BTreeMap<Series, usize>> = Mutex::new(BTreeMap::new());
    // Nothing panics while it is locked.
    CLIENTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a gauge says of which nothing is known: no alert compares with it.
const UNKNOWN: f64 = f64::NAN;
