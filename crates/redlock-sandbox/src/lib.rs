//! Local `redis-server` and `valkey-server` processes for tests and try-outs.
//!
//! Tests of a lock over five masters need five masters.
//! This crate starts them on the loopback interface, can make them fail on purpose, and leaves none behind.
//! Its calls block and need no runtime, so that a test, an example and a build task use it alike.
//!
//! ```
//! use redlock_sandbox::{ServerBinary, ServerOptions, ServerSet};
//!
//! let binary = ServerBinary::find()?;
//! let mut servers = ServerSet::start(&binary, 3, &ServerOptions::default())?;
//! println!("REDLOCK_NODES={}", servers.urls().join(","));
//!
//! servers[0].kill()?;    // a crash: no shutdown, no last write
//! servers[0].restart()?; // the same port, and every key is forgotten
//! servers[1].freeze()?;  // alive to the network, but silent
//! # servers[1].thaw()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`ServerOptions::own_clock`] gives a server a wall clock that a test can step and stop.
//! [`ProcessClock`] does the same for any other program.
//!
//! # What stops a server
//!
//! Dropping its [`Server`] stops a server.
//! The end of the process that started it stops it too, however that process ends: each server has a watchdog, which
//! [`Process`] describes.
//! The shell that made a server's temporary folder removes it at the same time, even if the server was down at that
//! moment.
//!
//! Only Unix systems are supported.

mod binary;
mod clock;
mod cluster;
mod command;
mod error;
mod folder;
mod launch;
mod options;
mod port;
mod process;
mod process_clock;
mod sentinels;
mod server;
mod set;
mod watchdog;

pub use crate::{
    binary::{NotFound, SERVER_VARIABLE, ServerBinary},
    clock::ServerClock,
    cluster::ClusterSet,
    command::{CommandError, CommandErrorKind, Value, command},
    error::{StartError, StartErrorKind},
    options::{Persistence, ServerOptions},
    process::Process,
    process_clock::ProcessClock,
    sentinels::SentinelSet,
    server::Server,
    set::ServerSet,
};

// What the README shows compiles.
#[cfg(doctest)]
mod readme {
    #![doc = include_str!("../README.md")]
}
