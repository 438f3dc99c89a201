//! A kit for tests of your own service: nodes and links that fail when the test tells them to, or as a seed determines.
//!
//! The client is the real one, in virtual time: no real time passes, and a test that waits for a lease of half a minute
//! ends in milliseconds.
//! The same [`Checker`](crate::Checker) that checks the protocol's own simulation can check what your service does with
//! its leases.
//!
//! * [`SimNodes`] are nodes that can crash, lose their data and stand still, and that have clocks of their own.
//! * [`Links`] are one client's connections to them, each with a [`Fault`] of its own, so that two replicas of a
//!   service can be on different sides of a partition.
//! * [`VirtualProcess`] is a replica that stands still, with its client and all its tasks, while time goes on for
//!   other replicas: a paused virtual machine, SIGSTOP, a long pause of a garbage collector.
//! * [`Chaos`] makes all of them fail at random, from a seed.
//! * [`Recorder`] records which client held which lease at which time, and finds violations.
//! * [`after_polls`] drops a future at the point where a cancelled caller would drop it.
//!
//! # Examples
//!
//! Two replicas, one of which is cut off from a majority while it holds the lock:
//!
//! ```
//! use redlock_core::LossReason;
//! use redlock_sim::kit::{Fault, SimNodes};
//!
//! # let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()?;
//! # runtime.block_on(async {
//! // In a test: #[tokio::test(start_paused = true)]
//! let nodes = SimNodes::new(3);
//! let (here, there) = (nodes.links(), nodes.links());
//! let first = here.client().dangerous_seed(1).build().await?;
//! let second = there.client().dangerous_seed(2).build().await?;
//!
//! let guard = first.acquire("order:42").await?;
//! here.cut_off(&[0, 1]);
//! assert_eq!(guard.lease().lost().await, LossReason::Expired);
//! let other = second.acquire("order:42").await?;
//! assert!(other.token() > guard.token());
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```
//!
//! # What it does not do
//!
//! If a process is frozen before its request has arrived, the request arrives only when the process is thawed.
//! [`run`](crate::run) also simulates requests that arrive meanwhile, with the protocol's state machine in place of the
//! async client.

mod cancel;
mod chaos;
mod link;
mod node;
mod recorder;

pub use redlock_core::VirtualProcess;

pub use self::{
    cancel::after_polls,
    chaos::Chaos,
    link::{Fault, Links},
    node::{SimNode, SimNodes},
    recorder::Recorder,
};
