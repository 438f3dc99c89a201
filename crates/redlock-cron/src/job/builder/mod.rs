//! The policies of a job, one method for each.

mod runs;
mod ticks;
