//! Nodes that restart, lose data or have replicas.

use super::RedlockBuilder;

impl RedlockBuilder {
    /// Lets a node vote at once after a restart if it still has its data.
    ///
    /// By default a node that restarted, was promoted, or has lost its data does not vote for `max_ttl` and a
    /// little more, since it may have forgotten leases.
    /// Use this only if *every* node writes each command to disk before it answers (`appendonly yes` with
    /// `appendfsync always`) and has no replica that could take its place: with `appendfsync everysec` a mere
    /// `kill -9` was seen to lose thousands of acknowledged writes.
    /// All clients of a namespace must agree on it; a node with `appendonly no` does not vote under it.
    ///
    /// # Examples
    ///
    /// ```
    /// use redlock_core::Redlock;
    ///
    /// let builder = Redlock::builder()
    ///     .nodes(["redis://10.0.0.1", "redis://10.0.0.2", "redis://10.0.0.3"])
    ///     // Each has `appendonly yes`, `appendfsync always` and no replica.
    ///     .dangerous_trust_persistence();
    /// # drop(builder);
    /// ```
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
    ///
    /// # Examples
    ///
    /// ```
    /// use redlock_core::Redlock;
    /// use std::time::Duration;
    ///
    /// let builder = Redlock::builder()
    ///     .nodes(["redis://10.0.0.1", "redis://10.0.0.2", "redis://10.0.0.3"])
    ///     .max_ttl(Duration::from_secs(30))
    ///     // Each one's entrypoint waits for 31.3 s before it starts the server.
    ///     .dangerous_trust_delayed_restarts();
    /// # drop(builder);
    /// ```
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
    ///
    /// # Examples
    ///
    /// ```
    /// use redlock_core::Redlock;
    ///
    /// // Each of these has a replica, and a Sentinel that may promote it.
    /// let builder = Redlock::builder()
    ///     .nodes(["redis://10.0.0.1", "redis://10.0.0.2", "redis://10.0.0.3"])
    ///     .accept_replicas();
    /// # drop(builder);
    /// ```
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
    ///
    /// # Examples
    ///
    /// ```
    /// use redlock_core::Redlock;
    ///
    /// // No resource of this program checks fencing tokens.
    /// let builder = Redlock::builder()
    ///     .nodes(["redis://10.0.0.1", "redis://10.0.0.2", "redis://10.0.0.3"])
    ///     .dangerous_guess_fencing_floor();
    /// # drop(builder);
    /// ```
    pub fn dangerous_guess_fencing_floor(mut self) -> Self {
        self.config.guess_fencing_floor = true;
        self
    }
}
