//! The schedule of a job: our own reading of the pattern, in a real time zone.
//!
//! tokio-cron-scheduler takes the zone's offset once, when the job is created, so that after a
//! change of the clocks it is an hour off, and replicas that were started before and after the change
//! disagree.
//! It also reads patterns with croner, which drops parts of a pattern that it does not understand, and decides by the
//! spelling of a time how often it is due on the day of a change.

mod calendar;
mod describe;
mod pattern;
mod plan;
mod preview;
#[cfg(test)]
mod tests;
mod walk;

pub(crate) use self::plan::ScheduleSource;
pub use self::{calendar::Schedule, plan::Zone};
