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
    pub(crate) arguments: Vec<OsString>,
}

impl ServerOptions {
    /// Sets the port to listen on, instead of a free one.
    ///
    /// A start fails with [`PortTaken`](crate::StartErrorKind::PortTaken) if another socket has it.
    pub fn port(mut self, port: u16) -> Self {
        self.port = Some(port);
        self
    }

    /// Sets the password of the default user; none by default.
    ///
    /// It appears in the process list, as every argument of a program does.
    pub fn password(mut self, password: impl Into<String>) -> Self {
        self.password = Some(password.into());
        self
    }

    /// Sets what a server still knows after a kill; nothing by default.
    pub fn persistence(mut self, persistence: Persistence) -> Self {
        self.persistence = persistence;
        self
    }

    /// Sets a wall clock of the server's own, which [`Server::clock`](crate::Server::clock) gives out; by
    /// default it has the machine's.
    ///
    /// Only Linux can do it, and it takes the C compiler that Rust's linker needs as well: `cc`, or
    /// what the environment variable `CC` says.
    /// Without one the start fails with [`Compiler`](crate::StartErrorKind::Compiler), and where
    /// there can be no such clock for another reason, with [`Clock`](crate::StartErrorKind::Clock).
    pub fn own_clock(mut self) -> Self {
        self.own_clock = true;
        self
    }

    /// Adds an argument to the command line, after all others, so that it wins over them.
    pub fn argument(mut self, argument: impl Into<OsString>) -> Self {
        self.arguments.push(argument.into());
        self
    }
}

/// The memory of a server that was killed and started again.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum Persistence {
    /// Nothing: keys live in memory only, so that a restart is the loss of all of them.
    #[default]
    Memory,
    /// Every write it acknowledged: an append-only file, synced before each reply.
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
