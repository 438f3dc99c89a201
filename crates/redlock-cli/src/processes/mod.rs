//! The measurements that processes make of themselves, and no node knows: callers that wait, and the next tick of a job.

mod exposition;
mod http;

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use futures_util::future::join_all;
use serde::Serialize;

use self::{exposition::series, http::Address};
use crate::exit::Failure;

/// Where processes tell Prometheus what they measure.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Processes {
    /// URLs at which processes serve metrics for Prometheus, with commas between them, such as
    /// http://web-1:9000/metrics: only the processes know which callers wait, and when the next ticks of jobs are
    #[arg(long = "metrics", value_name = "URLS", value_delimiter = ',')]
    urls: Vec<String>,
}

/// Processes that can be asked.
#[derive(Debug)]
pub(crate) struct Addresses(BTreeSet<Address>);

/// What the processes said.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Measured {
    /// The callers that wait, by the class of what they wait for.
    pub(crate) waiting: Vec<Waiting>,
    /// When the next tick of a job is, in milliseconds since 1970, by `NAMESPACE/NAME`.
    #[serde(skip)]
    pub(crate) next_ticks: BTreeMap<String, f64>,
    /// The processes that did not say, and why.
    pub(crate) silent: Vec<Silent>,
}

/// The callers of one process that wait for locks of one class.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub(crate) struct Waiting {
    pub(crate) lock: String,
    pub(crate) process: String,
    pub(crate) callers: u64,
}

#[derive(Clone, Debug, Serialize)]
pub(crate) struct Silent {
    pub(crate) process: String,
    pub(crate) why: String,
}

impl Processes {
    /// Reads the URLs; the error does not repeat them.
    pub(crate) fn addresses(&self) -> Result<Addresses, Failure> {
        // What is named twice would be counted twice.
        let mut addresses = BTreeSet::new();
        for (at, url) in self.urls.iter().enumerate() {
            let address = http::address(url.trim());
            addresses.insert(
                address
                    .map_err(|why| Failure::wrong(format!("--metrics: URL {}: {why}", at + 1)))?,
            );
        }
        Ok(Addresses(addresses))
    }
}

impl Addresses {
    /// Asks all of them at once; `None` if there are none to ask.
    pub(crate) async fn ask(&self, namespace: &str) -> Option<Measured> {
        let Self(addresses) = self;
        if addresses.is_empty() {
            return None;
        }
        let answers = addresses.iter().map(|address| async move {
            let answer = tokio::time::timeout(LIMIT, address.get()).await;
            answer.unwrap_or_else(|_| Err(format!("no answer within {} s", LIMIT.as_secs())))
        });
        let answers = join_all(answers).await;
        let mut measured = Measured::default();
        for (address, answer) in addresses.iter().zip(answers) {
            let process = address.process();
            match answer {
                Ok(text) => measured.add(&process, &text, namespace),
                Err(why) => measured.silent.push(Silent { process, why }),
            }
        }
        let waiting = &mut measured.waiting;
        waiting.sort_by(|a, b| a.lock.cmp(&b.lock).then_with(|| b.callers.cmp(&a.callers)));
        Some(measured)
    }
}

impl Measured {
    /// Returns the callers that may wait for a key: for locks of the class with which it begins, or of none.
    ///
    /// No metric names a key.
    pub(crate) fn of(&self, key: &str) -> Vec<&Waiting> {
        let class = key.split_once(':').map(|(class, _)| class);
        let may_be = |lock: &str| Some(lock) == class || lock == UNNAMED;
        let waiting = self.waiting.iter();
        waiting.filter(|waiting| may_be(&waiting.lock)).collect()
    }

    fn add(&mut self, process: &str, text: &str, namespace: &str) {
        for series in series(text) {
            if series.label("namespace") != Some(namespace) {
                continue;
            }
            match series.name {
                WAITERS if series.value >= 1.0 => self.waiting.push(Waiting {
                    lock: series.label("lock").unwrap_or(UNNAMED).to_owned(),
                    process: process.to_owned(),
                    #[expect(
                        clippy::cast_possible_truncation,
                        clippy::cast_sign_loss,
                        reason = "a number of callers"
                    )]
                    callers: series.value as u64,
                }),
                // A job that has ended or was removed has none.
                NEXT_TICK if series.value.is_finite() => {
                    let name = |label| series.label(label).unwrap_or_default();
                    let job = format!("{}/{}", name("job_namespace"), name("job_name"));
                    let next = self.next_ticks.entry(job).or_insert(f64::INFINITY);
                    *next = next.min(series.value * 1_000.0);
                }
                _ => {}
            }
        }
    }
}

impl std::fmt::Display for Waiting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            lock,
            process,
            callers,
        } = self;
        if lock == UNNAMED {
            write!(f, "{callers} for locks without a class at {process}")
        } else {
            write!(f, "{callers} for locks of class {lock} at {process}")
        }
    }
}

const WAITERS: &str = "redlock_waiters";
const NEXT_TICK: &str = "redlock_job_next_tick_timestamp_seconds";

/// The class that keys without one are measured under.
const UNNAMED: &str = "unnamed";

/// How long a process may take to answer.
const LIMIT: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callers_that_wait_are_counted_by_class_and_process_in_one_namespace() {
        let mut measured = Measured::default();
        let text = "# TYPE redlock_waiters gauge\n\
            redlock_waiters{namespace=\"billing\",lock=\"order\"} 3\n\
            redlock_waiters{namespace=\"billing\",lock=\"mail\"} 0\n\
            redlock_waiters{namespace=\"billing\",lock=\"unnamed\"} 2\n\
            redlock_waiters{namespace=\"other\",lock=\"order\"} 7\n";
        measured.add("web-1:9000", text, "billing");
        let of = |key: &str| -> Vec<String> {
            let waiting = measured.of(key);
            waiting.iter().map(ToString::to_string).collect()
        };
        let [class, unnamed] = [
            "3 for locks of class order at web-1:9000",
            "2 for locks without a class at web-1:9000",
        ];
        assert_eq!(of("order:7"), [class, unnamed]);
        assert_eq!(of("report"), [unnamed]);
    }

    #[test]
    fn of_several_replicas_the_first_next_tick_counts_and_ended_jobs_have_none() {
        let mut measured = Measured::default();
        for next in ["1767225660", "1767225600.5", "NaN"] {
            let text = format!(
                "{NEXT_TICK}{{namespace=\"n\",job_namespace=\"billing\",job_name=\"day\"}} {next}\n"
            );
            measured.add("web", &text, "n");
        }
        let expected = BTreeMap::from([("billing/day".to_owned(), 1_767_225_600_500.0)]);
        assert_eq!(measured.next_ticks, expected);
    }
}
