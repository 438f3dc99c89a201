//! A Cluster: masters that share the slots, and a replica of each.

use std::{
    thread,
    time::{Duration, Instant},
};

use crate::{CommandError, Server, ServerBinary, ServerOptions, ServerSet, StartError, Value};

/// A Cluster of masters with a replica each, which takes its master's place a second or two after that stopped answering.
///
/// ```
/// # use redlock_sandbox::{ClusterSet, ServerBinary};
/// let cluster = ClusterSet::start(&ServerBinary::find()?, 3)?;
/// println!("REDLOCK_NODES={}", cluster.url());
/// let owner = cluster.owner("{redlock}")?;
/// cluster.fail_over(owner)?; // as an operator does it: the old master becomes a replica
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct ClusterSet {
    /// The servers that were masters at the start, with as many slots each.
    pub masters: ServerSet,
    /// The servers that were replicas at the start, in the order of their masters.
    pub replicas: ServerSet,
    // For further servers.
    binary: ServerBinary,
}

impl ClusterSet {
    /// Starts `shards` masters and a replica for each, and waits until all of them know the Cluster.
    ///
    /// # Errors
    ///
    /// The first [`StartError`]; the servers that have started are stopped.
    pub fn start(binary: &ServerBinary, shards: usize) -> Result<Self, StartError> {
        let options = options();
        let cluster = Self {
            masters: ServerSet::start(binary, shards, &options)?,
            replicas: ServerSet::start(binary, shards, &options)?,
            binary: binary.clone(),
        };
        let refused = |error: CommandError| StartError::refused(&error);
        cluster.introduce().map_err(refused)?;
        cluster.wait_until(|server| cluster.knows_all(server))?;
        cluster.appoint().map_err(refused)?;
        cluster.wait_until(|server| cluster.is_settled(server))?;
        Ok(cluster)
    }

    /// Returns the URL that names its nodes, in the form of `redlock-core`.
    pub fn url(&self) -> String {
        let nodes = self.servers().map(|server| server.address().to_string());
        format!("redis+cluster://{}", nodes.collect::<Vec<_>>().join(","))
    }

    /// Returns the servers, masters first.
    pub fn servers(&self) -> impl Iterator<Item = &Server> {
        self.masters.iter().chain(&self.replicas)
    }

    /// Returns the port of the server that has the slot of this key, as the first server says that answers.
    ///
    /// # Errors
    ///
    /// [`CommandError`] of the first server, if none answers.
    pub fn owner(&self, key: &str) -> Result<u16, CommandError> {
        let mut said = self.servers().map(|server| owner_by(server, key));
        let first = said.next().expect("a Cluster has servers");
        first.or_else(|error| said.find_map(Result::ok).ok_or(error))
    }

    /// Returns the port of the server that has the slot of this key, as the server at `port` says.
    ///
    /// # Errors
    ///
    /// [`CommandError`] if that does not answer.
    ///
    /// # Panics
    ///
    /// If no server of the Cluster has this port.
    pub fn owner_as_of(&self, port: u16, key: &str) -> Result<u16, CommandError> {
        owner_by(self.at(port), key)
    }

    /// Has the replica of the master at this port take its place, and returns at once: the old master becomes a replica,
    /// and keeps its connections.
    ///
    /// # Errors
    ///
    /// [`CommandError`] if a server does not answer or refuses.
    ///
    /// # Panics
    ///
    /// If no server of the Cluster has this port.
    pub fn fail_over(&self, port: u16) -> Result<(), CommandError> {
        self.other_of(port).command(&["CLUSTER", "FAILOVER"])?;
        Ok(())
    }

    /// Moves the slot of this key with all its keys to the master at this port, as resharding does, and returns when it is
    /// done.
    ///
    /// # Errors
    ///
    /// [`CommandError`] if a server does not answer or refuses.
    ///
    /// # Panics
    ///
    /// If no server of the Cluster has this port.
    pub fn move_slot(&self, key: &str, port: u16) -> Result<(), CommandError> {
        let (from, to) = (self.at(self.owner(key)?), self.at(port));
        let (from_id, to_id) = (id(from)?, id(to)?);
        let slot = slot(from, key)?.to_string();
        to.command(&["CLUSTER", "SETSLOT", &slot, "IMPORTING", &from_id])?;
        from.command(&["CLUSTER", "SETSLOT", &slot, "MIGRATING", &to_id])?;
        loop {
            let keys = from.command(&["CLUSTER", "GETKEYSINSLOT", &slot, "64"])?;
            let keys = keys.as_array().unwrap_or_default().iter();
            let keys: Vec<&str> = keys.filter_map(Value::as_text).collect();
            if keys.is_empty() {
                break;
            }
            let port = port.to_string();
            let mut migrate = vec!["MIGRATE", HOST, &port, "", "0", "5000", "KEYS"];
            migrate.extend(keys);
            from.command(&migrate)?;
        }
        // The new owner first: it raises its epoch, and so the others believe it.
        for server in [to, from] {
            server.command(&["CLUSTER", "SETSLOT", &slot, "NODE", &to_id])?;
        }
        Ok(())
    }

    /// Ends the replica of a shard, and starts another in its place, which copies the shard's master; no node forgets the
    /// one that has ended.
    ///
    /// # Errors
    ///
    /// [`StartError`] if it does not start, or its shard has no master that it can copy within half a minute.
    pub fn replace_replica(&mut self, shard: usize) -> Result<(), StartError> {
        let replica = Server::start(&self.binary, options())?;
        let refused = |error: CommandError| StartError::refused(&error);
        let master = &self.masters[shard];
        meet(master, &replica).map_err(refused)?;
        let master_id = id(master).map_err(refused)?;
        let knows =
            || text(&replica, &["CLUSTER", "NODES"]).is_ok_and(|it| it.contains(&master_id));
        wait_until(knows)?;
        replica
            .command(&["CLUSTER", "REPLICATE", &master_id])
            .map_err(refused)?;
        wait_until(|| is_copy(&replica))?;
        self.replicas[shard] = replica;
        Ok(())
    }

    /// Returns the server at this port.
    ///
    /// # Panics
    ///
    /// If no server of the Cluster has this port.
    pub fn at(&self, port: u16) -> &Server {
        let mut servers = self.servers();
        let found = servers.find(|server| server.port() == port);
        found.expect("the port is one of the Cluster's")
    }

    /// Returns the master of the replica at this port, or its replica.
    fn other_of(&self, port: u16) -> &Server {
        let mut pairs = self.masters.iter().zip(&self.replicas);
        let other = pairs.find_map(|(master, replica)| match port {
            port if port == master.port() => Some(replica),
            port if port == replica.port() => Some(master),
            _ => None,
        });
        other.expect("the port is one of the Cluster's")
    }

    /// Gives each master its slots, and lets all servers meet.
    fn introduce(&self) -> Result<(), CommandError> {
        let shards = self.masters.len();
        for (shard, master) in self.masters.iter().enumerate() {
            let bounds = [shard, shard + 1].map(|shard| shard * SLOTS / shards);
            let (first, last) = (bounds[0].to_string(), (bounds[1] - 1).to_string());
            master.command(&["CLUSTER", "ADDSLOTSRANGE", &first, &last])?;
            // Masters that begin with one epoch have to settle which of them changes it.
            let epoch = (shard + 1).to_string();
            master.command(&["CLUSTER", "SET-CONFIG-EPOCH", &epoch])?;
        }
        let first = &self.masters[0];
        self.servers()
            .skip(1)
            .try_for_each(|server| meet(first, server))
    }

    /// Makes the replicas copy their masters.
    fn appoint(&self) -> Result<(), CommandError> {
        for (master, replica) in self.masters.iter().zip(&self.replicas) {
            replica.command(&["CLUSTER", "REPLICATE", &id(master)?])?;
        }
        Ok(())
    }

    fn knows_all(&self, server: &Server) -> bool {
        let nodes = text(server, &["CLUSTER", "NODES"]).unwrap_or_default();
        let is_met = |line: &&str| !line.contains("handshake") && line.contains(" connected");
        nodes.lines().filter(is_met).count() == 2 * self.masters.len()
    }

    fn is_settled(&self, server: &Server) -> bool {
        let info = text(server, &["CLUSTER", "INFO"]).unwrap_or_default();
        let nodes = text(server, &["CLUSTER", "NODES"]).unwrap_or_default();
        let copies = text(server, &["INFO", "replication"]).unwrap_or_default();
        let replicas = nodes.lines().filter(|line| line.contains("slave"));
        info.contains("cluster_state:ok")
            && replicas.count() == self.replicas.len()
            && !copies.contains("master_link_status:down")
    }

    fn wait_until(&self, is_ready: impl Fn(&Server) -> bool) -> Result<(), StartError> {
        wait_until(|| self.servers().all(&is_ready))
    }
}

/// Waits for something that nodes of a Cluster do by themselves.
#[expect(
    clippy::disallowed_methods,
    reason = "a patience limit, not the deadline of a lease"
)]
fn wait_until(is_ready: impl Fn() -> bool) -> Result<(), StartError> {
    let started = Instant::now();
    while !is_ready() {
        if started.elapsed() >= LIMIT {
            return Err(StartError::timed_out(
                LIMIT,
                "its nodes do not find each other",
            ));
        }
        thread::sleep(POLL);
    }
    Ok(())
}

/// Returns the options of each server.
fn options() -> ServerOptions {
    // A master that loses its last replica keeps its replication id, and with it its vote.
    let options = ServerOptions::default().cluster_node();
    options.argument("--repl-backlog-ttl").argument("0")
}

/// Has a node of a Cluster introduce another server.
fn meet(first: &Server, server: &Server) -> Result<(), CommandError> {
    let bus = bus_port(server)?;
    let port = server.port().to_string();
    first.command(&["CLUSTER", "MEET", HOST, &port, &bus])?;
    Ok(())
}

/// Returns whether a replica has the data of its master.
fn is_copy(replica: &Server) -> bool {
    let info = text(replica, &["INFO", "replication"]).unwrap_or_default();
    info.contains("master_link_status:up")
}

fn text(server: &Server, question: &[&str]) -> Result<String, CommandError> {
    let answer = server.command_within(PATIENCE, question)?;
    Ok(answer.as_text().unwrap_or_default().to_owned())
}

fn id(server: &Server) -> Result<String, CommandError> {
    text(server, &["CLUSTER", "MYID"])
}

fn slot(server: &Server, key: &str) -> Result<i64, CommandError> {
    let slot = server.command_within(PATIENCE, &["CLUSTER", "KEYSLOT", key])?;
    Ok(slot.as_integer().unwrap_or_default())
}

fn bus_port(server: &Server) -> Result<String, CommandError> {
    let nodes = text(server, &["CLUSTER", "NODES"])?;
    let address = nodes.split(' ').nth(1).unwrap_or_default();
    let bus = address.split(['@', ',']).nth(1);
    Ok(bus.unwrap_or_default().to_owned())
}

/// Returns the port of the server that has the slot of this key, as `server` says; 0 if none has it.
fn owner_by(server: &Server, key: &str) -> Result<u16, CommandError> {
    let slot = slot(server, key)?;
    let ranges = server.command_within(PATIENCE, &["CLUSTER", "SLOTS"])?;
    let owner = ranges
        .as_array()
        .unwrap_or_default()
        .iter()
        .find_map(|range| {
            let range = range.as_array()?;
            let (first, last) = (range[0].as_integer()?, range[1].as_integer()?);
            let port = range.get(2)?.as_array()?.get(1)?.as_integer()?;
            (first..=last).contains(&slot).then_some(port)
        });
    Ok(owner.and_then(|port| port.try_into().ok()).unwrap_or(0))
}

const SLOTS: usize = 16_384;
const HOST: &str = "127.0.0.1";
/// One that is frozen does not answer.
const PATIENCE: Duration = Duration::from_millis(500);
const LIMIT: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(20);
