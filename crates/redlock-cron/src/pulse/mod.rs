//! The pulse that wakes jobs up: one job on tokio-cron-scheduler, due every second, looks for the ticks of all of them.
//!
//! tokio-cron-scheduler is used as an alarm clock, and knows nothing of patterns and zones: which ticks are due is for
//! each job's own schedule to say.
//! It looks at its jobs every half second, so that the alarm comes within half a second after each second.
//! So ticks are found some time before they are due, and each waits for its instant, by the nodes' clocks, on a timer of
//! its own.
//!
//! The alarm may fail: its activation may be lost in a channel that the application's own jobs fill, and the instant at
//! which it is due next is years off when a wall clock was.
//! A lost activation is made up for by the next; if all are lost, the watch wakes jobs up for as long as the scheduler
//! shows that it is at work.
//! What else keeps it silent is for the watch to notice.

mod alarm;
mod jobs;

pub(crate) use self::{
    alarm::{JobAlarm, watch},
    jobs::Jobs,
};
