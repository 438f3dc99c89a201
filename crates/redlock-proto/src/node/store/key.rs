//! A key that a node has, and who has it.

use std::time::Duration;

use super::millis;
use crate::{HolderLabel, Mode, OwnerId, Verb};

/// Who has a key, and up to when: in milliseconds since the epoch, up to and in that one.
#[derive(Clone, Debug)]
pub(super) enum Key {
    /// One alone.
    Held { owner: OwnerId, until: u64 },
    /// Some who share it, or nobody any more, and somebody waits to have it alone.
    Shared(Sharing),
}

#[derive(Clone, Debug, Default)]
pub(super) struct Sharing {
    holders: Vec<(OwnerId, u64)>,
    /// Up to when nobody else comes to share it, because somebody waits to have it alone.
    wish: Option<u64>,
}

/// What a request wants with its keys.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    pub(super) verb: Verb,
    pub(super) mode: Mode,
    pub(super) owner: OwnerId,
    pub(super) now: u64,
}

impl Key {
    /// The most who share a key.
    pub(super) const MOST: usize = 64;

    /// Returns up to when the key is there.
    pub(super) fn until(&self) -> u64 {
        match self {
            Self::Held { until, .. } => *until,
            Self::Shared(sharing) => sharing.latest(0).max(sharing.wish).unwrap_or(0),
        }
    }

    /// Returns who has it alone.
    pub(super) const fn owner(&self) -> Option<OwnerId> {
        match self {
            Self::Held { owner, .. } => Some(*owner),
            Self::Shared(_) => None,
        }
    }

    /// Returns those who have it, and whose time is not over.
    pub(super) fn holders(&self, now: u64) -> impl Iterator<Item = (OwnerId, Mode)> {
        let (alone, sharing) = match self {
            Self::Held { owner, until } => (Some((*owner, *until)), None),
            Self::Shared(sharing) => (None, Some(sharing)),
        };
        let alone = alone.into_iter().map(|holder| (holder, Mode::Exclusive));
        let shared = sharing.into_iter().flat_map(|sharing| &sharing.holders);
        let all = alone.chain(shared.map(|holder| (*holder, Mode::Shared)));
        all.filter(move |((_, until), _)| *until >= now)
            .map(|((owner, _), mode)| (owner, mode))
    }

    /// Returns what is told of who has it alone.
    pub(super) fn label(&self) -> Option<HolderLabel> {
        self.owner().and_then(|owner| owner.label())
    }

    /// Returns whether it is shared, as somebody sees it who wants it alone.
    pub(super) const fn is_shared(&self) -> bool {
        matches!(self, Self::Shared(_))
    }

    /// Returns whether the request's owner has it, in a mode that is enough.
    pub(super) fn is_owned(&self, wanted: &Wanted) -> bool {
        match (self, wanted.mode) {
            (Self::Held { owner, .. }, _) => *owner == wanted.owner,
            (Self::Shared(_), Mode::Exclusive) => false,
            (Self::Shared(sharing), Mode::Shared) => sharing.of(wanted).is_some(),
        }
    }

    /// Returns up to when others are in the way of a request, if they are; an acquire is in its own way too.
    pub(super) fn in_the_way(&self, wanted: &Wanted) -> Option<u64> {
        let takes = matches!(wanted.verb, Verb::Acquire { .. });
        match (self, wanted.mode) {
            (Self::Held { owner, until }, _) => (takes || *owner != wanted.owner).then_some(*until),
            (Self::Shared(sharing), Mode::Exclusive) => match wanted.verb {
                // Who waits is not kept waiting by its own wish.
                Verb::Acquire { wish: Some(_), .. } => sharing.latest(wanted.now),
                _ => Some(self.until()),
            },
            (Self::Shared(sharing), Mode::Shared) => {
                let own = sharing.of(wanted);
                match wanted.verb {
                    Verb::Acquire { .. } => own
                        .or_else(|| sharing.wish.filter(|until| *until >= wanted.now))
                        .or_else(|| sharing.full_until(wanted.now)),
                    Verb::Heal { .. } if own.is_none() => sharing.full_until(wanted.now),
                    _ => None,
                }
            }
        }
    }

    /// Returns it in the hands of the request's owner too, or alone, for so long.
    pub(super) fn taken(before: Option<Self>, wanted: &Wanted, ttl: Duration) -> Self {
        let (owner, until) = (wanted.owner, wanted.now + millis(ttl).max(1));
        match wanted.mode {
            Mode::Exclusive => Self::Held { owner, until },
            Mode::Shared => {
                let mut sharing = match before {
                    Some(Self::Shared(sharing)) => sharing.without(wanted),
                    _ => Sharing::default(),
                };
                sharing.holders.push((owner, until));
                Self::Shared(sharing)
            }
        }
    }

    /// Returns what is left of it once its owner has let it go.
    pub(super) fn released(self, wanted: &Wanted) -> Option<Self> {
        match self {
            Self::Held { owner, .. } => (owner != wanted.owner).then_some(self),
            Self::Shared(sharing)
                if wanted.mode == Mode::Exclusive || !sharing.names(wanted.owner) =>
            {
                Some(Self::Shared(sharing))
            }
            Self::Shared(sharing) => {
                let left = sharing.without(wanted);
                let is_over = left.holders.is_empty() && left.wish.is_none();
                (!is_over).then_some(Self::Shared(left))
            }
        }
    }

    /// Lets nobody else come to share it for so long, because somebody waits to have it alone.
    pub(super) fn wish(&mut self, wanted: &Wanted, for_long: Duration) {
        if let Self::Shared(sharing) = self {
            let own = sharing.of(wanted);
            let mut left = std::mem::take(sharing).without(wanted);
            left.holders.extend(own.map(|until| (wanted.owner, until)));
            left.wish = left.wish.max(Some(wanted.now + millis(for_long).max(1)));
            *sharing = left;
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
                let wish = sharing
                    .wish
                    .map(|until| format!("{until} {}\n", "-".repeat(32)));
                let lines: String = holders.chain(wish).collect();
                format!("shared\n{lines}")
            }
        }
    }
}

impl Sharing {
    /// Returns up to when the request's owner is among those who share it.
    fn of(&self, wanted: &Wanted) -> Option<u64> {
        let own = self
            .holders
            .iter()
            .find(|(owner, _)| *owner == wanted.owner);
        let until = own.map(|(_, until)| *until);
        until.filter(|until| *until >= wanted.now)
    }

    /// Returns whether it was among them, perhaps until its time was over.
    fn names(&self, owner: OwnerId) -> bool {
        self.holders.iter().any(|(holder, _)| *holder == owner)
    }

    /// Returns up to when the last of those shares it whose time is not over.
    fn latest(&self, now: u64) -> Option<u64> {
        let ends = self.holders.iter().map(|(_, until)| *until);
        ends.filter(|until| *until >= now).max()
    }

    /// Returns when one of those leaves, if there cannot be more.
    fn full_until(&self, now: u64) -> Option<u64> {
        let ends = self.holders.iter().map(|(_, until)| *until);
        let ends = ends.filter(|until| *until >= now);
        (ends.clone().count() >= Key::MOST).then(|| ends.min())?
    }

    /// Returns the same without the request's owner, and without those whose time is over.
    fn without(mut self, wanted: &Wanted) -> Self {
        let stays =
            |(owner, until): &(OwnerId, u64)| *owner != wanted.owner && *until >= wanted.now;
        self.holders.retain(stays);
        self.wish = self.wish.filter(|until| *until >= wanted.now);
        self
    }
}
