//! The pulse that wakes jobs up: every second, the ticks of all of them are looked for.
//!
//! One [`Waker`] does so.
//! It is a timer of our own; or one job on the application's tokio-cron-scheduler, which is due every second, and knows
//! nothing of patterns and zones: which ticks are due is for each job's own schedule to say.
//! So ticks are found some time before they are due, and each waits for its instant, by the nodes' clocks, on a timer of
//! its own.

#[cfg(feature = "tokio-cron-scheduler")]
mod alarm;
mod jobs;
mod watch;

#[cfg(feature = "tokio-cron-scheduler")]
pub(crate) use self::alarm::{JobAlarm, WatchedAlarm};
pub(crate) use self::{
    jobs::Jobs,
    watch::{Waker, watch},
};
