//! The client over nodes in memory with faulty links, in paused time: what takes no time takes none,
//! and a time limit is met to the millisecond.

mod acquire;
mod cancel;
mod claim;
mod close;
mod election;
mod fixtures;
mod hand_over;
mod holder;
mod line;
mod odd;
mod odd_node;
mod outage;
mod overload;
mod parked;
mod quorum;
#[cfg(feature = "metrics")]
mod recorder;
mod renewal;
mod scopes;
#[cfg(feature = "metrics")]
mod searches;
mod sets;
mod shared;
mod slots;
mod subscriber;
mod within;
