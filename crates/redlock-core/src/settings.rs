use std::time::Duration;

use redlock_proto::{RetryPolicy, Timing};

use crate::{BuildError, Redlock, Wait, queue::QueueLimits};

/// What the builder settled, checked.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) ttl: Duration,
    pub(crate) max_ttl: Duration,
    pub(crate) wait: Wait,
    pub(crate) clock_rate_error: f64,
    pub(crate) node_timeout: Duration,
    pub(crate) connect_timeout: Duration,
    pub(crate) retry: RetryPolicy,
    pub(crate) queue: QueueLimits,
}

impl Settings {
    pub(crate) const LONGEST_MAX_TTL: Duration = Duration::from_secs(24 * 60 * 60);

    /// The timing of a lease, or what is wrong with its time to live.
    ///
    /// Nodes count in whole milliseconds, so the rest is cut off before anything is computed from it.
    pub(crate) fn timing(&self, ttl: Duration) -> Result<Timing, String> {
        let (min, max) = (Redlock::MIN_TTL, self.max_ttl);
        if ttl < min || ttl > max {
            return Err(format!(
                "{ttl:?} is not between {min:?} and the client's max_ttl of {max:?}"
            ));
        }
        let ttl = Duration::from_millis(u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX));
        Timing::new(ttl, self.clock_rate_error, ttl / 10)
            .ok_or_else(|| "leaves nothing after the allowance for clock drift".to_owned())
    }

    pub(crate) fn check(self) -> Result<Self, BuildError> {
        let range = |field: &str, value: Duration, min: Duration, max: Duration| {
            if value < min || value > max {
                let message = format!("{value:?} is not between {min:?} and {max:?}");
                return Err(BuildError::misuse(field, message));
            }
            Ok(())
        };
        let (ms, second) = (Duration::from_millis(1), Duration::from_secs(1));
        range(
            "max_ttl",
            self.max_ttl,
            Redlock::MIN_TTL,
            Self::LONGEST_MAX_TTL,
        )?;
        range("ttl", self.ttl, Redlock::MIN_TTL, self.max_ttl)?;
        range("node_timeout", self.node_timeout, ms, 60 * second)?;
        range("connect_timeout", self.connect_timeout, ms, 60 * second)?;
        if !(0.0..=0.25).contains(&self.clock_rate_error) {
            let message = format!("{} is not between 0 and 0.25", self.clock_rate_error);
            return Err(BuildError::misuse("clock_rate_error", message));
        }
        self.timing(self.ttl)
            .map_err(|message| BuildError::misuse("ttl", message))?;
        Ok(self)
    }
}
