//! What a scheduler measures.

use metrics::{Counter, counter, gauge, histogram};
use redlock_core::metrics::{Kind, Metric, Unit};

use crate::{Outcome, TickReport};

/// All metrics of this crate; `job_name` is the name of a job.
pub const ALL: &[Metric] = &[
    Metric::new(
        "redlock_job_runs_total",
        Kind::Counter,
        Unit::Count,
        &["job_name", "outcome"],
        "Ticks that this replica dealt with, by what became of them.",
    ),
    Metric::new(
        "redlock_job_run_duration_seconds",
        Kind::Histogram,
        Unit::Seconds,
        &["job_name"],
        "How long runs took.",
    ),
    Metric::new(
        "redlock_job_lag_seconds",
        Kind::Histogram,
        Unit::Seconds,
        &["job_name"],
        "How long after their tick runs were started.",
    ),
    Metric::new(
        "redlock_job_last_success_timestamp_seconds",
        Kind::Gauge,
        Unit::Seconds,
        &["job_name"],
        "When a run on this replica last ended well, in seconds since the Unix epoch.",
    ),
];

/// Tells the recorder what the metrics mean.
pub(crate) fn describe() {
    redlock_core::metrics::describe(ALL);
}

/// Registers what a job's ticks are counted by, so that each count is seen to grow from 0: of a series that begins with
/// its first tick, nobody can tell that it was just now.
pub(crate) fn register(job: &str) {
    for outcome in Outcome::ALL {
        runs(job, outcome).increment(0);
    }
}

fn runs(job: &str, outcome: Outcome) -> Counter {
    let job = job.to_owned();
    counter!("redlock_job_runs_total", "job_name" => job, "outcome" => outcome.as_str())
}

pub(crate) fn tell(report: &TickReport) {
    let job = || report.job().to_owned();
    let outcome = report.outcome();
    runs(report.job(), outcome).increment(report.ticks());
    if let Some(took) = report.took() {
        histogram!("redlock_job_run_duration_seconds", "job_name" => job()).record(took);
        histogram!("redlock_job_lag_seconds", "job_name" => job()).record(report.lag());
    }
    if outcome == Outcome::Ok {
        let since = report.lag() + report.took().unwrap_or_default();
        let ended = report.tick().timestamp_millis() as f64 / 1e3 + since.as_secs_f64();
        gauge!("redlock_job_last_success_timestamp_seconds", "job_name" => job()).set(ended);
    }
}
