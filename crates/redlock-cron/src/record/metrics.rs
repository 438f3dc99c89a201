//! The metrics of a scheduler.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use metrics::{Counter, counter, gauge, histogram};
use redlock_core::metrics::{Kind, Metric, Unit};

use super::outcome::WORDS;
use crate::{Outcome, TickReport};

/// All metrics of this crate.
///
/// `job_name` and `job_namespace` are the name of a job and the namespace of its scheduler; `namespace` is that of the
/// client of the nodes, as in the metrics of `redlock-core`.
pub const ALL: &[Metric] = &[
    Metric::new(
        "redlock_job_runs_total",
        Kind::Counter,
        Unit::Count,
        &["namespace", "job_namespace", "job_name", "outcome"],
        "Ticks that this replica dealt with, by what became of them.",
    ),
    Metric::new(
        "redlock_job_run_duration_seconds",
        Kind::Histogram,
        Unit::Seconds,
        BY_JOB,
        "How long runs took.",
    ),
    Metric::new(
        "redlock_job_lag_seconds",
        Kind::Histogram,
        Unit::Seconds,
        BY_JOB,
        "How long after their tick runs were started.",
    ),
    Metric::new(
        "redlock_job_last_success_timestamp_seconds",
        Kind::Gauge,
        Unit::Seconds,
        BY_JOB,
        "When a run on this replica last ended well, in seconds since the Unix epoch.",
    ),
    Metric::new(
        "redlock_job_next_tick_timestamp_seconds",
        Kind::Gauge,
        Unit::Seconds,
        BY_JOB,
        "When the next tick is that this replica will look at, in seconds since the Unix epoch; NaN if there is none.",
    ),
    Metric::new(
        "redlock_job_overdue",
        Kind::Gauge,
        Unit::Count,
        BY_JOB,
        "1 if no run has ended well within the time that the job expects, on any replica; 0 otherwise.",
    ),
];

const BY_JOB: &[&str] = &["namespace", "job_namespace", "job_name"];

/// The metrics of one scheduler's jobs, with the labels that distinguish them from the jobs of other schedulers.
pub(crate) struct JobMeter {
    namespace: Arc<str>,
    job_namespace: Arc<str>,
}

impl JobMeter {
    pub(crate) fn new(namespace: Arc<str>, job_namespace: Arc<str>) -> Self {
        Self {
            namespace,
            job_namespace,
        }
    }

    /// Registers the counters of a job's ticks, so that each count is seen to grow from 0.
    ///
    /// A series that begins with its first tick does not show that the tick has just come.
    pub(crate) fn register(&self, job: &str) {
        for (outcome, _) in WORDS {
            self.runs(&job.into(), outcome).increment(0);
        }
    }

    pub(crate) fn tell(&self, report: &TickReport) {
        let (outcome, labels) = (report.outcome(), self.labels(&report.job));
        self.runs(&report.job, outcome).increment(report.ticks());
        if let Some(took) = report.took() {
            histogram!("redlock_job_run_duration_seconds", &labels).record(took);
            histogram!("redlock_job_lag_seconds", &labels).record(report.lag());
        }
        if outcome == Outcome::Ok {
            let since = report.lag() + report.took().unwrap_or_default();
            let ended = report.tick().timestamp_millis() as f64 / 1e3 + since.as_secs_f64();
            gauge!("redlock_job_last_success_timestamp_seconds", &labels).set(ended);
        }
    }

    /// Sets the metric of the next tick; `None` if there is none, or none for this replica.
    pub(crate) fn measure_next(&self, job: &Arc<str>, next: Option<DateTime<Utc>>) {
        let at = next.map_or(f64::NAN, |next| next.timestamp_millis() as f64 / 1e3);
        let labels = self.labels(job);
        gauge!("redlock_job_next_tick_timestamp_seconds", &labels).set(at);
    }

    /// Sets the metric of the dead-man's switch.
    pub(crate) fn measure_overdue(&self, job: &Arc<str>, is_overdue: bool) {
        let labels = self.labels(job);
        gauge!("redlock_job_overdue", &labels).set(f64::from(u8::from(is_overdue)));
    }

    fn runs(&self, job: &Arc<str>, outcome: Outcome) -> Counter {
        let [namespace, job_namespace, job] = self.labels(job);
        let outcome = ("outcome", outcome.as_str().into());
        let labels = [namespace, job_namespace, job, outcome];
        counter!("redlock_job_runs_total", &labels)
    }

    fn labels(&self, job: &Arc<str>) -> [(&'static str, Arc<str>); 3] {
        [
            ("namespace", Arc::clone(&self.namespace)),
            ("job_namespace", Arc::clone(&self.job_namespace)),
            ("job_name", Arc::clone(job)),
        ]
    }
}
