use std::collections::VecDeque;

use super::Ticket;

/// The callers of one key, in order.
///
/// The first one has its place here: most queues never have another, and a client keeps a queue for each lease.
#[derive(Debug, Default)]
pub(super) struct Places {
    first: Option<Ticket>,
    // invariant: no caller is behind if none is first
    #[expect(
        clippy::box_collection,
        reason = "a quarter of its size, in each queue"
    )]
    behind: Option<Box<VecDeque<Ticket>>>,
}

impl Places {
    pub(super) fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    pub(super) fn len(&self) -> usize {
        let behind = self.behind.as_ref().map_or(0, |behind| behind.len());
        usize::from(self.first.is_some()) + behind
    }

    pub(super) fn front(&self) -> Option<&Ticket> {
        self.first.as_ref()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Ticket> {
        self.first
            .iter()
            .chain(self.behind.iter().flat_map(|behind| behind.iter()))
    }

    /// Takes a place before the caller that has the place `at` now, or behind all if there is none.
    pub(super) fn insert(&mut self, at: usize, ticket: Ticket) {
        let moved = match at {
            0 => self.first.replace(ticket),
            _ => Some(ticket),
        };
        if let Some(moved) = moved {
            let behind = self.behind.get_or_insert_default();
            behind.insert(at.saturating_sub(1), moved);
        }
    }

    /// Gives up the place `at`.
    pub(super) fn remove(&mut self, at: usize) {
        let behind = self.behind.as_mut();
        match at {
            0 => self.first = behind.and_then(|behind| behind.pop_front()),
            _ => _ = behind.and_then(|behind| behind.remove(at - 1)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZero;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// The same as a queue that is all in one place, whatever comes and goes.
        #[test]
        fn callers_keep_their_order(steps in prop::collection::vec((any::<bool>(), 0usize..9), 0..60)) {
            let (mut places, mut deque) = (Places::default(), VecDeque::new());
            for ((comes, at), number) in steps.into_iter().zip(1..) {
                if comes {
                    let at = at.min(deque.len());
                    let ticket = Ticket(NonZero::new(number).unwrap());
                    places.insert(at, ticket);
                    deque.insert(at, ticket);
                } else if at < deque.len() {
                    places.remove(at);
                    deque.remove(at);
                }
                prop_assert!(places.iter().eq(&deque));
                prop_assert_eq!((places.front(), places.len()), (deque.front(), deque.len()));
                prop_assert_eq!(places.is_empty(), deque.is_empty());
            }
        }
    }
}
