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
