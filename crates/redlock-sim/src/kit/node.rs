use std::{
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use redlock_core::node::{Answer, Keyspace, NodeTime, Request, RunId, Store};
use tokio::{sync::watch, time::Instant};

/// Nodes that a test can break.
///
/// Clones are handles to the same nodes.
/// They vote at once, because no client can have used them before.
#[derive(Clone, Debug)]
pub struct SimNodes {
    pub(super) nodes: Arc<[SimNode]>,
}

/// One node: its data, its clock, and whether it is up.
#[derive(Clone)]
pub struct SimNode {
    shared: Arc<Shared>,
}

struct Shared {
    name: Arc<str>,
    began: Instant,
    state: Mutex<State>,
    /// Whether it does anything; connections wait for it.
    frozen: watch::Sender<bool>,
}

struct State {
    store: Store,
    up: bool,
    /// Which start of it this is; connections to another are broken.
    start: u64,
    /// By how much its clock is ahead, in microseconds.
    ahead: i64,
}

impl SimNodes {
    /// Makes this many nodes, which are up.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime: their clocks are tokio's.
    pub fn new(count: usize) -> Self {
        let began = Instant::now();
        let nodes = (0..count).map(|number| SimNode::new(number, began));
        Self {
            nodes: nodes.collect(),
        }
    }

    /// Returns one node.
    ///
    /// # Panics
    ///
    /// If there is no such node.
    pub fn node(&self, number: usize) -> &SimNode {
        &self.nodes[number]
    }

    /// Returns all of them.
    pub fn iter(&self) -> std::slice::Iter<'_, SimNode> {
        self.nodes.iter()
    }

    /// Returns the number of nodes.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Returns the number of lock keys on each node.
    pub fn locks(&self) -> Vec<usize> {
        self.iter().map(SimNode::locks).collect()
    }

    /// Repairs every node: up, and no longer frozen.
    pub fn repair(&self) {
        for node in self.iter() {
            node.thaw();
            node.restart();
        }
    }
}

impl<'a> IntoIterator for &'a SimNodes {
    type Item = &'a SimNode;
    type IntoIter = std::slice::Iter<'a, SimNode>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl SimNode {
    fn new(number: usize, began: Instant) -> Self {
        let shared = Shared {
            name: format!("sim:{number}").into(),
            began,
            state: Mutex::new(State {
                store: Store::vouched_for(new_run()),
                up: true,
                start: 0,
                ahead: 0,
            }),
            frozen: watch::Sender::new(false),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// Ends the node, as a kill does; its data stays for the next start, unless it [forgets](Self::forget) it.
    pub fn crash(&self) {
        self.state().up = false;
    }

    /// Starts the node again, as another run of the server, which does not vote until its quarantine has ended.
    ///
    /// It has no effect if the node is up.
    pub fn restart(&self) {
        let mut state = self.state();
        if !state.up {
            state.up = true;
            state.start += 1;
            state.store.restart(new_run());
        }
    }

    /// Deletes all data of the node, as `FLUSHALL` or a lost disk does.
    pub fn forget(&self) {
        self.state().store.flush();
    }

    /// Deletes the lock keys, as an operator could.
    pub fn drop_locks(&self) {
        self.state().store.drop_locks();
    }

    /// Freezes the node; requests wait, and run when it goes on.
    pub fn freeze(&self) {
        self.shared.frozen.send_replace(true);
    }

    /// Lets a frozen node go on.
    pub fn thaw(&self) {
        self.shared.frozen.send_replace(false);
    }

    /// Sets its wall clock forward.
    pub fn set_clock_forward(&self, by: Duration) {
        self.state().ahead += micros(by).cast_signed();
    }

    /// Sets its wall clock back.
    pub fn set_clock_back(&self, by: Duration) {
        self.state().ahead -= micros(by).cast_signed();
    }

    /// Returns the number of lock keys on the node.
    pub fn locks(&self) -> usize {
        let state = self.state();
        state.store.locks(self.time(&state))
    }

    pub(super) fn name(&self) -> Arc<str> {
        Arc::clone(&self.shared.name)
    }

    /// Returns the start that a connection is made to; `None` if it is down.
    pub(super) fn accept(&self) -> Option<u64> {
        let state = self.state();
        state.up.then_some(state.start)
    }

    /// Waits until it does something.
    pub(super) async fn running(&self) {
        let mut frozen = self.shared.frozen.subscribe();
        // The sender is part of the node, which is borrowed here.
        let _ = frozen.wait_for(|frozen| !frozen).await;
    }

    /// Does what a call asks, on a connection to this start; `None` if that connection is broken.
    pub(super) fn call(
        &self,
        start: u64,
        keyspace: &Keyspace,
        requests: &[Request],
    ) -> Option<Answer> {
        let mut state = self.state();
        let time = self.time(&state);
        (state.up && state.start == start).then(|| state.store.call(keyspace, requests, time))
    }

    fn time(&self, state: &State) -> NodeTime {
        let now = SOME_DAY + micros(self.shared.began.elapsed());
        NodeTime::from_micros(now.saturating_add_signed(state.ahead))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // The state is consistent at every moment, also after a panic.
        self.shared
            .state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for SimNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SimNode").field(&self.shared.name).finish()
    }
}

fn new_run() -> RunId {
    static RUNS: AtomicU64 = AtomicU64::new(1);
    RunId::from(&*format!("{:040x}", RUNS.fetch_add(1, Ordering::Relaxed)))
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

/// A day in 2025, when every world begins.
const SOME_DAY: u64 = 1_750_000_000_000_000;
