//! The options of a server's start.

use std::ffi::OsString;

/// The options of a server's start: without password, without persistence and on a free port by default.
#[derive(Clone, Debug, Default)]
#[must_use = "options do nothing until a server is started with them"]
pub struct ServerOptions {
    pub(crate) port: Option<u16>,
    pub(crate) password: Option<String>,
    pub(crate) persistence: Persistence,
    pub(crate) own_clock: bool,
    pub(crate) role: Role,
    pub(crate) arguments: Vec<OsString>,
}

impl ServerOptions {
    /// Sets the port to listen on, in place of a free one.
    ///
    /// A start fails with [`PortTaken`](crate::StartErrorKind::PortTaken) if another socket has it.
    pub fn port(mut self, port: u16) -> Self {
        self.port = Some(port);
        self
    }

    /// Sets the password of the default user; none by default.
    ///
    /// The process list shows it, as every argument of a program.
    pub fn password(mut self, password: impl Into<String>) -> Self {
        self.password = Some(password.into());
        self
    }

    /// Sets which data a server keeps after a kill; none by default.
    pub fn persistence(mut self, persistence: Persistence) -> Self {
        self.persistence = persistence;
        self
    }

    /// Gives the server a wall clock of its own, which [`Server::clock`](crate::Server::clock) returns; by default it
    /// has the machine's clock.
    ///
    /// This works on Linux only, and needs the C compiler that Rust also uses for linking: `cc`, or the program that
    /// the environment variable `CC` names.
    /// Without a compiler, the start fails with [`Compiler`](crate::StartErrorKind::Compiler).
    /// If such a clock is not possible for another reason, the start fails with
    /// [`Clock`](crate::StartErrorKind::Clock).
    pub fn own_clock(mut self) -> Self {
        self.own_clock = true;
        self
    }

    /// Makes the server a Sentinel, which watches nothing yet: `SENTINEL MONITOR` tells it what to watch.
    ///
    /// It keeps what it watches in a file in its folder, also over a restart.
    pub fn sentinel(mut self) -> Self {
        self.role = Role::Sentinel;
        self
    }

    /// Makes the server a node of a Cluster, alone and without slots yet, whose failovers begin after a second.
    ///
    /// It keeps what it knows of the Cluster in a file in its folder, also over a restart.
    /// This needs Redis 7 or Valkey.
    pub fn cluster_node(mut self) -> Self {
        self.role = Role::ClusterNode;
        self
    }

    /// Adds an argument to the command line, after all others, so that it takes precedence over them.
    pub fn argument(mut self, argument: impl Into<OsString>) -> Self {
        self.arguments.push(argument.into());
        self
    }
}

/// The use of a server.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum Role {
    #[default]
    Alone,
    Sentinel,
    ClusterNode,
}

/// The memory of a server that was killed and started again.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum Persistence {
    /// None: keys are in memory only, so a restart loses all of them.
    #[default]
    Memory,
    /// Every acknowledged write: an append-only file, synced before each reply.
    AppendOnly,
}

impl Persistence {
    pub(crate) fn arguments(self) -> &'static [&'static str] {
        match self {
            Self::Memory => &["--appendonly", "no"],
            Self::AppendOnly => &["--appendonly", "yes", "--appendfsync", "always"],
        }
    }
}
