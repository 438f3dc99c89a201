use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    hash::Hash,
};

use super::Ticket;

/// The wait graph: the callers that hold turns while they wait for another, as far as they have said so.
#[derive(Debug)]
pub(super) struct WaitGraph<K> {
    callers: BTreeMap<Ticket, Caller<K>>,
}

#[derive(Debug)]
struct Caller<K> {
    wanted: Vec<K>,
    /// The places that it keeps until it has what it wants, or gives up.
    held: Vec<Ticket>,
}

impl<K: Clone + Eq + Hash> WaitGraph<K> {
    pub(super) const fn new() -> Self {
        Self {
            callers: BTreeMap::new(),
        }
    }

    /// Notes what a caller wants and holds, if it holds anything.
    pub(super) fn insert(&mut self, ticket: Ticket, wanted: &[K], held: Vec<Ticket>) {
        if !held.is_empty() {
            let wanted = wanted.to_vec();
            self.callers.insert(ticket, Caller { wanted, held });
        }
    }

    pub(super) fn remove(&mut self, ticket: Ticket) {
        self.callers.remove(&ticket);
    }

    /// Returns what this caller wants, if it holds anything.
    pub(super) fn wanted(&self, ticket: Ticket) -> Option<&[K]> {
        let caller = self.callers.get(&ticket)?;
        Some(&caller.wanted)
    }

    /// Makes a search for the callers that wait, directly or through others, for one of the places `held`.
    ///
    /// A caller that waits for a place waits for the callers ahead of it.
    /// `ahead` returns these, each place of a queue once.
    /// It also waits for whatever the caller that keeps the place waits for meanwhile.
    /// `waits` says of a caller that keeps places whether it waits for the keys that it wants.
    pub(super) fn search<'a, F>(
        &self,
        held: &'a [Ticket],
        waits: impl Fn(Ticket, &[K]) -> bool,
        ahead: F,
    ) -> Search<'a, K, F>
    where
        F: Fn(Ticket, &mut HashMap<K, usize>) -> Vec<Ticket>,
    {
        let mut keepers: BTreeMap<Ticket, Vec<Ticket>> = BTreeMap::new();
        let callers = self.callers.iter();
        for (ticket, caller) in callers.filter(|(ticket, caller)| waits(**ticket, &caller.wanted)) {
            for held in &caller.held {
                keepers.entry(*held).or_default().push(*ticket);
            }
        }
        Search {
            held,
            ahead,
            keepers,
            seen: BTreeSet::new(),
            looked_at: HashMap::new(),
        }
    }
}

/// A search for the callers that wait for some places.
#[derive(Debug)]
pub(super) struct Search<'a, K, F> {
    held: &'a [Ticket],
    ahead: F,
    /// The callers that keep a place while they wait for another.
    keepers: BTreeMap<Ticket, Vec<Ticket>>,
    /// The callers that do not wait for any of them.
    seen: BTreeSet<Ticket>,
    /// How many places of each queue are among them, from the first on.
    looked_at: HashMap<K, usize>,
}

impl<K, F: Fn(Ticket, &mut HashMap<K, usize>) -> Vec<Ticket>> Search<'_, K, F> {
    /// Returns whether this one does.
    pub(super) fn leads_to_held(&mut self, ticket: Ticket) -> bool {
        let mut next = vec![ticket];
        while let Some(ticket) = next.pop() {
            if self.held.contains(&ticket) {
                // Those on the way to it do, too.
                self.seen.clear();
                self.looked_at.clear();
                return true;
            }
            if self.seen.insert(ticket) {
                next.extend((self.ahead)(ticket, &mut self.looked_at));
                next.extend(self.keepers.get(&ticket).into_iter().flatten());
            }
        }
        false
    }
}
