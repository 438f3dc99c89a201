//! A scheduler of jobs, and its builder.

// In the order in which the documentation has the methods.
mod builder;
mod singleton_scheduler;

#[cfg(feature = "test-util")]
mod by_clock;
mod by_hand;
mod ending;

pub use self::{builder::SingletonSchedulerBuilder, singleton_scheduler::SingletonScheduler};
