//! A key that a node has, and its owners.

use std::time::Duration;

use super::millis;
use crate::{HolderLabel, LockMode, OwnerId, Verb};

/// The owners of a key, and up to when each has it: in milliseconds since the epoch, up to and in that one.
#[derive(Clone, Debug)]
pub(super) enum StoredKey {
    /// One exclusive owner.
    Held { owner: OwnerId, until: u64 },
    /// Owners that share it, or only the wish of an owner that waits for it in exclusive mode.
    Shared(SharedOwners),
}

#[derive(Clone, Debug, Default)]
pub(super) struct SharedOwners {
    holders: Vec<(OwnerId, u64)>,
    /// The owner that has it exclusively, apart from a shared lease of its own that this one upgrades.
    upgrade: Option<(OwnerId, u64)>,
    /// Up to when no other owner comes to share it, because an owner waits for it in exclusive mode.
    wish: Option<u64>,
}

/// What a request wants with its keys.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    pub(super) verb: Verb,
    pub(super) mode: LockMode,
    pub(super) owner: OwnerId,
    pub(super) now: u64,
    /// Whether it is an acquire for which a transaction may have taken the key.
    pub(super) may_have_it: bool,
}

impl StoredKey {
    /// The most owners that share a key.
    pub(super) const MOST: usize = 64;

    /// Returns up to when the key is there.
    pub(super) fn until(&self) -> u64 {
        match self {
            Self::Held { until, .. } => *until,
            Self::Shared(sharing) => sharing.latest(0).max(sharing.wish).unwrap_or(0),
        }
    }

    /// Returns the exclusive owner.
    pub(super) const fn owner(&self) -> Option<OwnerId> {
        match self {
            Self::Held { owner, .. } => Some(*owner),
            Self::Shared(_) => None,
        }
    }

    /// Returns the owners whose time is not over, and the mode of each.
    pub(super) fn holders(&self, now: u64) -> impl Iterator<Item = (OwnerId, LockMode)> {
        let (alone, sharing) = match self {
            Self::Held { owner, until } => (Some((*owner, *until)), None),
            Self::Shared(sharing) => (sharing.upgrade, Some(sharing)),
        };
        let alone = alone
            .into_iter()
            .map(|holder| (holder, LockMode::Exclusive));
        let shared = sharing.into_iter().flat_map(|sharing| &sharing.holders);
        let all = alone.chain(shared.map(|holder| (*holder, LockMode::Shared)));
        all.filter(move |((_, until), _)| *until >= now)
            .map(|((owner, _), mode)| (owner, mode))
    }

    /// Returns the public label of the exclusive owner.
    pub(super) fn label(&self) -> Option<HolderLabel> {
        self.owner().and_then(|owner| owner.label())
    }

    /// Returns whether the key is in the shared state, also if only a wish is left of it.
    pub(super) const fn is_shared(&self) -> bool {
        matches!(self, Self::Shared(_))
    }

    /// Returns whether the request's owner has it, in a mode that is enough.
    pub(super) fn is_owned(&self, wanted: &Wanted) -> bool {
        match (self, wanted.mode) {
            (Self::Held { owner, .. }, _) => *owner == wanted.owner,
            (Self::Shared(_), LockMode::Exclusive) => false,
            (Self::Shared(sharing), LockMode::Shared) => sharing.of(wanted).is_some(),
            (Self::Shared(sharing), LockMode::Upgrade { .. }) => sharing.upgrades(wanted).is_some(),
        }
    }

    /// Returns up to when other owners are in the way of a request, if they are; an acquire is in its own way too, unless
    /// a transaction may have taken the key.
    pub(super) fn in_the_way(&self, wanted: &Wanted) -> Option<u64> {
        let takes = matches!(wanted.verb, Verb::Acquire { .. });
        match (self, wanted.mode) {
            (Self::Held { owner, .. }, _) if wanted.may_have_it && *owner == wanted.owner => None,
            (Self::Held { owner, until }, _) => (takes || *owner != wanted.owner).then_some(*until),
            (Self::Shared(sharing), LockMode::Exclusive) => match wanted.verb {
                // An owner that waits is not kept waiting by its own wish.
                Verb::Acquire { wish: Some(_), .. } => sharing.latest(wanted.now),
                _ => Some(self.until()),
            },
            (Self::Shared(sharing), LockMode::Shared) => {
                let own = sharing.of(wanted);
                let alone = sharing.upgrade.map(|(_, until)| until);
                let alone = || alone.filter(|until| *until >= wanted.now);
                match wanted.verb {
                    Verb::Acquire { .. } => own
                        .or_else(alone)
                        .or_else(|| sharing.wish.filter(|until| *until >= wanted.now))
                        .or_else(|| sharing.full_until(wanted.now)),
                    Verb::Heal { .. } if own.is_none() => {
                        alone().or_else(|| sharing.full_until(wanted.now))
                    }
                    _ => None,
                }
            }
            (Self::Shared(sharing), LockMode::Upgrade { of }) => {
                if !takes && sharing.upgrades(wanted).is_some() {
                    return None;
                }
                let of = of.with_label_of(&wanted.owner);
                let holders = sharing.holders.iter().copied();
                let others = holders.filter(|(owner, _)| *owner != of);
                let ends = others.chain(sharing.upgrade).map(|(_, until)| until);
                ends.filter(|until| *until >= wanted.now).max()
            }
        }
    }

    /// Returns the key with the request's owner added (shared) or as its only owner (exclusive), for `ttl`.
    pub(super) fn taken(before: Option<Self>, wanted: &Wanted, ttl: Duration) -> Self {
        let (owner, until) = (wanted.owner, wanted.now + millis(ttl).max(1));
        let alone = Self::Held { owner, until };
        let mut sharing = match before {
            Some(Self::Shared(sharing)) => sharing.without(wanted),
            _ => SharedOwners::default(),
        };
        match wanted.mode {
            LockMode::Exclusive => return alone,
            LockMode::Shared => sharing.holders.push((owner, until)),
            LockMode::Upgrade { .. } => sharing.upgrade = Some((owner, until)),
        }
        sharing.into_key().unwrap_or(alone)
    }

    /// Returns what is left of the key once the request's owner has released it.
    pub(super) fn released(self, wanted: &Wanted) -> Option<Self> {
        match self {
            Self::Held { owner, .. } => (owner != wanted.owner).then_some(self),
            Self::Shared(sharing)
                if wanted.mode == LockMode::Exclusive || !sharing.names(wanted.owner) =>
            {
                Some(Self::Shared(sharing))
            }
            Self::Shared(sharing) => {
                let left = sharing.without(wanted);
                left.lasting_until(wanted.now + 1).into_key()
            }
        }
    }

    /// Keeps other owners from coming to share the key for `for_long`, because an owner waits for it in exclusive mode.
    pub(super) fn wish(&mut self, wanted: &Wanted, for_long: Duration) {
        if let Self::Shared(sharing) = self {
            let own =
                |(owner, until): &(OwnerId, u64)| *owner == wanted.owner && *until >= wanted.now;
            let (shared, upgrade) = (sharing.holders.iter().copied().find(own), sharing.upgrade);
            let mut left = std::mem::take(sharing).without(wanted);
            left.holders.extend(shared);
            left.upgrade = left.upgrade.or_else(|| upgrade.filter(own));
            left.wish = left.wish.max(Some(wanted.now + millis(for_long).max(1)));
            // invariant: `left` has a wish, so it is a key
            if let Some(left) = left.into_key() {
                *self = left;
            }
        }
    }

    /// Returns the value under which servers have it.
    pub(super) fn to_wire(&self) -> String {
        match self {
            Self::Held { owner, .. } => owner.to_wire(),
            Self::Shared(sharing) => {
                let holders = sharing.holders.iter();
                let holders =
                    holders.map(|(owner, until)| format!("{until} {}\n", owner.to_wire()));
                let upgrade = sharing
                    .upgrade
                    .map(|(owner, until)| format!("{until} +{}\n", owner.to_wire()));
                let wish = sharing
                    .wish
                    .map(|until| format!("{until} {}\n", "-".repeat(32)));
                let lines: String = holders.chain(upgrade).chain(wish).collect();
                format!("shared\n{lines}")
            }
        }
    }
}

impl SharedOwners {
    /// Returns the key, if it has an owner or a wish.
    ///
    /// If the upgraded owner is the only holder, the key becomes an ordinary exclusive key.
    fn into_key(self) -> Option<StoredKey> {
        match self.upgrade {
            Some((owner, until)) if self.holders.is_empty() => {
                Some(StoredKey::Held { owner, until })
            }
            None if self.holders.is_empty() && self.wish.is_none() => None,
            _ => Some(StoredKey::Shared(self)),
        }
    }

    /// Returns all owners, and up to when each has the key.
    fn all(&self) -> impl Iterator<Item = (OwnerId, u64)> {
        self.holders.iter().copied().chain(self.upgrade)
    }

    /// Returns up to when the request's owner has the key, exclusive or shared.
    fn of(&self, wanted: &Wanted) -> Option<u64> {
        let mut all = self.all();
        let own = all.find(|(owner, until)| *owner == wanted.owner && *until >= wanted.now);
        own.map(|(_, until)| until)
    }

    /// Returns up to when the request's owner has the key exclusively, by an upgrade.
    fn upgrades(&self, wanted: &Wanted) -> Option<u64> {
        let own = self.upgrade.filter(|(owner, _)| *owner == wanted.owner);
        let until = own.map(|(_, until)| until);
        until.filter(|until| *until >= wanted.now)
    }

    /// Returns whether `owner` is among the owners, perhaps with its time over.
    fn names(&self, owner: OwnerId) -> bool {
        self.all().any(|(holder, _)| holder == owner)
    }

    /// Returns up to when the last owner has the key whose time is not over.
    fn latest(&self, now: u64) -> Option<u64> {
        let ends = self.all().map(|(_, until)| until);
        ends.filter(|until| *until >= now).max()
    }

    /// Returns when the first of the sharers leaves, if no other owner can join them before.
    fn full_until(&self, now: u64) -> Option<u64> {
        let ends = self.holders.iter().map(|(_, until)| *until);
        let ends = ends.filter(|until| *until >= now);
        (ends.clone().count() >= StoredKey::MOST).then(|| ends.min())?
    }

    /// Makes all last until then at least: servers differ on a key that is written to end in the present millisecond.
    fn lasting_until(mut self, least: u64) -> Self {
        let ends = self.holders.iter_mut().map(|(_, until)| until);
        let upgrade = self.upgrade.as_mut().map(|(_, until)| until);
        for until in ends.chain(upgrade).chain(self.wish.as_mut()) {
            *until = (*until).max(least);
        }
        self
    }

    /// Removes the request's owner and all expired owners.
    fn without(mut self, wanted: &Wanted) -> Self {
        let stays =
            |(owner, until): &(OwnerId, u64)| *owner != wanted.owner && *until >= wanted.now;
        self.holders.retain(stays);
        self.upgrade = self.upgrade.filter(stays);
        self.wish = self.wish.filter(|until| *until >= wanted.now);
        self
    }
}
