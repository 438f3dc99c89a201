//! What is done if the alarm does not come, or came by a wrong clock.
//!
//! tokio-cron-scheduler stores the instant at which the alarm is due next, and compares the machine's clock with it.
//! So a clock that was years ahead, and is set right, would silence all jobs for years.
//! A step forwards needs no care: what is due then is found at the next look, half a second later at most.
//! Ticks are due by the nodes' clocks, so they are also looked for when this replica's clock is set in relation to
//! those.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use chrono::TimeDelta;
use tokio::{select, time::sleep};

use super::{alarm::Alarm, jobs::Jobs};
use crate::replica::Replica;

/// Looks at the clock and for the alarm every second, until nothing may be started any more.
pub(crate) async fn watch(alarm: Alarm, replica: Arc<Replica>, jobs: Weak<Jobs>) {
    // What jobs were added by.
    let mut known = TimeDelta::zero();
    let mut told = false;
    loop {
        select! {
            () = replica.tasks.draining() => return,
            () = sleep(EVERY) => {}
        }
        replica.look_at_clocks().await;
        let Some(jobs) = jobs.upgrade() else { return };
        let was_set = (replica.ahead() - known).abs() > NEGLIGIBLE;
        if was_set {
            known = replica.ahead();
            jobs.clock_was_set();
        }
        let (set_back, silence) = (jobs.set_back_by(), jobs.silence());
        if set_back >= Duration::from_secs(1) {
            tracing::warn!(target: crate::TARGET, by = ?set_back, "the clock was set back");
        }
        if set_back > Duration::ZERO || silence > LONGEST_SILENCE {
            alarm.set_anew().await;
        }
        if was_set || set_back > Duration::ZERO {
            jobs.wake();
        }
        let is_silent = silence > TOLD_SILENCE;
        if is_silent && !told {
            tracing::error!(
                target: crate::TARGET, ?silence,
                "tokio-cron-scheduler does not wake jobs up, and no tick is started: was it shut down?"
            );
        }
        told = is_silent;
    }
}

/// By how much a clock may be slewed before ticks are looked for anew.
const NEGLIGIBLE: TimeDelta = TimeDelta::milliseconds(200);

/// So late is a tick at most that comes right after a step back.
const EVERY: Duration = Duration::from_secs(1);

/// The alarm comes a second and a half after the last at the latest, unless the machine is busy.
const LONGEST_SILENCE: Duration = Duration::from_secs(3);

/// After what silence a person is told of it.
const TOLD_SILENCE: Duration = Duration::from_secs(10);
