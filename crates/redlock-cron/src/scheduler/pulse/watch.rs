//! The loop that looks at the clocks, wakes jobs up, and looks for what the nodes remember.
//!
//! Ticks are due by the nodes' clocks, so they are also looked for when the time of those is another than expected.
//! A replica whose own clock is wrong uses the nodes' time, and logs a warning.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use tokio::{
    select,
    time::{Instant, MissedTickBehavior, interval_at, timeout},
};

#[cfg(feature = "tokio-cron-scheduler")]
use super::alarm::WatchedAlarm;
use super::jobs::Jobs;
use crate::{clock::LONGEST_AHEAD, record::guarded, replica::Replica};

/// The mechanism that wakes the jobs of a scheduler up every second.
pub(crate) enum Waker {
    /// The loop itself.
    Timer,
    /// A job on the application's tokio-cron-scheduler.
    #[cfg(feature = "tokio-cron-scheduler")]
    Alarm(WatchedAlarm),
}

/// Looks at the clocks and wakes jobs up every second, until nothing may be started any more.
pub(crate) async fn watch(mut waker: Waker, replica: Arc<Replica>, jobs: Weak<Jobs>) {
    let mut was_clock_wrong = false;
    let mut seconds = interval_at(Instant::now() + EVERY, EVERY);
    seconds.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        select! {
            () = replica.tasks.draining().cancelled() => return,
            _ = seconds.tick() => {}
        }
        // A client whose driver is starved answers late; ticks are looked for all the same.
        let _ = timeout(EVERY / 2, replica.look_at_clocks()).await;
        let Some(jobs) = jobs.upgrade() else { return };
        // The application's subscriber may panic, and nothing else wakes the jobs up.
        was_clock_wrong =
            guarded(|| warn_of_clock(&replica, was_clock_wrong)).unwrap_or(was_clock_wrong);
        let has_time_jumped = replica.take_time_jump();
        if has_time_jumped {
            jobs.clock_was_set();
        }
        jobs.look_at_nodes();
        match &mut waker {
            Waker::Timer => jobs.wake(),
            #[cfg(feature = "tokio-cron-scheduler")]
            Waker::Alarm(alarm) => alarm.look(&jobs, has_time_jumped).await,
        }
    }
}

/// Warns once if this replica's clock is far off; returns whether it is.
fn warn_of_clock(replica: &Replica, was_wrong: bool) -> bool {
    let Some(ahead) = replica.ahead() else {
        return was_wrong;
    };
    let is_wrong = ahead.abs().to_std().is_ok_and(|by| by > LONGEST_AHEAD);
    if is_wrong && !was_wrong {
        let offset_s = ahead.num_seconds();
        tracing::warn!(
            target: crate::TARGET, offset_s,
            "the wall clock of this machine is wrong: set it right; until then, jobs here are started by the nodes' clocks"
        );
    }
    is_wrong
}

/// Ticks are found a second and a half before they are due, so each look may be late by half a second.
const EVERY: Duration = Duration::from_secs(1);
