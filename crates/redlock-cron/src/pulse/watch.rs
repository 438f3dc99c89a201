//! The watch over the alarm: it acts if the alarm does not come, or came by a wrong clock.
//!
//! tokio-cron-scheduler stores the instant at which the alarm is due next, and compares the machine's clock with it.
//! So a clock that was years ahead, and is set right, would silence all jobs for years.
//! A step forwards needs no care: what is due then is found at the next look, half a second later at most.
//!
//! The alarm's activation goes through a channel that drops the oldest when it is full, and an application with many jobs
//! of its own may fill it in every second.
//! tokio-cron-scheduler has done its part then, so the watch wakes jobs up in place of the alarm.
//! It does not in place of a scheduler that was shut down: an application does that to start nothing more.
//!
//! Ticks are due by the nodes' clocks, so they are also looked for when the time of those is another than expected.
//! A replica whose own clock is wrong uses the nodes' time, and logs a warning.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use tokio::{
    select,
    time::{Instant, sleep},
};

use super::{alarm::JobAlarm, jobs::Jobs};
use crate::{clock::LONGEST_AHEAD, replica::Replica};

/// Looks at the clock and for the alarm every second, until nothing may be started any more.
///
/// Without an alarm, it is what wakes jobs up.
pub(crate) async fn watch(alarm: Option<JobAlarm>, replica: Arc<Replica>, jobs: Weak<Jobs>) {
    let (mut told, mut told_of_losses, mut told_of_clock) = (false, false, false);
    let mut is_set_anew = false;
    // When the scheduler last dealt with an alarm whose activation was lost.
    let mut at_work = Instant::now();
    loop {
        select! {
            () = replica.tasks.draining() => return,
            () = sleep(EVERY) => {}
        }
        replica.look_at_clocks().await;
        let Some(jobs) = jobs.upgrade() else { return };
        told_of_clock = tell_of_clock(&replica, told_of_clock);
        let was_set = replica.has_time_jumped();
        if was_set {
            jobs.clock_was_set();
        }
        let Some(alarm) = &alarm else {
            jobs.alarm_came();
            continue;
        };
        let (set_back, silence) = (jobs.set_back_by(), jobs.silence());
        if set_back >= Duration::from_secs(1) {
            tracing::warn!(target: crate::TARGET, by = ?set_back, "the clock was set back");
        }
        let is_late = silence > LONGEST_SILENCE;
        let is_lost = is_late && is_set_anew && alarm.was_dealt_with().await;
        is_set_anew = is_late || set_back > Duration::ZERO;
        if is_set_anew {
            alarm.set_anew().await;
        }
        if (was_set || is_lost || set_back > Duration::ZERO) && !alarm.is_shut_down() {
            jobs.wake();
        }
        if is_lost {
            at_work = Instant::now();
        }
        if is_lost && !std::mem::replace(&mut told_of_losses, true) {
            tracing::warn!(
                target: crate::TARGET, ?silence,
                "tokio-cron-scheduler loses activations, perhaps also of the application's own jobs: \
                 is its channel too small for them, or does one of them block?"
            );
        }
        let is_silent = silence.min(at_work.elapsed()) > TOLD_SILENCE;
        if is_silent && !told {
            tracing::error!(
                target: crate::TARGET, ?silence,
                "tokio-cron-scheduler does not wake jobs up, and no tick is started: was it shut down?"
            );
        }
        told = is_silent;
    }
}

/// Warns once if this replica's clock is far off; returns whether it is.
fn tell_of_clock(replica: &Replica, was_told: bool) -> bool {
    let Some(ahead) = replica.ahead() else {
        return was_told;
    };
    let is_wrong = ahead.abs().to_std().is_ok_and(|by| by > LONGEST_AHEAD);
    if is_wrong && !was_told {
        let offset_s = ahead.num_seconds();
        tracing::warn!(
            target: crate::TARGET, offset_s,
            "the wall clock of this machine is wrong: set it right; until then, jobs here are started by the nodes' clocks"
        );
    }
    is_wrong
}

/// The longest delay of a tick that comes right after a step back of the clock.
const EVERY: Duration = Duration::from_secs(1);

/// The alarm comes a second and a half after the last at the latest, unless the machine is busy.
const LONGEST_SILENCE: Duration = Duration::from_secs(3);

/// The length of a silence of the alarm that is logged as an error.
const TOLD_SILENCE: Duration = Duration::from_secs(10);
