use std::time::Duration;

use redlock_proto::{HolderLabel, Quarantine, RetryPolicy, Timing};

use crate::{AcquireOptions, BuildError, Expert, InvalidOption, Wait};

/// What the builder settled, checked.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) ttl: Duration,
    pub(crate) max_ttl: Duration,
    pub(crate) wait: Wait,
    /// How long an acquire bears with too few nodes.
    pub(crate) quorum_wait: Duration,
    pub(crate) clock_rate_error: f64,
    pub(crate) node_timeout: Duration,
    pub(crate) connect_timeout: Duration,
    pub(crate) retry: RetryPolicy,
    pub(crate) max_waiters_per_key: usize,
    pub(crate) expert: Expert,
    /// The label by which other clients see this client as a holder.
    pub(crate) label: Option<HolderLabel>,
}

impl Settings {
    /// The shortest time to live that may be asked for.
    pub(crate) const MIN_TTL: Duration = Duration::from_millis(100);

    pub(crate) const LONGEST_MAX_TTL: Duration = Duration::from_secs(24 * 60 * 60);

    /// Returns the timing of a lease, or what is wrong with its time to live.
    ///
    /// Nodes count in whole milliseconds, so the rest is cut off before anything is computed from it.
    pub(crate) fn timing(
        &self,
        ttl: Duration,
        lock_delay: Duration,
    ) -> Result<Timing, InvalidOption> {
        let (min, max) = (Self::MIN_TTL, self.max_ttl);
        if ttl < min || ttl > max {
            let message =
                format!("{ttl:?} is not between {min:?} and the client's max_ttl of {max:?}");
            return Err(InvalidOption::new("ttl", message));
        }
        if lock_delay > max - ttl {
            let message = format!(
                "{lock_delay:?} after a ttl of {ttl:?} exceeds the client's max_ttl of {max:?}"
            );
            return Err(InvalidOption::new("lock_delay", message));
        }
        let whole = |duration: Duration| {
            Duration::from_millis(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
        };
        let ttl = whole(ttl);
        Timing::new(ttl, self.clock_rate_error, ttl / 10)
            .map(|timing| timing.with_lock_delay(whole(lock_delay)))
            .ok_or_else(|| {
                let message = "leaves nothing after the allowance for clock drift";
                InvalidOption::new("ttl", message.to_owned())
            })
    }

    /// Returns the timing of a lease that is asked for with `options`, or what is wrong with them.
    pub(crate) fn timing_of(&self, options: &AcquireOptions) -> Result<Timing, InvalidOption> {
        if options.max_hold.is_some_and(|max_hold| max_hold.is_zero()) {
            let message = "a lease cannot be held for no time".to_owned();
            return Err(InvalidOption::new("max_hold", message));
        }
        let lock_delay = options.lock_delay.unwrap_or_default();
        self.timing(options.ttl.unwrap_or(self.ttl), lock_delay)
    }

    /// Returns the label of a holder of a lease of this class.
    pub(crate) fn label_for(&self, class: Option<&str>) -> Option<HolderLabel> {
        let process = self.label?;
        Some(class.map_or(process, |class| process.holding_for(class)))
    }

    /// Returns how long nodes that may have forgotten leases do not vote.
    pub(crate) fn quarantine(&self) -> Quarantine {
        let mut quarantine = Quarantine::new(self.max_ttl, self.clock_rate_error);
        if self.expert.dangerous_trust_persistence {
            quarantine = quarantine.trusting_persistence();
        }
        if self.expert.dangerous_trust_delayed_restarts {
            quarantine = quarantine.trusting_delayed_restarts();
        }
        if self.expert.accept_replicas {
            quarantine = quarantine.accepting_replicas();
        }
        if self.expert.dangerous_guess_fencing_floor {
            quarantine = quarantine.guessing_floors();
        }
        quarantine
    }

    /// Returns the settings, or the error of one that is not valid; `has_own_ttl` says if the user set the ttl.
    pub(crate) fn check(self, has_own_ttl: bool) -> Result<Self, BuildError> {
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
            Self::MIN_TTL,
            Self::LONGEST_MAX_TTL,
        )?;
        if self.ttl < Self::MIN_TTL || self.ttl > self.max_ttl {
            let (ttl, min, max) = (self.ttl, Self::MIN_TTL, self.max_ttl);
            let bounds = format!("is not between {min:?} and max_ttl, which is {max:?}");
            let message = if has_own_ttl {
                format!("{ttl:?} {bounds}")
            } else {
                format!("{ttl:?}, the default, {bounds}; set ttl too")
            };
            return Err(BuildError::misuse("ttl", message));
        }
        range("node_timeout", self.node_timeout, ms, 60 * second)?;
        range("connect_timeout", self.connect_timeout, ms, 60 * second)?;
        if !(0.0..=0.25).contains(&self.clock_rate_error) {
            let message = format!("{} is not between 0 and 0.25", self.clock_rate_error);
            return Err(BuildError::misuse("clock_rate_error", message));
        }
        self.timing(self.ttl, Duration::ZERO)
            .map_err(|invalid| BuildError::misuse("ttl", invalid.message()))?;
        Ok(self)
    }
}
