//! The metrics of layers, by name; with the feature `metrics`.
//!
//! How long requests wait for their locks and hold them is in the metrics of `redlock-core`, by the class of the lock.

#[cfg(feature = "metrics")]
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

#[cfg(feature = "metrics")]
use redlock_core::metrics::{Kind, Metric, Unit};

use redlock_core::Redlock;

use crate::{Rejection, RejectionKind};

/// All metrics of this crate.
///
/// The label `lock` is as for the metrics of `redlock-core`, and `none` if the request had named no lock yet.
#[cfg(feature = "metrics")]
pub const ALL: &[Metric] = &[Metric::new(
    "redlock_http_requests_total",
    Kind::Counter,
    Unit::Count,
    &["namespace", "lock", "outcome"],
    "HTTP requests that were answered, by the class of their lock and by outcome; one whose body is cut off later counts as lost too.",
)];

/// The outcome of a request, as it is counted.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(
    not(feature = "metrics"),
    expect(dead_code, reason = "nothing is counted")
)]
pub(crate) enum RequestOutcome {
    /// The inner service answered it, under its lock.
    Served,
    /// The inner service answered it, and took no lock.
    Unlocked,
    Refused(RejectionKind),
}

#[cfg(feature = "metrics")]
impl RequestOutcome {
    fn name(self) -> &'static str {
        match self {
            Self::Served => "served",
            Self::Unlocked => "unlocked",
            Self::Refused(kind) => match kind {
                RejectionKind::Contended => "contended",
                RejectionKind::Key => "key",
                RejectionKind::Overloaded => "overloaded",
                RejectionKind::Unavailable => "unavailable",
                RejectionKind::Closed => "closed",
                RejectionKind::Lost => "lost",
                RejectionKind::Follower => "follower",
                RejectionKind::Misuse => "misuse",
            },
        }
    }
}

/// The counters of a layer, each made once, so that nothing is allocated for later requests.
#[derive(Debug, Default)]
pub(crate) struct RequestCounters {
    #[cfg(feature = "metrics")]
    by_outcome: Mutex<HashMap<&'static str, CountersByLock>>,
}

#[cfg(feature = "metrics")]
type CountersByLock = HashMap<Arc<str>, ::metrics::Counter>;

impl RequestCounters {
    /// Counts a request, whose lock has these labels.
    #[cfg(feature = "metrics")]
    pub(crate) fn count(&self, outcome: RequestOutcome, labels: [(&'static str, Arc<str>); 2]) {
        let outcome = outcome.name();
        // A counter is whole or not there.
        let by_outcome = self.by_outcome.lock();
        let mut by_outcome = by_outcome.unwrap_or_else(PoisonError::into_inner);
        let by_lock = by_outcome.entry(outcome).or_default();
        let [namespace, (_, lock)] = labels;
        let counter = by_lock.entry(Arc::clone(&lock)).or_insert_with(|| {
            let labels = [namespace, ("lock", lock), ("outcome", outcome.into())];
            ::metrics::counter!("redlock_http_requests_total", &labels)
        });
        counter.increment(1);
    }
}

/// What the log and the metrics learn of the requests of a layer that locks.
#[derive(Debug)]
pub(crate) struct RequestReports {
    redlock: Redlock,
    counters: RequestCounters,
    /// The label of requests that have named no lock, which so allocate nothing.
    #[cfg(feature = "metrics")]
    none: Arc<str>,
}

impl RequestReports {
    pub(crate) fn new(redlock: Redlock) -> Self {
        Self {
            redlock,
            counters: RequestCounters::default(),
            #[cfg(feature = "metrics")]
            none: "none".into(),
        }
    }

    /// Logs and counts a request that was refused, or whose body was cut off.
    pub(crate) fn refused(&self, rejection: &Rejection) {
        rejection.log(Some(&self.redlock));
        self.count(RequestOutcome::Refused(rejection.kind()), rejection.class());
    }

    /// Counts a request by the class of its lock; `None` if it has named none, and empty if the lock has no class.
    pub(crate) fn count(&self, outcome: RequestOutcome, class: Option<&str>) {
        #[cfg(feature = "metrics")]
        self.counters.count(
            outcome,
            match class {
                Some(class) => self
                    .redlock
                    .lock_labels(Some(class).filter(|class| !class.is_empty())),
                None => [
                    ("namespace", self.redlock.namespace()),
                    ("lock", Arc::clone(&self.none)),
                ],
            },
        );
        #[cfg(not(feature = "metrics"))]
        let _ = (&self.counters, outcome, class);
    }
}

/// Tells the recorder what the metrics mean.
pub(crate) fn describe() {
    #[cfg(feature = "metrics")]
    redlock_core::metrics::describe(ALL);
}
