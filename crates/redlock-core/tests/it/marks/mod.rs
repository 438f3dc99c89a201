//! Events on a master that its mark tells of, so that it does not vote: losses of data, and replication.
#![cfg(target_os = "linux")]

mod fixtures;
mod losses;
mod replication;
