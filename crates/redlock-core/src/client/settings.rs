//! The settings of a client, and the options that it can grant.

use std::{sync::Arc, time::Duration};

use redlock_proto::{HolderLabel, InvalidLabel, Quarantine, RetryPolicy, Timing};
use tokio_util::sync::CancellationToken;

use super::Redlock;
use crate::{AcquireOptions, BuildError, Config, Expert, Guarantee, InvalidOption, Wait};

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
    pub(crate) heartbeat: Duration,
    pub(crate) retry: RetryPolicy,
    pub(crate) max_waiters_per_key: usize,
    pub(crate) expert: Expert,
    pub(crate) guarantee: Guarantee,
    /// How many replicas must have a grant of the one server.
    pub(crate) wait_for_replicas: u8,
    /// Whether Sentinels or a Cluster name the server of a node.
    pub(crate) follows_failovers: bool,
    /// The label by which other clients see this client as a holder.
    pub(crate) label: Option<HolderLabel>,
    /// The settings as they were given.
    pub(crate) config: Config,
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
        // A node gives its key to a caller in line for a second longer than this, and others wait for that long if the
        // caller is dead.
        let least = (ttl / 10).min(Duration::from_millis(200));
        Timing::new(ttl, self.clock_rate_error, least)
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
        if self.follows_failovers {
            quarantine = quarantine.following_failovers();
        }
        if self.guarantee == Guarantee::BestEffort {
            quarantine = quarantine.best_effort();
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
        range("heartbeat", self.heartbeat, 100 * ms, 60 * second)?;
        if !(0.0..=0.25).contains(&self.clock_rate_error) {
            let message = format!("{} is not between 0 and 0.25", self.clock_rate_error);
            return Err(BuildError::misuse("clock_rate_error", message));
        }
        if self.follows_failovers && self.expert.dangerous_trust_persistence {
            let message = "has dangerous_trust_persistence, and Sentinels or a Cluster name a node's server: one that they promote has forgotten leases and would vote at once; leave the setting out";
            return Err(BuildError::misuse("expert", message));
        }
        self.timing(self.ttl, Duration::ZERO)
            .map_err(|invalid| BuildError::misuse("ttl", invalid.message()))?;
        Ok(self)
    }
}

impl Redlock {
    /// Returns a number for this client that no other client of the process has; all its handles tell the same.
    pub fn id(&self) -> u64 {
        self.client.engine.client()
    }

    /// Returns the namespace of all keys; `verbatim` where names are keys just as they are.
    pub fn namespace(&self) -> Arc<str> {
        Arc::clone(&self.client.namespace)
    }

    /// Returns the settings that the client was built with, for tools that connect to its nodes beside it.
    ///
    /// A setting that was not given is `None`, and the client has its default.
    /// The nodes have their credentials, and `Debug` shows none.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use redlock_core::Redlock;
    ///
    /// let redlock = Redlock::builder().in_memory_nodes(3).namespace("billing").build().await?;
    /// assert_eq!(redlock.config().namespace.as_deref(), Some("billing"));
    /// assert_eq!(redlock.config().nodes.len(), 3);
    /// # Ok(())
    /// # }
    /// ```
    pub fn config(&self) -> &Config {
        &self.client.settings.config
    }

    /// Returns the number of nodes.
    pub fn nodes(&self) -> usize {
        self.client.names.len()
    }

    /// Returns the number of nodes that must grant: a strict majority.
    pub fn majority(&self) -> usize {
        self.nodes() / 2 + 1
    }

    /// Returns the label by which other clients see this client as a holder, or `other` if it has none.
    pub(crate) fn label_or(&self, other: &str) -> Result<HolderLabel, InvalidLabel> {
        self.client.settings.label.map_or_else(|| other.parse(), Ok)
    }

    /// Returns the token that is cancelled when the client is closed.
    pub(crate) fn closing(&self) -> CancellationToken {
        self.client.closing.clone()
    }

    /// Returns the time to live of a lease for which none is asked.
    pub fn ttl(&self) -> Duration {
        self.client.settings.ttl
    }

    /// Returns the longest time to live that may be asked for.
    pub fn max_ttl(&self) -> Duration {
        self.client.settings.max_ttl
    }

    /// Returns whether it runs in virtual time, which is for tests (`RedlockBuilder::virtual_time`, with the feature
    /// `test-util`).
    ///
    /// A library on top of a client asks this before it reads clocks of its own, so that both go by the same time.
    pub fn is_in_virtual_time(&self) -> bool {
        self.client.clock.is_virtual()
    }

    /// Checks that leases can be asked for with `options`.
    ///
    /// [`acquire_with`](Self::acquire_with) does it too; this is for programs that take options when they are set
    /// up, long before the first acquire.
    ///
    /// # Errors
    ///
    /// The option at fault, and what it may be.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
    /// use redlock_core::AcquireOptions;
    /// use std::time::Duration;
    ///
    /// let options = AcquireOptions::new().ttl(Duration::from_secs(3_600));
    /// let invalid = redlock.check(&options).unwrap_err();
    /// assert_eq!(invalid.field(), "ttl");
    /// # Ok(())
    /// # }
    /// ```
    pub fn check(&self, options: &AcquireOptions) -> Result<(), InvalidOption> {
        self.client.settings.timing_of(options).map(drop)
    }
}

/// Returns the label of this process: its host and its number.
pub(crate) fn label_of_this_process() -> Option<HolderLabel> {
    HolderLabel::closest(&label(&host(), std::process::id()))
}

/// Returns a host and a process as a label that leaves some room before it.
fn label(host: &str, process: u32) -> String {
    let host: String = host.chars().take(LONGEST_HOST).collect();
    format!("{host}:{process}")
}

#[cfg(unix)]
fn host() -> String {
    let host = rustix::system::uname();
    host.nodename().to_string_lossy().into_owned()
}

#[cfg(not(unix))]
fn host() -> String {
    std::env::var("COMPUTERNAME").unwrap_or_else(|_| "process".to_owned())
}

/// The greatest length of a host's name in a label; the rest is left out.
const LONGEST_HOST: usize = 36;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_told_by_its_host_and_number() {
        let label = label_of_this_process().unwrap();
        let (host, process) = label.as_str().rsplit_once(':').unwrap();
        assert_eq!(process, std::process::id().to_string());
        assert!(super::host().starts_with(host), "{host}");
    }

    #[test]
    fn a_long_name_of_a_host_leaves_room_for_the_number_and_a_class() {
        let label = HolderLabel::closest(&label(&"h".repeat(255), u32::MAX)).unwrap();
        assert!(label.as_str().ends_with("h:4294967295"), "{label}");
        let joined = label.holding_for(&"c".repeat(64));
        assert!(
            joined.as_str().starts_with("cccccccccccccccc@h"),
            "{joined}"
        );
    }
}
