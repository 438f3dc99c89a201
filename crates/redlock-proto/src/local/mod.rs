//! The callers of one process: they take turns, and a lease may pass from one to the next.
//!
//! One caller of a process contends for a key at a time.
//! [`LocalQueue`] decides which caller has the turn, how many may wait, and whether a lease is left to the next caller.
//! [`ParkedLease`] decides which caller may take that over, and under which token.
//! [`OpenLease`] decides which callers may join a lease that is shared.
//! Their driver wakes callers, and releases the leases that no caller takes over.

mod hand_over;
mod queue;

pub use self::{
    hand_over::{LeaseTerms, OpenLease, ParkedLease},
    queue::{Departure, LocalQueue, NoPlace, Ticket},
};
