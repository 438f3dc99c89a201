//! Moments and lengths of time: the client's own clock, the nodes' clocks, and the lengths of a lease.

mod instant;
mod node_time;
mod timing;

pub use self::{instant::Instant, node_time::NodeTime, timing::Timing};
