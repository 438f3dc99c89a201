//! Describes a client, and starts it.

mod build;

use std::time::Duration;

use crate::{Config, FanOut, MemoryNode, NodeConfig, Redlock, VirtualProcess, Wait};

/// Describes a client; made by [`Redlock::builder`].
///
/// Only the nodes have no default.
#[derive(Debug)]
#[must_use = "a builder does nothing until `build` is called"]
pub struct RedlockBuilder {
    config: Config,
    max_waiters_per_key: usize,
    max_waiters: usize,
    max_hand_overs: u32,
    connect_lazily: bool,
    functions: bool,
    process: Option<VirtualProcess>,
    seed: Option<u64>,
    fan_out: FanOut,
}

impl Redlock {
    /// Starts to describe a client.
    pub fn builder() -> RedlockBuilder {
        RedlockBuilder::new()
    }
}

impl RedlockBuilder {
    fn new() -> Self {
        Self {
            config: Config::default(),
            max_waiters_per_key: 1_024,
            max_waiters: 65_536,
            max_hand_overs: 15,
            connect_lazily: false,
            functions: true,
            process: None,
            seed: None,
            fan_out: FanOut::default(),
        }
    }

    /// Adds a node: a URL (`redis://[user:password@]host[:port][/db]`, `rediss://…` with the feature
    /// `tls-rustls`, `unix:///path`), a [`deadpool_redis::Config`], a ready [`deadpool_redis::Pool`] or
    /// a [`MemoryNode`].
    ///
    /// Each must be an independent master: a vote from a replica, or two votes from one server, would
    /// let two holders in.
    pub fn node(mut self, node: impl Into<NodeConfig>) -> Self {
        self.config.nodes.push(node.into());
        self
    }

    /// Adds nodes; see [`node`](Self::node).
    pub fn nodes<N: Into<NodeConfig>>(mut self, nodes: impl IntoIterator<Item = N>) -> Self {
        self.config.nodes.extend(nodes.into_iter().map(Into::into));
        self
    }

    /// Adds this many fresh nodes in memory, for tests and first runs.
    ///
    /// They exclude within this client only; share [`MemoryNode`]s to have several clients contend.
    pub fn in_memory_nodes(self, nodes: usize) -> Self {
        self.nodes((0..nodes).map(|_| MemoryNode::new()))
    }

    /// Takes settings over from a configuration; what it leaves out stays as it is, and its nodes are
    /// added.
    pub fn config(mut self, mut config: Config) -> Self {
        let mut nodes = std::mem::take(&mut self.config.nodes);
        nodes.append(&mut config.nodes);
        self.config = self.config.overridden_by(config);
        self.config.nodes = nodes;
        self
    }

    /// Sets the namespace of all keys: 1 to 32 letters, digits, `.`, `_` or `-`.
    ///
    /// Default: `redlock`.
    /// Clients of different namespaces do not exclude each other.
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.config.namespace = Some(namespace.into());
        self
    }

    /// Uses names as keys just as they are, without a namespace.
    ///
    /// Other Redlock libraries that lock the same key with `SET key value NX PX ttl` exclude us then,
    /// and we them.
    pub fn verbatim_keys(mut self) -> Self {
        self.config.verbatim_keys = true;
        self
    }

    /// Sets what is told of this client as a holder: 1 to 64 printable characters of ASCII.
    ///
    /// Default: the host and the process, such as `web-7:4312`.
    /// Nodes keep it behind the secret by which a lease is released, together with the
    /// [class](crate::AcquireOptions::class) of what is held: `order@web-7:4312`.
    /// [`AcquireError::holder`](crate::AcquireError::holder) and the errors of other clients tell it; it is public, and
    /// decides nothing.
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.config.label = Some(label.into());
        self
    }

    /// Sets how long nodes keep a key without a renewal, where an acquire asks for nothing else: from
    /// 100 ms to `max_ttl`.
    ///
    /// Default: 10 s.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.config.ttl = Some(ttl);
        self
    }

    /// Sets the longest time to live that an acquire may ask for, up to 24 hours.
    ///
    /// Default: 30 s.
    /// A node that restarts without its data must stay away for longer than this, so all clients of a
    /// set of nodes must agree on it.
    pub fn max_ttl(mut self, max_ttl: Duration) -> Self {
        self.config.max_ttl = Some(max_ttl);
        self
    }

    /// Sets how long an acquire waits for a resource that another holds, where it asks for nothing else.
    ///
    /// Default: up to 5 s.
    pub fn wait(mut self, wait: Wait) -> Self {
        self.config.wait = Some(wait.duration());
        self
    }

    /// Sets how long an outage of the nodes may last before acquires fail because of it: any time, zero included.
    ///
    /// Default: 2 s, so that a proxy or a node that is back within a second fails nobody.
    /// The [`wait`](Self::wait) is for another holder; it does not help when too few nodes give a usable answer.
    /// The time counts from the moment at which this client saw the majority go, and not from each acquire: during
    /// an outage that has lasted longer, every acquire fails with its first attempt.
    /// Where nodes in quarantine are what is missing, an acquire fails with its first attempt if they have said that
    /// they need longer than what is left of its wait; else it waits until they vote.
    /// An acquire never waits longer than its own wait, and [claims](Redlock::claim) of ticks wait for a majority as
    /// long as for anything else.
    pub fn quorum_wait(mut self, quorum_wait: Duration) -> Self {
        self.config.quorum_wait = Some(quorum_wait);
        self
    }

    /// Sets how long a node may take to answer before it is left behind: from 1 ms to 60 s.
    ///
    /// Default: a tenth of `ttl`, between 50 ms and 500 ms.
    /// It is never longer than half the time to live asked for.
    /// Only a majority is waited for, so this matters when a majority is slow.
    pub fn node_timeout(mut self, limit: Duration) -> Self {
        self.config.node_timeout = Some(limit);
        self
    }

    /// Sets how long a connection to a node may take to be made: from 1 ms to 60 s.
    ///
    /// Default: 1 s.
    pub fn connect_timeout(mut self, limit: Duration) -> Self {
        self.config.connect_timeout = Some(limit);
        self
    }

    /// Sets by how much the rate of any clock involved may be off: from 0 to 0.25.
    ///
    /// Default: 0.01, which is one per cent.
    /// Exclusion rests on it; chrony, for one, slews by up to 8.3 % unless `maxslewrate` is set.
    pub fn clock_rate_error(mut self, error: f64) -> Self {
        self.config.clock_rate_error = Some(error);
        self
    }

    /// Sets how many callers of this process may wait for one resource; more fail with
    /// [`Overloaded`](crate::AcquireErrorKind::Overloaded).
    ///
    /// With 0 nobody waits behind another caller of this process, only for other processes.
    /// Default: 1,024.
    pub fn max_waiters_per_key(mut self, waiters: usize) -> Self {
        self.max_waiters_per_key = waiters;
        self
    }

    /// Sets how many callers of this process may wait in all; more fail with
    /// [`Overloaded`](crate::AcquireErrorKind::Overloaded).
    ///
    /// Default: 65,536.
    pub fn max_waiters(mut self, waiters: usize) -> Self {
        self.max_waiters = waiters;
        self
    }

    /// Lets a node vote at once after a restart if it still has its data.
    ///
    /// By default a node that restarted, was promoted, or has lost its data does not vote for `max_ttl` and a
    /// little more, since it may have forgotten leases.
    /// Use this only if *every* node writes each command to disk before it answers (`appendonly yes` with
    /// `appendfsync always`) and has no replica that could take its place: with `appendfsync everysec` a mere
    /// `kill -9` was seen to lose thousands of acknowledged writes.
    /// All clients of a namespace must agree on it; a node with `appendonly no` does not vote under it.
    pub fn dangerous_trust_persistence(mut self) -> Self {
        self.config.trust_persistence = true;
        self
    }

    /// Lets a master vote at once that began a new run without data, because it has stayed away for long enough before.
    ///
    /// By default a node that restarted does not vote for `max_ttl` and a little more from the first look on that a client
    /// takes at it.
    /// Where other clients lock too, each master must wait by itself before it listens, and the two waits add up.
    /// With this, the master's own wait is the only one.
    ///
    /// Use it only if *every* master stays away for `max_ttl`, 1 % of it and a second whenever it has stopped, however it
    /// was stopped, keeps nothing on disk (`save ""` and `appendonly no`), and is never emptied while it runs.
    /// The client checks what it can see: a master that still has a mark, that has lately followed another, or that this
    /// client has seen before and that was away for less or voted in the same run, is quarantined all the same.
    /// So is one that cannot be called by functions
    /// ([`RIGHTS_FOR_FUNCTIONS`](crate::node::RedisNode::RIGHTS_FOR_FUNCTIONS)).
    /// A master that is emptied by `FLUSHALL` while it runs is noticed by clients that have heard it vote, and by the
    /// functions of their release, which later clients of that release call too.
    /// A client of another release that comes later does not notice it: empty no master while a new release is rolled out.
    /// All clients of a namespace must agree on it.
    pub fn dangerous_trust_delayed_restarts(mut self) -> Self {
        self.config.delayed_restarts = true;
        self
    }

    /// Lets a master vote that has replicas.
    ///
    /// By default it does not: a replica that takes its master's place has forgotten leases, and is out for `max_ttl`
    /// and a little more.
    /// With this, masters may be watched by Sentinel or copied for other reasons.
    /// Exclusion rests on the same as before: every vote looks at which run of the server and which data it comes from,
    /// so that each promotion, and a master's return to its place too, begins such a quarantine.
    pub fn accept_replicas(mut self) -> Self {
        self.config.accept_replicas = true;
        self
    }

    /// Lets a node vote again though too few others can be reached to tell how far it had counted.
    ///
    /// By default a node that lost its fencing counters waits for a majority of nodes that have not, or for so many
    /// that have that no such majority can come back.
    /// With this it waits for some seconds only, and then goes on from the greatest counter of those that can be
    /// reached, or from the wall clock if that is greater.
    /// While one node has lost its data and another cannot be reached, this keeps leases available and gives up that a
    /// later lease has the greater [`FencingToken`](crate::FencingToken): a warning says so each time.
    /// One client that has it is enough to open a node for all.
    pub fn dangerous_guess_fencing_floor(mut self) -> Self {
        self.config.guess_fencing_floor = true;
        self
    }

    /// Sets how often in a row a lease may pass from one caller of this process to the next, without asking the
    /// nodes and under a new fencing token each time: up to 1,000.
    ///
    /// Default: 15, and for a quarter of a second at most; zero turns it off.
    /// Each acquire reserves so many fencing tokens and one more.
    pub fn max_hand_overs(mut self, times: u32) -> Self {
        self.max_hand_overs = times;
        self
    }

    /// Sets how many of the nodes an acquire asks at once.
    ///
    /// Default: [`FanOut::Adaptive`], which asks all while the client has little to do.
    /// An acquire that asks a majority first asks the others as soon as one of those fails, when all of those have
    /// answered and too few have granted, or when they take longer than nodes do: twice the time that calls to them take
    /// at the most as a rule, and at least 2 ms.
    /// A node that has kept an acquire waiting is not asked first again until it has answered something.
    /// A lease is given to the other nodes too with its first extension: after 100 ms if it is renewed automatically.
    /// Before that, a node of it that loses its data can cost the lease its next extension, of which the holder is told,
    /// and never exclusion.
    pub fn fan_out(mut self, fan_out: FanOut) -> Self {
        self.fan_out = fan_out;
        self
    }

    /// Does not wait for connections in [`build`](Self::build), and does not fail without a majority.
    pub fn connect_lazily(mut self) -> Self {
        self.connect_lazily = true;
        self
    }

    /// Loads no functions into the nodes, and calls them by a script only.
    ///
    /// By default a library of functions is loaded into each node of Redis 7 or later, or Valkey, whose user may do that
    /// ([`RedisNode::RIGHTS_FOR_FUNCTIONS`](crate::node::RedisNode::RIGHTS_FOR_FUNCTIONS)), because a lease costs the
    /// node less then.
    /// Servers keep functions with their data: a snapshot has them, and so has a replica.
    /// This is for servers in which nothing is to be left but keys; clients with and without it can use one namespace.
    pub fn without_functions(mut self) -> Self {
        self.functions = false;
        self
    }

    /// Runs the client on the calling tokio runtime and on its clock, instead of on a thread of its own
    /// and the operating system's clock.
    ///
    /// For tests with paused time, over nodes in memory.
    /// Without it, [`build`](Self::build) fails while tokio's time is paused.
    /// In production a handler that blocks its thread would delay the renewal of leases.
    pub fn virtual_time(self) -> Self {
        self.virtual_process(&VirtualProcess::new())
    }

    /// Runs the client as [`virtual_time`](Self::virtual_time) does, as a part of this process: when it is frozen,
    /// so is the client, with its timers and connections.
    pub fn virtual_process(mut self, process: &VirtualProcess) -> Self {
        self.process = Some(process.clone());
        self
    }

    /// Takes all randomness from this seed, owners included, so that a simulation can be repeated.
    ///
    /// Whoever knows the seed can release every lease of the client: for tests only.
    pub fn dangerous_seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }
}
