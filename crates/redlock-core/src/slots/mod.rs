//! Slots: a limited number of holders at once, each with its own lock.

mod search;

use std::{
    fmt,
    sync::{Arc, atomic::AtomicUsize},
};

use crate::{
    AcquireError, AcquireOptions, InvalidKey, InvalidOption, LockGuard, Mode, Redlock,
    ReleaseError, ResourceKey, Wait,
    engine::NotWon,
    key::{MAX_SLOTS, SlotsOf},
};

/// The slots of a resource: a semaphore over the nodes, which limits the number of holders among all clients.
///
/// Each slot is a lock like any other, `name#0`, `name#1` and so on.
/// A holder has one slot, with its own deadline, renewal and fencing token.
/// So there are never more holders than slots, whichever nodes crash: a slot keeps every promise of a lock.
/// Counting permits on each node would not be safe: of 5 nodes with 2 permits each, the majorities {1, 2, 3}, {1, 4, 5}
/// and {2, 3, 4} use no node more than twice, and are 3 holders.
///
/// All clients must give the same number of slots.
/// A node remembers the number for a time to live after it has last granted or renewed a slot, also to an attempt that
/// failed, and refuses a client that gives another number: that client waits as for another holder, and then gets
/// [`OtherSlots`](crate::AcquireErrorKind::OtherSlots).
/// So a fleet goes from one number to another in a rolling restart: the new replicas get slots a time to live after the
/// last use by the old ones.
/// Clients that give different numbers and begin at the same time can keep each other out for as long as both try.
/// A node that lost its data, or that granted none of the slots that are held, does not know the number.
/// A holder's token is greater than all earlier tokens of the same slot; tokens of different slots cannot be compared.
///
/// An acquire tries up to three slots one after the other: the slot that this handle held last, and others from a random
/// one on.
/// After the third, or a quarter of the time limit of a node, it asks for all slots at once, and takes the first that it
/// gets.
/// It ends by its deadline, or at most five time limits of a node (half a second each by default) later.
/// So a waiting caller has a place in the local queue of each slot.
/// Callers of other processes are in no line: they try again at random.
/// A process hands a slot from caller to caller for up to a quarter of a second, and then leaves it to other processes for
/// 25 ms.
/// If several slots become free at once, the caller may hold more than one for a moment, and the nodes may refuse one
/// attempt of another caller in that moment.
///
/// Cloning it is cheap and returns another handle to the same slots.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use redlock_core::{AcquireErrorKind, Redlock};
///
/// let redlock = Redlock::builder().in_memory_nodes(3).build().await?;
/// let reports = redlock.slots("reports", 2)?;
/// let first = reports.acquire().await?;
/// let second = reports.acquire().await?;
/// assert_ne!(first.slot(), second.slot());
/// let third = reports.try_acquire().await.unwrap_err();
/// assert_eq!(third.kind(), AcquireErrorKind::Contended);
/// first.release().await?;
/// let again = reports.try_acquire().await?.into_guard(); // of the slot's lock
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Slots {
    redlock: Redlock,
    of: SlotsOf,
    // invariant: 1 to MAX_COUNT keys
    keys: Arc<[ResourceKey]>,
    /// The slot that was had last; beyond the others if none was.
    last: Arc<AtomicUsize>,
}

impl Redlock {
    /// Returns `count` slots of a resource: 1 to 64.
    ///
    /// It asks no node.
    ///
    /// # Errors
    ///
    /// The name is not valid, the name is too long with the number of a slot, `count` is 0, or `count` is more than
    /// [`Slots::MAX_COUNT`].
    pub fn slots<K>(&self, name: K, count: usize) -> Result<Slots, InvalidKey>
    where
        K: TryInto<ResourceKey>,
        K::Error: Into<InvalidKey>,
    {
        let name = name.try_into().map_err(Into::into)?;
        if !(1..=Slots::MAX_COUNT).contains(&count) {
            return Err(InvalidKey::slots(count));
        }
        let keys = (0..count).map(|slot| name.part(slot));
        let keys = keys.collect::<Result<_, _>>()?;
        Ok(Slots {
            redlock: self.clone(),
            of: SlotsOf::new(name, count),
            keys,
            last: Arc::new(AtomicUsize::new(count)),
        })
    }
}

impl Slots {
    /// The most slots of a resource.
    pub const MAX_COUNT: usize = MAX_SLOTS;

    /// Acquires a slot, waiting as long as the client's default wait (5 s) if other holders have all slots.
    ///
    /// # Errors
    ///
    /// As [`Redlock::acquire_with`].
    /// If the slots fail for different reasons, an error because of another holder takes precedence over an error
    /// because the caller holds a slot.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime with its timer enabled.
    ///
    /// # Cancel safety
    ///
    /// As [`Redlock::acquire_with`].
    pub async fn acquire(&self) -> Result<SlotGuard, AcquireError> {
        self.acquire_with(AcquireOptions::new()).await
    }

    /// Makes one attempt to acquire a slot: at each slot, if need be.
    ///
    /// # Errors
    ///
    /// As [`acquire`](Self::acquire); [`Contended`](crate::AcquireErrorKind::Contended) at once if other holders have
    /// all slots.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime with its timer enabled.
    ///
    /// # Cancel safety
    ///
    /// As [`Redlock::acquire_with`].
    pub async fn try_acquire(&self) -> Result<SlotGuard, AcquireError> {
        self.acquire_with(AcquireOptions::new().wait(Wait::Never))
            .await
    }

    /// Acquires a slot as `options` say.
    ///
    /// In a [scope](crate::Scope) that holds one of these slots, the caller gets another guard of that slot.
    ///
    /// # Errors
    ///
    /// As [`acquire`](Self::acquire); and [`Misuse`](crate::AcquireErrorKind::Misuse) if the options ask for a
    /// [shared](AcquireOptions::shared) lease.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime with its timer enabled.
    ///
    /// # Cancel safety
    ///
    /// As [`Redlock::acquire_with`].
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
    /// let reports = redlock.slots("reports", 4)?;
    /// let options = AcquireOptions::new().wait(Wait::UpTo(Duration::from_secs(60)));
    /// let slot = reports.acquire_with(options).await?;
    /// # drop(slot);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn acquire_with(&self, options: AcquireOptions) -> Result<SlotGuard, AcquireError> {
        if options.mode == Mode::Shared {
            let why = "who has a slot has it alone: leave `shared` out".to_owned();
            return Err(AcquireError::option(&InvalidOption::new("shared", why)));
        }
        if let Some(again) = self.held_by_scope() {
            return Ok(again);
        }
        let span = self.redlock.span_of_search(&self.keys[0], &options);
        let won = self.search(options, &span).await;
        let won = won.map_err(NotWon::Failed);
        match &won {
            Ok(slot) => span.won(slot.guard.token(), slot.guard.is_held()),
            Err(why) => span.failed(why),
        }
        won.map_err(NotWon::into_error)
    }

    /// Returns the number of the slot whose lock has this key, if there is one.
    pub fn slot_of(&self, key: &ResourceKey) -> Option<usize> {
        self.keys.iter().position(|slot| slot == key)
    }

    /// Returns how many slots there are.
    pub fn count(&self) -> usize {
        self.keys.len()
    }

    fn held_by_scope(&self) -> Option<SlotGuard> {
        let scopes = self.redlock.scopes()?;
        let mut slots = self.keys.iter().enumerate();
        slots.find_map(|(slot, key)| {
            let guard = scopes.guard_of(&key.clone().into(), Mode::Exclusive)?;
            Some(SlotGuard { guard, slot })
        })
    }
}

impl fmt::Debug for Slots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slots")
            .field("count", &self.count())
            .finish_non_exhaustive()
    }
}

/// The holder of a slot; dropping it frees the slot.
///
/// It keeps every promise of a [`LockGuard`].
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
/// let slot = redlock.slots("reports", 4)?.acquire().await?;
/// assert!(slot.slot() < 4);
/// let pages = slot.guard().run(async { 3 }).await?; // dropped if the lease is lost
/// slot.release().await?;
/// # assert_eq!(pages, 3);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[clippy::has_significant_drop]
#[must_use = "dropping the guard frees the slot"]
pub struct SlotGuard {
    guard: LockGuard,
    slot: usize,
}

impl SlotGuard {
    /// Returns the number of the held slot: below [`Slots::count`](crate::Slots::count).
    pub fn slot(&self) -> usize {
        self.slot
    }

    /// Returns the guard of the slot's lock, with its lease and its token.
    pub fn guard(&self) -> &LockGuard {
        &self.guard
    }

    /// Returns the guard of the slot's lock, which frees the slot when it is dropped.
    pub fn into_guard(self) -> LockGuard {
        self.guard
    }

    /// Frees the slot, as [`LockGuard::release`] does.
    ///
    /// # Errors
    ///
    /// As [`LockGuard::release`].
    ///
    /// # Cancel safety
    ///
    /// As [`LockGuard::release`].
    pub async fn release(self) -> Result<(), ReleaseError> {
        self.guard.release().await
    }
}
