//! The options of an acquire.

mod waiting;

use std::{sync::Arc, time::Duration};

use redlock_proto::Fairness;

pub use self::waiting::{Renewal, Wait};
use crate::{
    Mode, ResourceKeys,
    key::SlotsOf,
    lease::{OwnLabel, class_of},
    meter::LockMeter,
};

/// The options of one acquire, where they differ from the client's defaults.
///
/// # Examples
///
/// ```
/// use redlock_core::{AcquireOptions, Fairness, Renewal, Wait};
/// use std::time::Duration;
///
/// let quick = AcquireOptions::new()
///     .ttl(Duration::from_secs(3))
///     .wait(Wait::UpTo(Duration::from_millis(500)))
///     .quorum_wait(Duration::from_millis(500))
///     .max_waiters_per_key(20);
/// let sale = AcquireOptions::new()
///     .class("sale")
///     .fairness(Fairness::Strict)
///     .max_hold(Duration::from_secs(60));
/// let reader = AcquireOptions::new().shared();
/// // With `LockGuard::leave`: one reminder in 20 s at most.
/// let reminder = AcquireOptions::new()
///     .ttl(Duration::from_secs(20))
///     .renewal(Renewal::Manual);
/// ```
#[derive(Clone, Debug, Default)]
#[must_use = "options do nothing until they are passed to an acquire"]
pub struct AcquireOptions {
    pub(crate) ttl: Option<Duration>,
    pub(crate) wait: Option<Wait>,
    pub(crate) quorum_wait: Option<Duration>,
    pub(crate) renewal: Option<Renewal>,
    pub(crate) fairness: Option<Fairness>,
    pub(crate) max_hold: Option<Duration>,
    pub(crate) lock_delay: Option<Duration>,
    pub(crate) max_waiters_per_key: Option<usize>,
    pub(crate) class: Option<Arc<str>>,
    pub(crate) mode: Mode,
    /// The label of the holder, instead of that of the client.
    pub(crate) label: Option<Arc<OwnLabel>>,
    /// The metrics, instead of those of the class.
    pub(crate) meter: Option<LockMeter>,
    /// The slots of which the resource is one.
    pub(crate) slots: Option<SlotsOf>,
}

impl AcquireOptions {
    /// Returns the client's defaults, with automatic renewal.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns these options, and those of `defaults` where these are not set.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
    /// use redlock_core::{AcquireOptions, Wait};
    /// use std::time::Duration;
    ///
    /// let defaults = AcquireOptions::new().ttl(Duration::from_secs(3));
    /// let options = AcquireOptions::new().wait(Wait::Never).or(&defaults);
    /// let guard = redlock.acquire_with("report", options).await?;
    /// assert!(guard.remaining() < Duration::from_secs(3));
    /// # Ok(())
    /// # }
    /// ```
    pub fn or(self, defaults: &Self) -> Self {
        Self {
            ttl: self.ttl.or(defaults.ttl),
            wait: self.wait.or(defaults.wait),
            quorum_wait: self.quorum_wait.or(defaults.quorum_wait),
            renewal: self.renewal.or(defaults.renewal),
            fairness: self.fairness.or(defaults.fairness),
            max_hold: self.max_hold.or(defaults.max_hold),
            lock_delay: self.lock_delay.or(defaults.lock_delay),
            max_waiters_per_key: self.max_waiters_per_key.or(defaults.max_waiters_per_key),
            class: self.class.or_else(|| defaults.class.clone()),
            mode: match self.mode {
                Mode::Exclusive => defaults.mode,
                Mode::Shared => Mode::Shared,
            },
            label: self.label.or_else(|| defaults.label.clone()),
            meter: self.meter.or_else(|| defaults.meter.clone()),
            slots: self.slots.or_else(|| defaults.slots.clone()),
        }
    }

    /// Sets how long nodes keep the key without a renewal: from 100 ms to the client's `max_ttl`, in whole
    /// milliseconds.
    ///
    /// It limits how long a crashed holder blocks other callers.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = Some(ttl);
        self
    }

    /// Sets how long to wait for a resource that another holds.
    pub fn wait(mut self, wait: Wait) -> Self {
        self.wait = Some(wait);
        self
    }

    /// Sets how long an outage of the nodes may last before this acquire fails because of it; never longer than the
    /// [`wait`](Self::wait).
    ///
    /// Default: the client's [`quorum_wait`](crate::RedlockBuilder::quorum_wait), which says from when the client
    /// counts it.
    pub fn quorum_wait(mut self, quorum_wait: Duration) -> Self {
        self.quorum_wait = Some(quorum_wait);
        self
    }

    /// Sets whether the client or the holder moves the deadline.
    pub fn renewal(mut self, renewal: Renewal) -> Self {
        self.renewal = Some(renewal);
        self
    }

    /// Sets the order in which callers of several processes have the key; the default is [`Fairness::Cohort`].
    ///
    /// It makes a difference where callers of different processes wait for one key alone, and all of them use it.
    /// See [Waiting](crate::guide::waiting#waiting).
    pub fn fairness(mut self, fairness: Fairness) -> Self {
        self.fairness = Some(fairness);
        self
    }

    /// Sets the longest time for which the lease is held, however often it is renewed or extended.
    ///
    /// The client counts it from the start of the attempt that won.
    /// At its end the lease is lost, with [`LossReason::MaxHold`](crate::LossReason::MaxHold).
    /// Without it the client renews a lease for as long as its guard lives.
    pub fn max_hold(mut self, max_hold: Duration) -> Self {
        self.max_hold = Some(max_hold);
        self
    }

    /// Sets how long the resource rests after a holder that did not release it, such as one that crashed.
    ///
    /// Nodes keep the key for this much longer than the lease is valid, so that work which such a holder had begun
    /// can end.
    /// A release frees the key at once.
    /// The sum of the lock delay and the ttl must not exceed the client's `max_ttl`.
    /// Default: none.
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
    /// // A statement of a holder that crashed ends within 5 s, by the database's limit.
    /// let options = AcquireOptions::new()
    ///     .ttl(Duration::from_secs(10))
    ///     .lock_delay(Duration::from_secs(5));
    /// let guard = redlock.acquire_with("account:7", options).await?;
    /// guard.release().await?; // frees it at once
    /// # Ok(())
    /// # }
    /// ```
    pub fn lock_delay(mut self, lock_delay: Duration) -> Self {
        self.lock_delay = Some(lock_delay);
        self
    }

    /// Sets how many callers of this client may wait for the resource already; with more, this acquire fails with
    /// [`Overloaded`](crate::AcquireErrorKind::Overloaded) instead of waiting too.
    ///
    /// With 0 the acquire does not wait behind another caller of this process, only for other processes.
    /// One attempt, with [`Wait::Never`], does not wait in any case, and fails as
    /// [`Contended`](crate::AcquireErrorKind::Contended).
    /// Default: the client's [`max_waiters_per_key`](crate::RedlockBuilder::max_waiters_per_key).
    pub fn max_waiters_per_key(mut self, waiters: usize) -> Self {
        self.max_waiters_per_key = Some(waiters);
        self
    }

    /// Sets the class of the resource, such as `order`.
    ///
    /// Log lines name a lease that is in danger or lost by its class, because they never have its key.
    /// The class is also a part of the [label](crate::HolderLabel) by which other callers see the holder.
    /// Default: the class of the [key](crate::ResourceKey::class), if the key has one.
    pub fn class(mut self, class: impl Into<Arc<str>>) -> Self {
        self.class = Some(class.into());
        self
    }

    /// Shares the resource with other readers, as [`acquire_shared`](crate::Redlock::acquire_shared) says.
    pub fn shared(mut self) -> Self {
        self.mode = Mode::Shared;
        self
    }

    /// Returns the mode of the lease that these options ask for: exclusive, unless [`shared`](Self::shared) is set.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Returns the class of a lease on `keys` with these options: the one that they set, or that of the first key.
    pub fn class_of<'a>(&'a self, keys: &'a ResourceKeys) -> Option<&'a str> {
        class_of(self.class.as_deref(), keys)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_set_goes_before_the_defaults_though_it_is_the_usual() {
        let defaults = AcquireOptions::new()
            .renewal(Renewal::Manual)
            .lock_delay(Duration::from_secs(5));
        let usual = AcquireOptions::new()
            .renewal(Renewal::Automatic)
            .lock_delay(Duration::ZERO)
            .or(&defaults);
        assert_eq!(usual.renewal, Some(Renewal::Automatic));
        assert_eq!(usual.lock_delay, Some(Duration::ZERO));
        let none = AcquireOptions::new().or(&defaults);
        assert_eq!(none.renewal, Some(Renewal::Manual));
        assert_eq!(none.lock_delay, Some(Duration::from_secs(5)));
    }
}
