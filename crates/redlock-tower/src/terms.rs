use std::{fmt, sync::Arc, time::Duration};

use http::{Request, request::Parts};
use redlock_core::{AcquireOptions, LockGuard, Redlock, ResourceKeys, SlotGuard, Wait};

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
        Self { slots, ..self }
    }

    /// Acquires what a request is to hold, as `options` say, or else these terms.
    pub(crate) async fn acquire(
        &self,
        keys: ResourceKeys,
        options: AcquireOptions,
    ) -> Result<LockGuard, Rejection> {
        let options = options.or(&self.options);
        let acquired = match (self.slots, keys.as_slice()) {
            (None, _) => self.redlock.acquire_all_with(keys, options).await,
            (Some(count), [key]) => {
                let slots = self.redlock.slots(key, count);
                let slots = slots.map_err(|invalid| Rejection::from(KeyError::from(invalid)))?;
                slots.acquire_with(options).await.map(SlotGuard::into_guard)
            }
            (Some(_), _) => return Err(KeyError::misuse(ONE_KEY).into()),
        };
        acquired.map_err(|error| Rejection::acquire(error, &self.pace))
    }

    /// Returns these terms, but for what `options` say.
    pub(crate) fn with(&self, options: AcquireOptions) -> Self {
        Self {
            options: options.or(&self.options),
            ..self.clone()
        }
    }
}

/// What a layer asks of the head of each request, in the place of what it has for all of them.
#[derive(Clone, Default)]
pub(crate) struct PerRequest {
    pub(crate) wait: Option<Arc<Asked<Wait>>>,
    pub(crate) ttl: Option<Arc<Asked<Duration>>>,
}

pub(crate) type Asked<T> = dyn Fn(&Parts) -> Option<T> + Send + Sync;

impl PerRequest {
    /// Returns how `request` is locked; what nobody says is left out.
    pub(crate) fn options<B>(&self, request: Request<B>) -> (AcquireOptions, Request<B>) {
        let mut options = AcquireOptions::new();
        if self.wait.is_none() && self.ttl.is_none() {
            return (options, request);
        }
        let (head, body) = request.into_parts();
        if let Some(wait) = self.wait.as_ref().and_then(|wait| wait(&head)) {
            options = options.wait(wait);
        }
        if let Some(ttl) = self.ttl.as_ref().and_then(|ttl| ttl(&head)) {
            options = options.ttl(ttl);
        }
        (options, Request::from_parts(head, body))
    }
}

impl fmt::Debug for PerRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PerRequest")
            .field("wait", &self.wait.is_some())
            .field("ttl", &self.ttl.is_some())
            .finish()
    }
}

const ONE_KEY: &str = "a layer with slots locks one key of a request, and it names several";
