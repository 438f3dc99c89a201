use std::sync::Arc;

use http::request::Parts;
use redlock_core::{
    AcquireOptions, LockGuard, Redlock, ResourceKey, ResourceKeys, SlotGuard, Slots,
};

use crate::{KeyError, OnLost, Rejection, pace::Pace};

/// How a layer locks.
#[derive(Clone, Debug)]
pub(crate) struct Terms {
    pub(crate) redlock: Redlock,
    pub(crate) options: AcquireOptions,
    pub(crate) on_lost: OnLost,
    /// How many requests may hold a key at once, if not one.
    slots: Option<usize>,
    /// That of all its requests.
    pub(crate) pace: Arc<Pace>,
}

impl Terms {
    pub(crate) fn new(redlock: Redlock, options: AcquireOptions, on_lost: OnLost) -> Self {
        Self {
            redlock,
            options,
            on_lost,
            slots: None,
            pace: Arc::default(),
        }
    }

    /// Returns these terms, with so many slots for each key.
    pub(crate) fn with_slots(self, slots: Option<usize>) -> Self {
        Self {
            slots,
            pace: Arc::new(Pace::of_slots(slots.unwrap_or(1))),
            ..self
        }
    }

    /// Acquires what a request is to hold, as `options` say, or else these terms.
    pub(crate) async fn acquire(
        &self,
        keys: ResourceKeys,
        options: AcquireOptions,
    ) -> Result<LockGuard, Rejection> {
        // A scope around the layer may end with the head of the response, and its requests must not share a lock.
        let options = options.or(&self.options).outside_scopes();
        let acquired = match self.slots_of(&keys)? {
            None => self.redlock.acquire_all_with(keys, options).await,
            Some(slots) => {
                // In a box of its own, because every request has to carry the room that this takes.
                let acquired = Box::pin(slots.acquire_with(options)).await;
                acquired.map(SlotGuard::into_guard)
            }
        };
        acquired.map_err(|error| Rejection::acquire(error, &self.pace))
    }

    /// Returns whether a lease on these is what a request for `keys` is to hold.
    pub(crate) fn are_met_by(&self, held: &[ResourceKey], keys: &ResourceKeys) -> bool {
        match self.slots_of(keys) {
            Ok(None) => keys.iter().all(|key| held.contains(key)),
            Ok(Some(slots)) => held.iter().any(|key| slots.slot_of(key).is_some()),
            Err(_) => false,
        }
    }

    /// Returns the slots of what a request names, if there are any.
    fn slots_of(&self, keys: &ResourceKeys) -> Result<Option<Slots>, KeyError> {
        let Some(count) = self.slots else {
            return Ok(None);
        };
        match keys.as_slice() {
            [key] => Ok(Some(self.redlock.slots(key, count)?)),
            _ => Err(KeyError::misuse(ONE_KEY)),
        }
    }

    /// Returns these terms, but for what `options` say.
    pub(crate) fn with(&self, options: AcquireOptions) -> Self {
        Self {
            options: options.or(&self.options),
            ..self.clone()
        }
    }
}

/// Names the options for a request by its head.
pub(crate) type OptionsOfHead = dyn Fn(&Parts) -> AcquireOptions + Send + Sync;

const ONE_KEY: &str = "a layer with slots locks one key of a request, and it names several";
