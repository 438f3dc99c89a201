//! Nodes that are called by functions: when they are, and that what the library remembers never lets a node vote that
//! may have forgotten.
#![cfg(target_os = "linux")]

mod choice;
mod delayed_restarts;
mod disputes;
mod fixtures;
mod leases;
mod refusals;
mod replication;
mod witness;
