//! A scheduler of jobs, and its builder.

mod builder;
mod singleton_scheduler;

pub use self::{builder::SingletonSchedulerBuilder, singleton_scheduler::SingletonScheduler};
