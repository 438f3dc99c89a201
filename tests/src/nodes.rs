//! The masters of a test.

use std::{
    ops::{Deref, DerefMut, Range},
    sync::{Condvar, Mutex, PoisonError},
    time::Duration,
};

use redlock_sandbox::{ClusterSet, SentinelSet, Server, ServerBinary, ServerOptions, ServerSet};

use crate::{eventually, now};

/// Independent real servers, which end with this value.
#[derive(Debug)]
pub struct Nodes {
    servers: ServerSet,
    _slot: Slot,
}

impl Nodes {
    /// Starts `count` servers that keep their keys in memory.
    ///
    /// # Panics
    ///
    /// If there is no server program, or it does not start: a test never passes without its servers.
    pub fn start(count: usize) -> Self {
        Self::start_with(count, &ServerOptions::default())
    }

    /// Starts `count` servers with these options.
    ///
    /// # Panics
    ///
    /// As [`start`](Self::start).
    pub fn start_with(count: usize, options: &ServerOptions) -> Self {
        let slot = Slot::take(count);
        let binary = ServerBinary::find()
            .unwrap_or_else(|missing| panic!("this test needs a server: {missing}"));
        let servers = ServerSet::start(&binary, count, options)
            .unwrap_or_else(|error| panic!("this test needs a server: {error}"));
        Self {
            servers,
            _slot: slot,
        }
    }

    /// Freezes some of the servers.
    pub fn freeze(&self, nodes: Range<usize>) {
        for node in nodes {
            self[node].freeze().expect("the server runs");
        }
    }

    /// Lets frozen servers go on.
    pub fn thaw(&self, nodes: Range<usize>) {
        for node in nodes {
            self[node].thaw().expect("the server runs");
        }
    }

    /// Kills some of the servers.
    pub fn kill(&mut self, nodes: Range<usize>) {
        for node in nodes {
            self[node].kill().expect("the server runs");
        }
    }

    /// A command's reply from one node, as text; numbers too, and nothing is empty.
    ///
    /// # Panics
    ///
    /// If the server does not answer, or with an error.
    pub fn ask(&self, node: usize, command: &[&str]) -> String {
        let reply = self[node]
            .command(command)
            .unwrap_or_else(|error| panic!("node {node}, {}: {error}", command[0]));
        match (reply.as_integer(), reply.as_text()) {
            (Some(number), _) => number.to_string(),
            (_, Some(text)) => text.to_owned(),
            _ => String::new(),
        }
    }

    /// A command's replies from all nodes.
    pub fn ask_all(&self, command: &[&str]) -> Vec<String> {
        (0..self.len())
            .map(|node| self.ask(node, command))
            .collect()
    }

    /// The time to live that is left of a key, as a node says it.
    ///
    /// `None` if the key is not there.
    pub fn pttl(&self, node: usize, key: &str) -> Option<Duration> {
        let ms: i64 = self
            .ask(node, &["PTTL", key])
            .parse()
            .expect("PTTL answers with a number");
        u64::try_from(ms).ok().map(Duration::from_millis)
    }

    /// The lock keys on all nodes, as `node: key`.
    ///
    /// What a node keeps about itself is none: its mark and its counters stay for ever, a tombstone for a time to live, and
    /// a client's sign of life for three seconds.
    pub fn keys(&self) -> Vec<String> {
        let keys = |node: usize| {
            let reply = self[node]
                .command(&["KEYS", "*"])
                .unwrap_or_else(|error| panic!("node {node}, KEYS: {error}"));
            let keys = reply.as_array().expect("KEYS answers with a list");
            let line = |key: &redlock_sandbox::Value| {
                format!("{node}: {}", key.as_text().unwrap_or("(binary)"))
            };
            let lines = keys.iter().map(line);
            let is_own = |line: &String| {
                line.ends_with("}:mark")
                    || line.ends_with("}:counters")
                    || line.contains("}:tomb:")
                    || line.contains("}:alive:")
            };
            lines.filter(|line| !is_own(line)).collect::<Vec<_>>()
        };
        (0..self.len()).flat_map(keys).collect()
    }

    /// Waits until no node has any key.
    ///
    /// # Panics
    ///
    /// If one still has one after `limit`.
    pub async fn become_empty(&self, limit: Duration) {
        eventually("no node has a key", limit, || self.keys(), Vec::is_empty).await;
    }

    /// How often a node has run a command, from inside scripts too, since its counts were reset.
    pub fn calls(&self, node: usize, command: &str) -> u64 {
        let stats = self.ask(node, &["INFO", "commandstats"]);
        let start = format!("cmdstat_{command}:calls=");
        let count = stats
            .lines()
            .find_map(|line| line.strip_prefix(&start)?.split(',').next());
        count.map_or(0, |count| count.parse().expect("a count is a number"))
    }

    /// How many calls in which a node gave out leases it has run, since its counts were reset.
    ///
    /// Each of them raises a fencing counter; `SET` is no measure, for it also leaves tombstones.
    pub fn grants(&self, node: usize) -> u64 {
        self.calls(node, "zadd")
    }

    /// The calls in which all nodes together gave out leases.
    pub fn grants_in_all(&self) -> u64 {
        self.calls_in_all("zadd")
    }

    /// How often all nodes together have run a command.
    pub fn calls_in_all(&self, command: &str) -> u64 {
        (0..self.len()).map(|node| self.calls(node, command)).sum()
    }
}

impl Deref for Nodes {
    type Target = ServerSet;

    fn deref(&self) -> &ServerSet {
        &self.servers
    }
}

impl DerefMut for Nodes {
    fn deref_mut(&mut self) -> &mut ServerSet {
        &mut self.servers
    }
}

/// Real masters with a replica each, and the Sentinels that watch them; they end with this value.
#[derive(Debug)]
pub struct WatchedNodes {
    set: SentinelSet,
    _slot: Slot,
}

impl WatchedNodes {
    /// Starts `count` masters, as many replicas, and three Sentinels.
    ///
    /// # Panics
    ///
    /// If there is no server program, or it does not start: a test never passes without its servers.
    pub fn start(count: usize) -> Self {
        Self::start_with(count, 3, &ServerOptions::default())
    }

    /// Starts `count` masters with these options, as many replicas, and any number of Sentinels.
    ///
    /// # Panics
    ///
    /// As [`start`](Self::start).
    pub fn start_with(count: usize, sentinels: usize, options: &ServerOptions) -> Self {
        let slot = Slot::take(2 * count + sentinels);
        let set = ServerBinary::find()
            .map_err(|missing| missing.to_string())
            .and_then(|binary| {
                SentinelSet::start_with(&binary, count, sentinels, options)
                    .map_err(|error| error.to_string())
            });
        Self {
            set: set.unwrap_or_else(|why| panic!("this test needs servers: {why}")),
            _slot: slot,
        }
    }

    /// Waits until the Sentinels name another server as this master than the one at `port`; returns the port of that.
    ///
    /// # Panics
    ///
    /// If they still do after half a minute.
    pub async fn succeeded(&self, master: usize, port: u16) -> u16 {
        let named = || self.set.master_port(master).ok().flatten();
        let is_another = |named: &Option<u16>| named.is_some_and(|named| named != port);
        let named = eventually("a failover", FAILOVER, named, is_another).await;
        named.expect("it is another")
    }

    /// Has the Sentinels replace the server at `port` as this master; returns the port of the other one.
    ///
    /// On a busy machine a Sentinel gives up a failover that it was asked for, and begins none by itself: it is asked
    /// again.
    ///
    /// # Panics
    ///
    /// If they still name it after a minute and a half.
    pub async fn promote_another(&self, master: usize, port: u16) -> u16 {
        let named = || self.set.master_port(master).ok().flatten();
        // It refuses while one is under way, and as long as it knows no replica that it can promote.
        let ask = || drop(self.set.fail_over(master));
        promoted(port, Duration::from_secs(1), named, ask).await
    }

    /// The server at this port, which was a master or a replica at the start.
    ///
    /// # Panics
    ///
    /// If there is none.
    pub fn at_mut(&mut self, port: u16) -> &mut Server {
        let SentinelSet {
            masters, replicas, ..
        } = &mut self.set;
        let mut servers = masters.iter_mut().chain(replicas.iter_mut());
        let found = servers.find(|server| server.port() == port);
        found.expect("the port is one of the set's")
    }

    /// The locks on all servers, masters and replicas, as `port: key`.
    pub fn keys(&self) -> Vec<String> {
        locks_on(self.set.masters.iter().chain(&self.set.replicas))
    }
}

impl Deref for WatchedNodes {
    type Target = SentinelSet;

    fn deref(&self) -> &SentinelSet {
        &self.set
    }
}

impl DerefMut for WatchedNodes {
    fn deref_mut(&mut self) -> &mut SentinelSet {
        &mut self.set
    }
}

/// A real Cluster, which ends with this value.
#[derive(Debug)]
pub struct ClusterNodes {
    set: ClusterSet,
    _slot: Slot,
}

impl ClusterNodes {
    /// Starts `shards` masters and a replica for each.
    ///
    /// # Panics
    ///
    /// If there is no server program, or it does not start: a test never passes without its servers.
    pub fn start(shards: usize) -> Self {
        let slot = Slot::take(2 * shards);
        let set = ServerBinary::find()
            .map_err(|missing| missing.to_string())
            .and_then(|binary| {
                ClusterSet::start(&binary, shards).map_err(|error| error.to_string())
            });
        Self {
            set: set.unwrap_or_else(|why| panic!("this test needs servers: {why}")),
            _slot: slot,
        }
    }

    /// Waits until another server has the slot of this tag than the one at `port`, as the others say; returns the port of
    /// that.
    ///
    /// # Panics
    ///
    /// If it still has the slot after half a minute.
    pub async fn succeeded(&self, tag: &str, port: u16) -> u16 {
        let owner = || self.owner_as_others_say(tag, port);
        let is_another = |owner: &Option<u16>| owner.is_some_and(|owner| owner != port);
        let owner = eventually("a failover", FAILOVER, owner, is_another).await;
        owner.expect("it is another")
    }

    /// Has the replica of the server at `port`, which has the slot of this tag, take its place; returns the port of that.
    ///
    /// On a busy machine a replica gives up, and does not try it by itself: it is asked again.
    ///
    /// # Panics
    ///
    /// If the server still has the slot after a minute and a half.
    pub async fn promote_replica(&self, tag: &str, port: u16) -> u16 {
        let owner = || self.owner_as_others_say(tag, port);
        // It tries for five seconds, and begins again when it is asked meanwhile.
        let ask = || drop(self.set.fail_over(port));
        promoted(port, Duration::from_secs(6), owner, ask).await
    }

    fn owner_as_others_say(&self, tag: &str, port: u16) -> Option<u16> {
        let mut others = self.set.servers().filter(|server| server.port() != port);
        others.find_map(|server| self.set.owner_as_of(server.port(), tag).ok())
    }

    /// The port of the server that has the slot of this tag.
    pub fn owner(&self, tag: &str) -> u16 {
        let owner = self.set.owner(tag);
        owner.expect("a server of the Cluster answers")
    }

    /// The server at this port.
    ///
    /// # Panics
    ///
    /// If there is none.
    pub fn at_mut(&mut self, port: u16) -> &mut Server {
        let ClusterSet {
            masters, replicas, ..
        } = &mut self.set;
        let mut servers = masters.iter_mut().chain(replicas.iter_mut());
        let found = servers.find(|server| server.port() == port);
        found.expect("the port is one of the Cluster's")
    }

    /// A master that has none of these slots.
    ///
    /// # Panics
    ///
    /// If there is none.
    pub fn another_master(&self, tags: &[String]) -> u16 {
        let owners: Vec<u16> = tags.iter().map(|tag| self.owner(tag)).collect();
        let is_master = |server: &&Server| {
            let role = server.command(&["ROLE"]);
            let is_master = |role: &redlock_sandbox::Value| {
                role.as_array().and_then(|role| role[0].as_text()) == Some("master")
            };
            role.is_ok_and(|role| is_master(&role))
        };
        let mut servers = self.set.servers();
        let other = servers.find(|server| !owners.contains(&server.port()) && is_master(server));
        other.expect("it has more masters").port()
    }

    /// The locks on all servers, masters and replicas, as `port: key`.
    pub fn keys(&self) -> Vec<String> {
        locks_on(self.set.servers())
    }
}

impl Deref for ClusterNodes {
    type Target = ClusterSet;

    fn deref(&self) -> &ClusterSet {
        &self.set
    }
}

impl DerefMut for ClusterNodes {
    fn deref_mut(&mut self) -> &mut ClusterSet {
        &mut self.set
    }
}

/// The locks on these servers, as `port: key`.
fn locks_on<'a>(servers: impl Iterator<Item = &'a Server>) -> Vec<String> {
    let running = servers.filter(|server| server.is_running());
    let keys = running.flat_map(|server| {
        let reply = server.command(&["KEYS", "*:lock:*"]);
        let reply = reply.unwrap_or_else(|error| panic!("KEYS: {error}"));
        let keys = reply.as_array().expect("KEYS answers with a list").iter();
        let line = |key: &redlock_sandbox::Value| {
            format!("{}: {}", server.port(), key.as_text().unwrap_or("(binary)"))
        };
        keys.map(line).collect::<Vec<_>>()
    });
    keys.collect()
}

/// The right to run some servers: tests run side by side, on machines with two cores or sixty.
#[derive(Debug)]
struct Slot {
    servers: usize,
}

impl Slot {
    fn take(servers: usize) -> Self {
        assert!(servers <= MOST, "one test may run {MOST} servers");
        let free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
        let free = FREED.wait_while(free, |free| *free < servers);
        *free.unwrap_or_else(PoisonError::into_inner) -= servers;
        Self { servers }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        *FREE.lock().unwrap_or_else(PoisonError::into_inner) += self.servers;
        FREED.notify_all();
    }
}

/// Asks for a failover, and again after `pause`, until another server than the one at `port` is named; returns its port.
async fn promoted(
    port: u16,
    pause: Duration,
    named: impl Fn() -> Option<u16>,
    ask: impl Fn(),
) -> u16 {
    let mut ask_at = now();
    let named = || {
        let named = named();
        if named == Some(port) && now() >= ask_at {
            ask();
            ask_at = now() + pause;
        }
        named
    };
    let is_another = |named: &Option<u16>| named.is_some_and(|named| named != port);
    let named = eventually("a planned failover", 3 * FAILOVER, named, is_another).await;
    named.expect("it is another")
}

const MOST: usize = 15;
const FAILOVER: Duration = Duration::from_secs(30);

static FREE: Mutex<usize> = Mutex::new(MOST);
static FREED: Condvar = Condvar::new();
