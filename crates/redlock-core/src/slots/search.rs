//! The search for a slot that is free.

use std::{
    hash::{BuildHasher, RandomState},
    sync::atomic::Ordering,
};

use futures_util::{FutureExt, future::select_all};
use tokio::time::Instant;

use super::{SlotGuard, Slots};
use crate::{
    AcquireError, AcquireErrorKind, AcquireOptions, Wait, guard::acquire_span::AcquireSpan,
};

impl Slots {
    /// Looks for a slot that is free, and waits for one as long as the options say.
    pub(super) async fn search(
        &self,
        options: AcquireOptions,
        span: &AcquireSpan,
    ) -> Result<SlotGuard, AcquireError> {
        let order = self.order();
        let began = Instant::now();
        let (mut error, mut is_of_all, mut tried) = (None, false, 0);
        for slot in order.iter().take(TRIES) {
            if tried > 0 && began.elapsed() > self.redlock.node_timeout() / 4 {
                break; // Nodes are slow.
            }
            tried += 1;
            let options = options.clone().wait(Wait::Never);
            match self.take(*slot, options, span).await {
                Ok(guard) => return Ok(guard),
                Err(refused) => {
                    is_of_all = !is_of_the_slot(&refused);
                    keep(&mut error, refused);
                    if is_of_all {
                        break;
                    }
                }
            }
        }
        let (others, options) = match self.redlock.wait_of(&options) {
            // A caller that makes one attempt has made it at each of the slots.
            Wait::Never if is_of_all => (&order[..0], options),
            Wait::Never => (&order[tried..], options),
            Wait::UpTo(longest) => {
                let left = Wait::UpTo(longest.saturating_sub(began.elapsed()));
                (&order[..], options.wait(left))
            }
        };
        let take = |slot: &usize| self.take(*slot, options.clone(), span).boxed();
        let mut takes: Vec<_> = others.iter().map(take).collect();
        while !takes.is_empty() {
            let (taken, _, rest) = select_all(takes).await;
            match taken {
                Ok(guard) => return Ok(guard),
                Err(refused) => keep(&mut error, refused),
            }
            takes = rest;
        }
        // invariant: there is a slot
        Err(error.unwrap_or_else(AcquireError::contended_locally))
    }

    async fn take(
        &self,
        slot: usize,
        mut options: AcquireOptions,
        span: &AcquireSpan,
    ) -> Result<SlotGuard, AcquireError> {
        options.slots = Some(self.of.clone());
        let key = self.keys[slot].clone().into();
        let taken = self.redlock.acquire_keys(key, options, Some(span));
        let guard = taken.await?;
        self.last.store(slot, Ordering::Relaxed);
        Ok(SlotGuard { guard, slot })
    }

    /// Returns all slots in the order in which to try them: the last, and then all others from a random one on.
    fn order(&self) -> Vec<usize> {
        let (count, last) = (self.count(), self.last.load(Ordering::Relaxed));
        // Nothing secret depends on it.
        let random = RandomState::new().hash_one(last);
        let first = usize::try_from(random % 64).unwrap_or(0) % count;
        let others = (first..first + count).map(|slot| slot % count);
        let others = others.filter(|slot| *slot != last);
        let last = (last < count).then_some(last);
        last.into_iter().chain(others).collect()
    }
}

/// Returns whether another slot may be had all the same.
fn is_of_the_slot(refused: &AcquireError) -> bool {
    rank(refused) > 0
}

/// Keeps the error that tells most: another number goes before that others hold a slot, and that before that the caller
/// does.
fn keep(error: &mut Option<AcquireError>, refused: AcquireError) {
    let tells_more = error
        .as_ref()
        .is_some_and(|error| rank(error) > rank(&refused));
    if !(tells_more && is_of_the_slot(&refused)) {
        *error = Some(refused);
    }
}

/// Returns how much an error tells of one slot among several; 0 for an error that is of all.
fn rank(refused: &AcquireError) -> u8 {
    match refused.kind() {
        AcquireErrorKind::OtherSlots => 3,
        AcquireErrorKind::Contended => 2,
        AcquireErrorKind::AlreadyHeld | AcquireErrorKind::Deadlock => 1,
        _ => 0,
    }
}

/// How many slots are tried one after the other, before all are.
const TRIES: usize = 3;
