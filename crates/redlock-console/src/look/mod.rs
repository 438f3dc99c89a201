//! Looks at the nodes beside the client: for the console, and for the verbs of the command that ask the same.
//!
//! The command `redlock` uses all of it, so it is public; it is no part of what this crate promises.

pub mod clock;
pub mod settings;

pub mod nodes;
pub mod probe;

pub mod keys;
pub mod lookup;
pub mod status;

pub mod jobs;

pub mod doctor;

mod history;
pub mod sample;
pub(crate) mod slow;
