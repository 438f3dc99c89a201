//! The receivers of reports: `tracing`, the metrics, and the hooks of the application.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

#[cfg(feature = "test-util")]
use parking_lot::Mutex;
use redlock_core::Redlock;
#[cfg(feature = "test-util")]
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tracing::{debug, error, info, warn};

#[cfg(feature = "metrics")]
use super::metrics::JobMeter;
use crate::{Outcome, Run, TickReport, job::JobNamespace};

pub(crate) type OutcomeHook = Box<dyn Fn(&TickReport) + Send + Sync>;

pub(crate) type StartHook = Box<dyn Fn(&Run) + Send + Sync>;

#[derive(Default)]
pub(crate) struct Reporter {
    hook: Option<OutcomeHook>,
    /// Called before each run begins.
    pub(crate) start: Option<StartHook>,
    /// The number and the namespace of the client of the nodes.
    client: Option<u64>,
    namespace: Option<Arc<str>>,
    #[cfg(feature = "metrics")]
    meter: Option<JobMeter>,
    /// Tests that wait for a replica to have dealt with a tick.
    #[cfg(feature = "test-util")]
    listeners: Mutex<Vec<UnboundedSender<TickReport>>>,
}

impl Reporter {
    pub(crate) fn new(hook: Option<OutcomeHook>) -> Self {
        #[cfg(feature = "metrics")]
        redlock_core::metrics::describe(super::METRICS);
        Self {
            hook,
            ..Self::default()
        }
    }

    /// Sets the client that each event names, and the namespace of the jobs.
    #[cfg_attr(
        not(feature = "metrics"),
        expect(unused_variables, reason = "the log has names of jobs only")
    )]
    pub(crate) fn of(self, redlock: &Redlock, jobs: &JobNamespace) -> Self {
        Self {
            client: Some(redlock.id()),
            namespace: Some(redlock.namespace()),
            #[cfg(feature = "metrics")]
            meter: Some(JobMeter::new(redlock.namespace(), Arc::clone(jobs.name()))),
            ..self
        }
    }

    /// Calls the meter; a recorder is the application's code, and may panic.
    #[cfg(feature = "metrics")]
    pub(crate) fn measure(&self, measure: impl FnOnce(&JobMeter)) {
        if let Some(meter) = &self.meter {
            let _: Result<(), _> = guarded(|| measure(meter));
        }
    }

    /// Calls the start hook for a run that begins.
    pub(crate) fn started(&self, run: &Run) {
        if let Some(start) = &self.start
            && guarded(|| start(run)).is_err()
        {
            error!(target: crate::TARGET, job = run.name(), tick = run.tick.to_string(), "the start hook panicked");
        }
    }

    /// Returns the reports, from now on, of ticks that this replica has dealt with to the end.
    #[cfg(feature = "test-util")]
    pub(crate) fn listen(&self) -> UnboundedReceiver<TickReport> {
        let (sender, reports) = unbounded_channel();
        self.listeners.lock().push(sender);
        reports
    }

    /// Sends a report to the listeners when nothing of its tick remains to be done: a run has released its lease.
    #[cfg(feature = "test-util")]
    pub(crate) fn over(&self, report: &TickReport) {
        let mut listeners = self.listeners.lock();
        listeners.retain(|listener| listener.send(report.clone()).is_ok());
    }

    pub(crate) fn tell(&self, report: &TickReport) {
        self.log(report);
        #[cfg(feature = "metrics")]
        self.measure(|meter| meter.tell(report));
        if let Some(hook) = &self.hook
            && guarded(|| hook(report)).is_err()
        {
            error!(target: crate::TARGET, job = report.job(), tick = report.tick.to_string(), "the outcome hook panicked");
        }
    }

    fn log(&self, report: &TickReport) {
        let namespace = self.namespace.as_deref();
        macro_rules! event {
        ($level:ident) => {
            $level!(
                target: crate::TARGET,
                client = self.client,
                namespace,
                job = report.job(),
                tick = report.tick.to_string(),
                last_tick = report.more.map(|(last, _)| last.to_string()),
                ticks = report.more.map(|(_, ticks)| ticks),
                trigger = ?report.trigger,
                attempt = report.attempt,
                tries = report.tries,
                outcome = report.outcome.as_str(),
                lag_ms = millis(report.lag),
                took_ms = report.took.map(millis),
                claim_ms = report.claim_took().map(millis),
                clock_offset_ms = report.clock_offset().map(|ahead| ahead.num_milliseconds()),
                detail = report.detail(),
                "tick"
            )
        };
    }
        match report.outcome {
            Outcome::Ok => event!(info),
            // What losing replicas, conditions, shutdowns and removals are expected to say.
            Outcome::NotWinner
            | Outcome::Declined
            | Outcome::Overlapping
            | Outcome::Paused
            | Outcome::Draining
            | Outcome::Removed => event!(debug),
            Outcome::NoPlace
            | Outcome::TooEarly
            | Outcome::ClockWasAhead
            | Outcome::TooLate
            | Outcome::Missed
            | Outcome::Forgotten
            | Outcome::Unconfirmed
            | Outcome::NoQuorum
            | Outcome::Refused
            | Outcome::Cancelled
            | Outcome::Aborted => event!(warn),
            Outcome::Failed
            | Outcome::Panicked
            | Outcome::TimedOut
            | Outcome::Lost
            | Outcome::GivenUp => event!(error),
        }
    }
}

/// Runs code of an application (a hook, a condition or a recorder) and catches its panic.
///
/// A panic must not end the task, which has a lease to release.
pub(crate) fn guarded<T>(work: impl FnOnce() -> T) -> std::thread::Result<T> {
    // No state of ours is behind it, so none can be left half-done.
    catch_unwind(AssertUnwindSafe(work))
}

fn millis(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
