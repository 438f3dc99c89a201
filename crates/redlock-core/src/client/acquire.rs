//! Acquires: one key or several, with the client's defaults or with options.

use redlock_proto::LeaseTerms;
use tokio::select;

use super::Redlock;
use crate::{
    AcquireError, AcquireOptions, InvalidKey, LockGuard, Mode, Renewal, ResourceKey, ResourceKeys,
    Wait,
    engine::{AcquireRequest, NotWon},
    guard::acquire_span::AcquireSpan,
    guard::scope::{self, HeldByScopes},
    lease::{LeaseRequest, class_of},
    meter::LockMeter,
};

impl Redlock {
    /// Acquires a lease on `key`, waiting as long as the client's default wait (5 s) if another caller
    /// holds it.
    ///
    /// See [`acquire_with`](Self::acquire_with) for the rules that all forms share.
    ///
    /// # Errors
    ///
    /// As [`acquire_with`](Self::acquire_with).
    ///
    /// # Panics
    ///
    /// As [`acquire_with`](Self::acquire_with).
    ///
    /// # Cancel safety
    ///
    /// As [`acquire_with`](Self::acquire_with).
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
    /// use redlock_core::ResourceKey;
    ///
    /// let guard = redlock.acquire("report:2026-11").await?;
    /// // A key of two parts that cannot be mistaken for another pair.
    /// let order = redlock.acquire(ResourceKey::new("order", 42)?).await?;
    /// # assert_eq!(order.key().as_str(), "order:42");
    /// order.release().await?;
    /// guard.release().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn acquire<K>(&self, key: K) -> Result<LockGuard, AcquireError>
    where
        K: TryInto<ResourceKey>,
        K::Error: Into<InvalidKey>,
    {
        self.acquire_with(key, AcquireOptions::new()).await
    }

    /// Makes one attempt to acquire a lease on `key`.
    ///
    /// # Errors
    ///
    /// As [`acquire_with`](Self::acquire_with);
    /// [`Contended`](crate::AcquireErrorKind::Contended) at once if another caller holds it.
    ///
    /// # Panics
    ///
    /// As [`acquire_with`](Self::acquire_with).
    ///
    /// # Cancel safety
    ///
    /// As [`acquire_with`](Self::acquire_with).
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
    /// use redlock_core::AcquireErrorKind;
    ///
    /// let guard = redlock.acquire("report").await?;
    /// match redlock.try_acquire("report").await {
    ///     Ok(_guard) => unreachable!("it is held"),
    ///     Err(error) if error.kind() == AcquireErrorKind::Contended => { /* another does it */ }
    ///     Err(error) => return Err(error.into()),
    /// }
    /// # drop(guard);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn try_acquire<K>(&self, key: K) -> Result<LockGuard, AcquireError>
    where
        K: TryInto<ResourceKey>,
        K::Error: Into<InvalidKey>,
    {
        self.acquire_with(key, AcquireOptions::new().wait(Wait::Never))
            .await
    }

    /// Acquires a lease on `key` as `options` say.
    ///
    /// Callers of one process take their turns in order, and one of them contends at a time.
    /// A caller passes its lease to the next without asking the nodes, under a new fencing token, up to 63 times in a row.
    /// When callers of the process have followed each other for a quarter of a second, the next caller contends again,
    /// behind callers of other processes that came before it.
    /// A strict majority decides an acquire.
    /// So a minority of nodes that is down, slow or hung does not fail the acquire, and does not delay it by more than
    /// [Fan-out](crate::guide::waiting#fan-out) says.
    /// A wait ends by its deadline, or at most two time limits of a node (half a second each by default) later: the
    /// last attempt begins at the deadline, and the client may have to store its token on a majority.
    /// The caller waits for another holder only: without a majority of the nodes an acquire fails earlier, as
    /// [`quorum_wait`](crate::RedlockBuilder::quorum_wait) says.
    ///
    /// # Errors
    ///
    /// [`AcquireError::kind`] says whether the caller, the operator or the program must act.
    /// The caller holds nothing after an error.
    /// An acquire in work that [runs](crate::Lease::run) under a lease of this client on the same resource fails at
    /// once as [`AlreadyHeld`](crate::AcquireErrorKind::AlreadyHeld), because it would wait for itself.
    /// In a [scope](crate::Scope) that holds the resource, the caller gets another guard of the same lease instead.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime with its timer enabled.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future gives up the place in the queue.
    /// The client releases in the background each key that a node has granted or will grant.
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
    /// let options = AcquireOptions::new()
    ///     .ttl(Duration::from_secs(3))
    ///     .wait(Wait::UpTo(Duration::from_millis(500)));
    /// let guard = redlock.acquire_with("report", options).await?;
    /// # drop(guard);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn acquire_with<K>(
        &self,
        key: K,
        options: AcquireOptions,
    ) -> Result<LockGuard, AcquireError>
    where
        K: TryInto<ResourceKey>,
        K::Error: Into<InvalidKey>,
    {
        let key = key
            .try_into()
            .map_err(|invalid| AcquireError::from(invalid.into()))?;
        self.acquire_keys(key.into(), options, None).await
    }

    /// Acquires one lease on all of `keys`, waiting as long as the client's default wait (5 s) if other callers hold
    /// some of them.
    ///
    /// See [`acquire_all_with`](Self::acquire_all_with).
    ///
    /// # Errors
    ///
    /// As [`acquire_all_with`](Self::acquire_all_with).
    ///
    /// # Panics
    ///
    /// As [`acquire_with`](Self::acquire_with).
    ///
    /// # Cancel safety
    ///
    /// As [`acquire_with`](Self::acquire_with).
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
    /// // A transfer between two accounts, in whatever direction.
    /// let guard = redlock.acquire_all(["account:9", "account:7"]).await?;
    /// assert!(redlock.try_acquire("account:7").await.is_err());
    /// assert_eq!(guard.keys().len(), 2);
    /// guard.release().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn acquire_all<I>(&self, keys: I) -> Result<LockGuard, AcquireError>
    where
        I: IntoIterator,
        I::Item: TryInto<ResourceKey>,
        <I::Item as TryInto<ResourceKey>>::Error: Into<InvalidKey>,
    {
        let keys = ResourceKeys::new(keys)?;
        self.acquire_all_with(keys, AcquireOptions::new()).await
    }

    /// Acquires one lease on all of `keys`, as `options` say: 1 to 16 different keys, granted together or not at all.
    ///
    /// The lease has one deadline and one fencing token.
    /// The token is greater than that of every earlier lease on each of the keys.
    /// A node grants all keys or none, in one step.
    /// So two callers whose sets overlap never each hold half of their keys and wait for the other, in whatever order
    /// they give the keys.
    /// A caller waits while any key of its set is held, and keeps no key while it waits.
    /// So between processes, a caller of a set gets a key that many callers want less often than a caller of that key
    /// alone.
    /// A caller takes its place in the local queues of all its keys at once.
    /// The client serves it in the order in which it came, and a caller that comes later for one of the keys waits
    /// behind it.
    /// The client hands no lease over to or from a caller of several keys.
    /// An extension counts on a node only if the node still has every key.
    ///
    /// # Errors
    ///
    /// As [`acquire_with`](Self::acquire_with); and [`Misuse`](crate::AcquireErrorKind::Misuse) if there is no key or there
    /// are more than 16 different ones.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime with its timer enabled.
    ///
    /// # Cancel safety
    ///
    /// As [`acquire_with`](Self::acquire_with).
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
    /// use redlock_core::{AcquireOptions, ResourceKeys};
    /// use std::time::Duration;
    ///
    /// let accounts = ResourceKeys::new(["account:9", "account:7"])?;
    /// let options = AcquireOptions::new().ttl(Duration::from_secs(3));
    /// let guard = redlock.acquire_all_with(accounts, options).await?;
    /// assert!(redlock.try_acquire("account:9").await.is_err());
    /// # drop(guard);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn acquire_all_with(
        &self,
        keys: ResourceKeys,
        options: AcquireOptions,
    ) -> Result<LockGuard, AcquireError> {
        self.acquire_keys(keys, options, None).await
    }

    /// Acquires one lease on all of `keys`, by itself or as a part of a search for a slot, whose span this is.
    pub(crate) async fn acquire_keys(
        &self,
        keys: ResourceKeys,
        options: AcquireOptions,
        search: Option<&AcquireSpan>,
    ) -> Result<LockGuard, AcquireError> {
        let client = &*self.client;
        let scopes = self.scopes();
        if let Some(scopes) = &scopes {
            match scopes.look(&keys, options.mode) {
                HeldByScopes::Guard(guard) => return Ok(guard),
                HeldByScopes::NotEnough => return Err(scopes.already_held(&keys, options.mode)),
                HeldByScopes::Nothing => {}
            }
        }
        if scope::holds(client.engine.client(), &keys) {
            return Err(AcquireError::already_held());
        }
        client.key_space.check(&keys)?;
        let timing = client.settings.timing_of(&options);
        let timing = timing.map_err(|invalid| AcquireError::option(&invalid))?;
        let wait = self.wait_of(&options);
        let now = client.clock.now();
        let class = class_of(options.class.as_deref(), &keys);
        let has_own_label = options.label.is_some();
        let terms = LeaseTerms {
            is_shared: options.mode == Mode::Shared,
            timing,
            renew: options.renewal.unwrap_or_default() == Renewal::Automatic,
            max_hold: options.max_hold,
            slots: options.slots.as_ref().map(|slots| slots.count),
            fairness: options.fairness.unwrap_or_default(),
        };
        let site = client.site(class, terms, options.label, options.meter);
        let request = AcquireRequest {
            subject: LeaseRequest {
                mode: options.mode,
                keys: keys.clone(),
                place: None,
                site,
            },
            slots: options.slots,
            // Neither a lease on a set nor a shared lease is handed over, nor one whose holder has a label of its own.
            tokens: if keys.is_several() || options.mode == Mode::Shared || has_own_label {
                1
            } else {
                HAND_OVERS + 1
            },
            wait_until: now + wait.duration(),
            quorum_wait: Some(options.quorum_wait.unwrap_or(client.settings.quorum_wait)),
            asked_at: now,
            is_scoped: scopes.is_some(),
            is_part: search.is_some(),
            before: None,
            claim: None,
        };
        let most_waiting = options.max_waiters_per_key;
        let most_waiting = most_waiting.unwrap_or(client.settings.max_waiters_per_key);
        let won = client.win(request, wait, most_waiting, search);
        let won = match &scopes {
            None => won.await,
            Some(scopes) => {
                // In a box of its own, because every acquire has to carry the room that this takes.
                let guard = Box::pin(scopes.until_guard_of(&keys, options.mode));
                let won = select! {
                    biased;
                    guard = guard => return guard.ok_or_else(|| scopes.already_held(&keys, options.mode)),
                    won = won => won,
                };
                // Another part of the scope, on another thread, may have got the lease between the two looks: waiting for
                // it would be a wait for itself.
                if won.is_err()
                    && let HeldByScopes::Guard(guard) = scopes.look(&keys, options.mode)
                {
                    return Ok(guard);
                }
                won
            }
        };
        let (guard, _) = won.map_err(NotWon::into_error)?;
        if !guard.lease().is_held() {
            return Err(AcquireError::expired());
        }
        if let Some(scopes) = &scopes {
            scopes.add(&guard);
        }
        Ok(guard)
    }

    /// Starts the span and the metrics of a search for a slot; `slot` is the first of the slots.
    pub(crate) fn span_of_search(
        &self,
        slot: &ResourceKey,
        options: &AcquireOptions,
    ) -> AcquireSpan {
        let client = &*self.client;
        let class = options.class.as_deref().or_else(|| slot.class());
        client.span(class, false, client.meter.lock(class))
    }

    /// Returns the labels `namespace` and `lock` that the metrics of leases of this class have, for other metrics of the
    /// same leases.
    ///
    /// With the feature `metrics`.
    #[cfg(feature = "metrics")]
    pub fn lock_labels(&self, class: Option<&str>) -> [(&'static str, std::sync::Arc<str>); 2] {
        self.client.meter.lock(class).labels()
    }

    /// Returns the metrics of the terms of an election of this class.
    pub(crate) fn election_meter(&self, class: &str) -> LockMeter {
        self.client.meter.election(class)
    }

    /// Returns how long a node has to answer.
    pub(crate) fn node_timeout(&self) -> std::time::Duration {
        self.client.settings.node_timeout
    }

    /// Returns how long an acquire with these options waits.
    pub(crate) fn wait_of(&self, options: &AcquireOptions) -> Wait {
        options.wait.unwrap_or(self.client.settings.wait)
    }
}

/// How often in a row callers of this process hand a lease over to the next.
///
/// Each acquire reserves a fencing token for each of them.
const HAND_OVERS: u32 = 63;
