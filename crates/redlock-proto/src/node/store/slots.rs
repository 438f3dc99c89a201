//! The numbers of slots that a node remembers.

use std::{collections::HashMap, time::Duration};

use super::Store;
use crate::{KeySet, LockMode, NodeKey, NodeTime, Reply, Verb};

type Remembered = HashMap<NodeKey, (u8, u64)>;

impl Store {
    /// Returns the number of slots that is remembered under this key at `time`, and for how many milliseconds.
    pub fn slots(&self, key: &NodeKey, time: NodeTime) -> Option<(u8, u64)> {
        let now = time.as_millis();
        let (count, until) = self.slots.get(key).copied()?;
        (until >= now).then(|| (count, (until - now).max(1)))
    }
}

/// Forgets the number of slots of these keys if its time is over.
pub(super) fn forget(remembered: &mut Remembered, (keys, mode): (&KeySet, LockMode), now: u64) {
    if let Some(slots) = keys.slots_in(mode)
        && let Some((_, until)) = remembered.get(slots.key())
        && *until < now
    {
        remembered.remove(slots.key());
    }
}

/// Returns what to answer where others give the lock another number of slots.
pub(super) fn others(
    remembered: &Remembered,
    (keys, mode): (&KeySet, LockMode),
    now: u64,
) -> Option<Reply> {
    let slots = keys.slots_in(mode)?;
    let (count, until) = *remembered.get(slots.key())?;
    (count != slots.count()).then(|| Reply::OtherSlots {
        count,
        remaining: Duration::from_millis(until.saturating_sub(now).max(1)),
    })
}

/// Remembers the number of slots of these keys up to this moment at least, unless others give another.
pub(super) fn keep(remembered: &mut Remembered, (keys, mode): (&KeySet, LockMode), until: u64) {
    let Some(slots) = keys.slots_in(mode) else {
        return;
    };
    let (key, count) = (slots.key(), slots.count());
    let (kept, end) = remembered.entry(key.clone()).or_insert((count, until));
    if *kept == count {
        *end = until.max(*end);
    }
}

/// Returns the verb without its wish if the keys are a slot: no owner shares a slot, so none has to be kept out.
pub(super) fn without_wish(verb: Verb, mode: LockMode, keys: &KeySet) -> Verb {
    match verb {
        Verb::Acquire {
            ttl,
            proposal,
            block,
            ..
        } if keys.slots_in(mode).is_some() => Verb::Acquire {
            ttl,
            proposal,
            block,
            wish: None,
            line: None,
        },
        verb => verb,
    }
}
