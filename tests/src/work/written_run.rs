use std::{sync::Arc, time::Duration};

use redlock_cron::Run;
use tokio::{select, time::sleep};

use crate::{JobMoment, job_log::JobLogWriter, now};

/// A run that writes down what becomes of it.
pub(super) struct WrittenRun {
    log: Arc<JobLogWriter>,
    run: Run,
    worked: Duration,
    finished: bool,
}

impl WrittenRun {
    pub(super) fn begin(log: Arc<JobLogWriter>, run: Run) -> Self {
        let this = Self {
            log,
            run,
            worked: now(),
            finished: false,
        };
        this.write(JobMoment::Began {
            token: this.token(),
            attempt: this.run.attempt(),
            trigger: format!("{:?}", this.run.trigger()),
        });
        this
    }

    /// Works for so long, or for `stops_in` once it is told to stop, and finishes.
    pub(super) async fn work(mut self, time: Duration, stops_in: Option<Duration>) {
        let mut until = self.worked + time;
        let mut told = false;
        while self.worked < until {
            let run = &self.run;
            select! {
                () = sleep(STEP.min(until - self.worked)) => {}
                () = run.stopping(), if !told => {
                    told = true;
                    let token = self.token();
                    self.write(JobMoment::Told { token });
                    until = stops_in.map_or(until, |time| until.min(now() + time));
                }
            }
            self.worked = now();
        }
        self.finished = true;
        let token = self.token();
        self.write(JobMoment::Finished { token });
    }

    fn token(&self) -> u64 {
        self.run.fencing_token().get()
    }

    fn write(&self, moment: JobMoment) {
        self.log.write(self.run.name(), self.run.tick(), moment);
    }
}

impl Drop for WrittenRun {
    fn drop(&mut self) {
        if !self.finished {
            self.write(JobMoment::Dropped {
                token: self.token(),
                worked: self.worked,
            });
        }
    }
}

/// How often a run works.
const STEP: Duration = Duration::from_millis(20);
