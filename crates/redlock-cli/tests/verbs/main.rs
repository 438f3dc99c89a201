//! The compiled command, on real servers in the states that it is to tell apart.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod bench;
mod bless;
mod configuration;
mod console;
mod doctor;
mod evening;
mod guide;
mod jobs;
mod keys;
mod kit;
mod log;
mod named;
mod neighbours;
mod operating;
mod ready;
mod roll;
mod run;
mod sandbox;
mod shell;
mod top;
mod watch;
