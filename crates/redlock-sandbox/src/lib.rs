//! Local `redis-server` and `valkey-server` processes for tests and try-outs.
//!
//! A lock over five masters can only be shown against five masters.
//! This crate starts them on the loopback interface, breaks them on purpose and leaves none behind.
//! It blocks and knows no runtime, so that a test, an example and a build task use it alike.
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
//! Dropping its [`Server`] does.
//! So does the end of the process that started it, however it ends: each server is paired with a
//! watchdog, described at [`Process`].
//! Each server's folder, among the temporary files, goes in the same way, also that of a server that
//! was down at that moment: the shell that made it removes it.
//!
//! Only Unix systems are supported.

mod binary;
mod clock;
mod command;
mod error;
mod folder;
mod launch;
mod options;
mod port;
mod process;
mod process_clock;
mod resp;
mod server;
mod set;
mod watchdog;

pub use crate::{
    binary::{NotFound, SERVER_VARIABLE, ServerBinary},
    clock::ServerClock,
    command::{CommandError, CommandErrorKind, command},
    error::{StartError, StartErrorKind},
    options::{Persistence, ServerOptions},
    process::Process,
    process_clock::ProcessClock,
    resp::Value,
    server::Server,
    set::ServerSet,
};

// What the README shows compiles.
#[cfg(doctest)]
mod readme {
    #![doc = include_str!("../README.md")]
}
