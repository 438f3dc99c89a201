//! What becomes of wake-ups when the wall clock is set back.
//!
//! tokio-cron-scheduler stores the instant at which a job is to be woken up, and compares the clock with it.
//! So a clock that was years ahead, and is set right, would silence each job for years: it was told to wake up after
//! the tick that came last by the wrong clock.
//! A step forwards needs no care: what is due then is found at the next look, half a second later at most.
//! Jobs are woken up before their ticks by the nodes' clocks, so they are also woken up anew when this replica's clock is
//! set in relation to those.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use chrono::TimeDelta;
use tokio::{select, sync::Mutex, time::sleep};
use tokio_cron_scheduler::JobScheduler;

use super::jobs::Jobs;
use crate::replica::Replica;

/// Looks at the clock every second, until nothing may be started any more.
pub(crate) async fn watch(scheduler: JobScheduler, replica: Arc<Replica>, jobs: Weak<Mutex<Jobs>>) {
    // What jobs were added by.
    let mut known = TimeDelta::zero();
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
        }
        jobs.lock().await.look_at_clock(&scheduler, was_set).await;
    }
}

/// Wake-ups come earlier than they must by more than this.
const NEGLIGIBLE: TimeDelta = TimeDelta::milliseconds(200);

/// So late is a tick at most that comes right after a step back.
const EVERY: Duration = Duration::from_secs(1);
