//! The schedule of a job: our own reading of the pattern, in a real time zone.
//!
//! tokio-cron-scheduler takes the zone's offset once, when the job is created, so that after a
//! change of the clocks it is an hour off, and replicas that were started before and after the change
//! disagree.
//! It also reads patterns with an older croner, which answers with an instant in the past in the hour
//! that occurs twice.

mod calendar;
#[cfg(test)]
mod clock_changes;
mod missing_days;
mod plan;
mod preview;
mod words;
mod zone;

pub(crate) use self::plan::Plan;
pub use self::{calendar::Schedule, zone::Zone};
