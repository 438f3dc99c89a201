//! A scheduler of jobs, and its builder.

mod builder;
#[cfg(feature = "test-util")]
mod by_clock;
mod by_hand;
mod ending;
mod singleton_scheduler;

pub use self::{builder::SingletonSchedulerBuilder, singleton_scheduler::SingletonScheduler};
