//! The callers of one process: they take turns, and a lease may pass from one to the next.
//!
//! One caller of a process contends for a key at a time.
//! [`LocalQueue`] decides whose turn it is, how many may wait, when a turn must leave a gap for other processes, and
//! whether a lease is left to the next caller; [`ParkedLease`] decides who may take it over and under which token;
//! [`OpenLease`] decides who may join a lease that is shared.
//! Their driver wakes callers, and releases what nobody takes over.

mod hand_over;
mod queue;
mod sharing;
mod streak;

pub use self::{
    hand_over::{ParkedLease, Terms},
    queue::{Left, LocalQueue, NoPlace, QueueLimits, Ticket},
    sharing::OpenLease,
    streak::Streak,
};
