//! Nodes whose restarts are declared to be delayed: when they are called by functions, and that what the library
//! remembers never lets a node vote that may have forgotten.
#![cfg(target_os = "linux")]

mod choice;
mod delayed_restarts;
mod fixtures;
mod refusals;
mod replication;
