//! A kit for tests of your own service: nodes and links that go wrong when you say so, or when a seed does.
//!
//! The client is the real one, in virtual time: nothing takes real time, and a test that waits for a lease
//! of half a minute is over in milliseconds.
//! Whatever your service does with its leases can be judged by the same [`Checker`](crate::Checker) that judges
//! the protocol's own simulation.
//!
//! * [`SimNodes`] are nodes that crash, forget, stand still and have clocks of their own.
//! * [`Links`] are one client's connections to them, each with a [`Fault`] of its own, so that two replicas of a
//!   service can be on different sides of a partition.
//! * [`VirtualProcess`] is a replica that stands still, with its client and all that it runs, while time goes on for
//!   the others: a paused virtual machine, SIGSTOP, a long pause of a garbage collector.
//! * [`Chaos`] lets all of them go wrong at random, from a seed.
//! * [`Recorder`] writes down who held what, and finds what must not be.
//! * [`after_polls`] drops a future where a caller that is cancelled would.
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
//! A request whose process is frozen before it has arrived arrives when the process is thawed.
//! [`run`](crate::run) simulates requests that arrive meanwhile, with the protocol's state machine instead of the
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
