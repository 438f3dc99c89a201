use std::{collections::HashMap, sync::Arc, time::Duration};

use tokio_cron_scheduler::JobScheduler;
use uuid::Uuid;

use super::attach::{has_places, wake_anew};
use crate::{SetupError, tick::JobRunner};

#[derive(Default)]
pub(crate) struct Jobs {
    pub(crate) by_name: HashMap<String, Attached>,
    pub(crate) started: bool,
    /// So many places the scheduler's channels have at least.
    places: usize,
    warned: bool,
}

/// A job, and what tokio-cron-scheduler knows it by.
pub(crate) struct Attached {
    pub(crate) runner: Arc<JobRunner>,
    pub(crate) id: Uuid,
}

impl Jobs {
    /// Has the jobs woken up anew that were woken up when the clock showed more, or all of them if it `was_set`.
    pub(crate) async fn look_at_clock(&self, scheduler: &JobScheduler, was_set: bool) {
        let mut set_back = Duration::ZERO;
        for Attached { runner, id } in self.by_name.values() {
            let by = runner.set_back_by();
            if was_set {
                runner.clock_was_set();
            }
            if was_set || by > Duration::ZERO {
                set_back = set_back.max(by);
                wake_anew(scheduler, *id, runner).await;
            }
        }
        if set_back >= Duration::from_secs(1) {
            tracing::warn!(target: crate::TARGET, by = ?set_back, "the clock was set back");
        }
    }

    /// Refuses another job if not all of them can be woken up in one second.
    pub(crate) fn check_places(&mut self, scheduler: &JobScheduler) -> Result<(), SetupError> {
        let mut has_places = |places: usize| {
            let places = places.next_power_of_two();
            let has = places <= self.places || has_places(scheduler, places);
            if has {
                self.places = self.places.max(places);
            }
            has
        };
        let jobs = self.by_name.len() + 1;
        if !has_places(jobs) {
            return Err(SetupError::channels(jobs));
        }
        if !self.warned && !has_places(8 * jobs) {
            self.warned = true;
            tracing::warn!(
                target: crate::TARGET, jobs,
                "tokio-cron-scheduler's channels have less than eight places for each job: ticks may be a second \
                 late; make it with JobScheduler::new_with_channel_size"
            );
        }
        Ok(())
    }
}
