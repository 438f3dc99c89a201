//! Masters with a replica each, and the Sentinels that watch them.

use std::{
    thread,
    time::{Duration, Instant},
};

use crate::{
    CommandError, Server, ServerBinary, ServerOptions, ServerSet, StartError, Value,
    server::percent_encoded,
};

/// Independent masters with a replica each, and three Sentinels that watch all of them.
///
/// The masters are called `lock-0`, `lock-1` and so on.
/// The Sentinels promote a replica half a second after its master stopped answering.
///
/// ```
/// # use redlock_sandbox::{SentinelSet, ServerBinary};
/// let set = SentinelSet::start(&ServerBinary::find()?, 1)?;
/// println!("REDLOCK_NODES={}", set.urls().join(","));
/// set.fail_over(0)?; // as an operator does it: the old master becomes a replica
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct SentinelSet {
    /// The servers that were masters at the start.
    pub masters: ServerSet,
    /// The servers that were replicas at the start, in the order of their masters.
    pub replicas: ServerSet,
    /// The Sentinels.
    pub sentinels: ServerSet,
    // For further Sentinels.
    binary: ServerBinary,
    password: Option<String>,
}

impl SentinelSet {
    /// Starts `count` masters, a replica for each, and three Sentinels, and waits until the Sentinels know all of them.
    ///
    /// # Errors
    ///
    /// The first [`StartError`]; the servers that have started are stopped.
    pub fn start(binary: &ServerBinary, count: usize) -> Result<Self, StartError> {
        Self::start_with(binary, count, SENTINELS, &ServerOptions::default())
    }

    /// Starts `count` masters with these options, a replica for each, and any number of Sentinels, and waits until the
    /// Sentinels know all of them.
    ///
    /// If the options have a password, the clients and this crate use it.
    /// The Sentinels and the replicas then log in as users of their own: [`cut_off`](Self::cut_off) locks these out.
    ///
    /// # Errors
    ///
    /// The first [`StartError`]; the servers that have started are stopped.
    pub fn start_with(
        binary: &ServerBinary,
        count: usize,
        sentinels: usize,
        options: &ServerOptions,
    ) -> Result<Self, StartError> {
        // A master that loses its last replica keeps its replication id, and with it its vote.
        let mut servers = options.clone().argument("--repl-backlog-ttl").argument("0");
        if let Some(password) = &options.password {
            servers = with_users(servers, password);
        }
        let set = Self {
            masters: ServerSet::start(binary, count, &servers)?,
            replicas: ServerSet::start(binary, count, &servers)?,
            sentinels: ServerSet::start(binary, sentinels, &ServerOptions::default().sentinel())?,
            binary: binary.clone(),
            password: options.password.clone(),
        };
        set.connect().map_err(|error| StartError::refused(&error))?;
        set.await_watched()?;
        Ok(set)
    }

    /// Returns a URL for each master that names the Sentinels, in the form of `redlock-core`.
    pub fn urls(&self) -> Vec<String> {
        let sentinels = self
            .sentinels
            .iter()
            .map(|sentinel| sentinel.address().to_string());
        let sentinels = sentinels.collect::<Vec<_>>().join(",");
        let user = self.password.as_deref();
        let user = user.map_or_else(String::new, |password| {
            format!(":{}@", percent_encoded(password))
        });
        let masters = 0..self.masters.len();
        masters
            .map(|master| format!("redis+sentinel://{user}{sentinels}/{}", name(master)))
            .collect()
    }

    /// Has a Sentinel promote the replica of a master, and returns at once: the old master becomes a replica, and keeps
    /// its connections.
    ///
    /// # Errors
    ///
    /// [`CommandError`] if the Sentinel does not answer or refuses, because a failover is under way.
    pub fn fail_over(&self, master: usize) -> Result<(), CommandError> {
        let first = &self.sentinels[0];
        first.command(&["SENTINEL", "FAILOVER", &name(master)])?;
        Ok(())
    }

    /// Returns the port of the server that the first Sentinel names as this master now.
    ///
    /// # Errors
    ///
    /// [`CommandError`] if the Sentinel does not answer.
    pub fn master_port(&self, master: usize) -> Result<Option<u16>, CommandError> {
        let question = ["SENTINEL", "GET-MASTER-ADDR-BY-NAME", &name(master)];
        let answer = self.sentinels[0].command(&question)?;
        let port = answer.as_array().and_then(|parts| parts.get(1)?.as_text());
        Ok(port.and_then(|port| port.parse().ok()))
    }

    /// Cuts the server at this port off from all Sentinels and replicas; clients still reach it.
    ///
    /// # Errors
    ///
    /// [`CommandError`] if the server does not answer.
    ///
    /// # Panics
    ///
    /// If no server of the set has this port, or the set was started without a password.
    pub fn cut_off(&self, port: u16) -> Result<(), CommandError> {
        assert!(self.password.is_some(), "all have one user");
        let server = self.at(port);
        for user in [WATCHER, COPIER] {
            server.command(&["ACL", "SETUSER", user, "off"])?;
            server.command(&["CLIENT", "KILL", "USER", user])?;
        }
        Ok(())
    }

    /// Ends what [`cut_off`](Self::cut_off) has done to the server at this port, and waits until the Sentinels have made
    /// it a replica of the present master: they look at it every ten seconds.
    ///
    /// # Errors
    ///
    /// [`CommandError`] if the server or a Sentinel does not answer.
    ///
    /// # Panics
    ///
    /// If no server of the set has this port.
    pub fn reconnect(&self, port: u16) -> Result<(), CommandError> {
        let server = self.at(port);
        for user in [WATCHER, COPIER] {
            server.command(&["ACL", "SETUSER", user, "on"])?;
        }
        // A Sentinel keeps the connection over which it could not log in, until it is told a password.
        // It drops its connection to the present master too, and on a busy machine would take that for down meanwhile.
        let of_all = |millis: &str| {
            let mut sentinels = self.sentinels.iter();
            sentinels.try_for_each(|sentinel| {
                (0..self.masters.len()).try_for_each(|master| down_after(sentinel, master, millis))
            })
        };
        of_all("120000")?;
        for sentinel in &self.sentinels {
            (0..self.masters.len()).try_for_each(|master| self.log_in(sentinel, master))?;
        }
        await_led(server)?;
        of_all(DOWN_AFTER)
    }

    /// Restarts a Sentinel without its file: it has another id, and watches the masters of the start.
    ///
    /// # Errors
    ///
    /// [`StartError`] if it does not start, or refuses to watch them.
    pub fn reinstall(&mut self, sentinel: usize) -> Result<(), StartError> {
        self.sentinels[sentinel].reinstall()?;
        let installed = self.watch(&self.sentinels[sentinel]);
        installed.map_err(|error| StartError::refused(&error))
    }

    /// Ends a Sentinel, and starts another in its place, which has an address of its own and watches the masters of the
    /// start.
    ///
    /// # Errors
    ///
    /// [`StartError`] if it does not start, or refuses to watch them.
    pub fn replace(&mut self, sentinel: usize) -> Result<(), StartError> {
        self.sentinels[sentinel] =
            Server::start(&self.binary, ServerOptions::default().sentinel())?;
        let installed = self.watch(&self.sentinels[sentinel]);
        installed.map_err(|error| StartError::refused(&error))
    }

    /// Returns the server at this port, which was a master or a replica at the start.
    ///
    /// # Panics
    ///
    /// If no such server has this port.
    pub fn at(&self, port: u16) -> &Server {
        let mut servers = self.masters.iter().chain(&self.replicas);
        let found = servers.find(|server| server.port() == port);
        found.expect("the port is one of the set's")
    }

    /// Makes the replicas copy their masters, and the Sentinels watch these.
    fn connect(&self) -> Result<(), CommandError> {
        for (master, replica) in self.masters.iter().zip(&self.replicas) {
            replica.command(&["REPLICAOF", HOST, &master.port().to_string()])?;
        }
        self.sentinels
            .iter()
            .try_for_each(|sentinel| self.watch(sentinel))
    }

    /// Makes a Sentinel watch the masters of the start.
    fn watch(&self, sentinel: &Server) -> Result<(), CommandError> {
        let quorum = (self.sentinels.len() / 2 + 1).to_string();
        for (index, master) in self.masters.iter().enumerate() {
            let (name, port) = (name(index), master.port().to_string());
            sentinel.command(&["SENTINEL", "MONITOR", &name, HOST, &port, &quorum])?;
            self.log_in(sentinel, index)?;
            sentinel.command(&[
                "SENTINEL",
                "SET",
                &name,
                "down-after-milliseconds",
                DOWN_AFTER,
                "failover-timeout",
                "3000",
            ])?;
        }
        Ok(())
    }

    /// Has a Sentinel connect to the servers of a master as its user there, if it has one.
    fn log_in(&self, sentinel: &Server, master: usize) -> Result<(), CommandError> {
        if let Some(password) = &self.password {
            let name = name(master);
            let user = ["auth-user", WATCHER, "auth-pass", password];
            sentinel.command(&[&["SENTINEL", "SET", &name][..], &user].concat())?;
        }
        Ok(())
    }

    /// Waits until each Sentinel knows the replicas, which are in sync, and the other Sentinels.
    #[expect(
        clippy::disallowed_methods,
        reason = "a patience limit, not the deadline of a lease"
    )]
    fn await_watched(&self) -> Result<(), StartError> {
        let started = Instant::now();
        while !self.is_watched() {
            if started.elapsed() >= LIMIT {
                return Err(StartError::timed_out(
                    LIMIT,
                    "the Sentinels find no replica",
                ));
            }
            thread::sleep(POLL);
        }
        Ok(())
    }

    fn is_watched(&self) -> bool {
        let others = (self.sentinels.len() - 1).to_string();
        let knows = |sentinel: &Server, master: usize| {
            let known = sentinel.command(&["SENTINEL", "MASTER", &name(master)]);
            let field = |field: &str| {
                let known = known.as_ref().ok()?.as_array()?;
                let place = known
                    .iter()
                    .position(|text| text.as_text() == Some(field))?;
                known.get(place + 1).and_then(Value::as_text)
            };
            field("num-slaves") == Some("1") && field("num-other-sentinels") == Some(&*others)
        };
        let is_in_sync = |replica: &Server| {
            let info = replica.command(&["INFO", "replication"]);
            let info = info.as_ref().ok().and_then(Value::as_text);
            info.is_some_and(|info| info.contains("master_link_status:up"))
        };
        self.replicas.iter().all(is_in_sync)
            && self
                .sentinels
                .iter()
                .all(|sentinel| (0..self.masters.len()).all(|master| knows(sentinel, master)))
    }
}

/// Gives the Sentinels and the replicas users of their own on a server.
fn with_users(mut options: ServerOptions, password: &str) -> ServerOptions {
    let secret = format!(">{password}");
    for user in [WATCHER, COPIER] {
        let rules = ["on", &secret, "allkeys", "allchannels", "+@all"];
        for argument in ["--user", user].iter().chain(&rules) {
            options = options.argument(*argument);
        }
    }
    for argument in ["--masteruser", COPIER, "--masterauth", password] {
        options = options.argument(argument);
    }
    options
}

fn name(master: usize) -> String {
    format!("lock-{master}")
}

const SENTINELS: usize = 3;
/// The user of the Sentinels.
const WATCHER: &str = "sentinel";
/// The user of the replicas.
const COPIER: &str = "replica";
const HOST: &str = "127.0.0.1";
const LIMIT: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(20);
/// How long Sentinels have to make a former master a replica.
const LED: Duration = Duration::from_secs(90);

/// How long a server does not answer a Sentinel before it is taken for down, in milliseconds.
const DOWN_AFTER: &str = "500";

fn down_after(sentinel: &Server, master: usize, millis: &str) -> Result<(), CommandError> {
    let set = [
        "SENTINEL",
        "SET",
        &name(master),
        "down-after-milliseconds",
        millis,
    ];
    sentinel.command(&set).map(drop)
}

/// Waits until a server is the replica of a master that is not cut off, for [`LED`] at most.
#[expect(
    clippy::disallowed_methods,
    reason = "a patience limit, not the deadline of a lease"
)]
fn await_led(server: &Server) -> Result<(), CommandError> {
    let started = Instant::now();
    while started.elapsed() < LED {
        let info = server.command(&["INFO", "replication"])?;
        let follows =
            |info: &str| info.contains("role:slave") && info.contains("master_link_status:up");
        if info.as_text().is_some_and(follows) {
            break;
        }
        thread::sleep(POLL);
    }
    Ok(())
}
