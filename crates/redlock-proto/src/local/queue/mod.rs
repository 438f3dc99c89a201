mod deadlock;
mod places;
#[cfg(test)]
mod tests;

use std::{collections::HashMap, hash::Hash, num::NonZero, slice};

use self::{deadlock::WaitGraph, places::Places};
use crate::{Fairness, Instant};

/// The place where callers of one process wait for each other, first come, first served.
///
/// It has a queue for each key `K`, in which a lease `P` may be parked for the next caller.
///
/// A caller takes its places in the queues of all its keys at the same moment, behind all callers that are there.
/// So callers that hold nothing while they wait never deadlock.
/// A caller that waits under a lease comes before the callers that wait for that lease: behind them, each would be in
/// the way of the other.
/// The caller at the head of all its queues has the turn: to contend for its keys, and then to hold them.
#[derive(Debug)]
pub struct LocalQueue<K, P> {
    queues: HashMap<K, KeyQueue<P>>,
    next_ticket: Ticket,
    /// Callers that have the turn or wait for it.
    callers: usize,
    /// With this many queues, the queues that are over are swept out.
    sweep_at: usize,
    /// The keys of each caller that wants several.
    sets: HashMap<Ticket, Vec<K>>,
    /// The callers that hold turns while they wait for another.
    wait_graph: WaitGraph<K>,
}

/// The reason for which a caller has no place.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "a driver must handle every reason")]
pub enum NoPlace {
    /// Too many callers wait for this key.
    Full,
    /// A caller that has one of the keys waits for one that this caller holds: each would wait for the other.
    Deadlock,
}

/// The number of a caller's place.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Ticket(NonZero<u64>);

/// The consequence of a caller's leaving its place.
#[derive(Debug)]
#[expect(
    clippy::exhaustive_structs,
    reason = "a driver must handle every part of it"
)]
pub struct Departure<P> {
    /// The callers that have the turn now, if they have it by this: several, if the caller had several keys.
    pub next: Vec<Ticket>,
    /// The lease that was parked, if no caller is left to take it over; it is to be released.
    pub unclaimed: Option<P>,
}

#[derive(Debug)]
struct KeyQueue<P> {
    places: Places,
    /// The lease of the holder before, for the next caller that has the turn.
    parked: Option<P>,
    /// When the key was last won from the nodes.
    won: Option<Instant>,
}

impl<K: Clone + Eq + Hash, P> LocalQueue<K, P> {
    /// Makes a queue in which no caller waits.
    pub fn new() -> Self {
        Self {
            queues: HashMap::new(),
            next_ticket: Ticket(NonZero::<u64>::MIN),
            callers: 0,
            sweep_at: 0,
            sets: HashMap::new(),
            wait_graph: WaitGraph::new(),
        }
    }

    /// Takes a place for each of `keys`, which are different, behind the callers that came before and do not wait for this
    /// one.
    ///
    /// `held` are the places of the leases under which the caller waits: it keeps them for as long.
    ///
    /// # Errors
    ///
    /// More than `most_waiting` wait for one of the keys already, the caller whose turn it is included.
    /// Or the wait could only end by its time limit, or by that of another: it is a deadlock.
    /// The caller that has the turn of a key waits meanwhile, directly or through others, for one of the places of
    /// `held`.
    pub fn enter(
        &mut self,
        keys: &[K],
        held: Vec<Ticket>,
        most_waiting: usize,
    ) -> Result<Ticket, NoPlace> {
        let callers = keys.iter().map(|key| self.callers_of(key));
        let longest = callers.max().unwrap_or(0);
        if longest > most_waiting {
            return Err(NoPlace::Full);
        }
        let overtaken = self.waiting_for(&held, keys)?;
        self.callers += 1;
        self.sweep();
        let ticket = self.next_ticket;
        self.next_ticket.0 = ticket.0.saturating_add(1);
        for key in keys {
            let queue = self.queues.entry(key.clone());
            let queue = queue.or_insert_with(|| KeyQueue {
                places: Places::default(),
                parked: None,
                won: None,
            });
            let places = &mut queue.places;
            // Mostly no caller is overtaken, and the search would look at all that wait.
            let place = if overtaken.is_empty() {
                None
            } else {
                places.iter().position(|place| overtaken.contains(place))
            };
            places.insert(place.unwrap_or(places.len()), ticket);
        }
        if keys.len() > 1 {
            self.sets.insert(ticket, keys.to_vec());
        }
        self.wait_graph.insert(ticket, keys, held);
        Ok(ticket)
    }

    /// Returns whether it is this caller's turn, for all its keys.
    pub fn has_turn(&self, keys: &[K], ticket: Ticket) -> bool {
        let mut queues = keys.iter().map(|key| self.queues.get(key));
        queues.all(|queue| queue.is_some_and(|queue| queue.places.front() == Some(&ticket)))
    }

    /// Returns how many callers have the turn of `key` or wait for it.
    pub fn callers_of(&self, key: &K) -> usize {
        self.queues.get(key).map_or(0, |queue| queue.places.len())
    }

    /// Takes the lease that the holder before has left to a caller of one key, if it has.
    pub fn inherit(&mut self, key: &K) -> Option<P> {
        self.queues.get_mut(key)?.parked.take()
    }

    /// Notes that the present turn has won the key from the nodes.
    pub fn on_won(&mut self, key: &K, now: Instant) {
        if let Some(queue) = self.queues.get_mut(key) {
            queue.won = Some(now);
        }
    }

    /// Returns whether the present turn's lease may be left to the next caller: one waits that wants only this key, and
    /// it is not time to let other processes have their turn, or the next caller contends anyway.
    ///
    /// A caller that wants several keys may have to wait for the others, with a lease that no caller uses.
    pub fn may_pass_on(&self, key: &K, fairness: Fairness, now: Instant) -> bool {
        let Some(queue) = self.queues.get(key) else {
            return false;
        };
        let next = queue.places.iter().nth(1);
        let takes_over = next.is_some_and(|next| !self.sets.contains_key(next));
        let had_for = queue.won.map(|won| now.saturating_since(won));
        let is_early = had_for.is_none_or(|had_for| had_for < Fairness::LONGEST_COHORT);
        takes_over && (fairness == Fairness::Strict || is_early)
    }

    /// Leaves a lease to the next caller, if [`may_pass_on`](Self::may_pass_on) says so.
    pub fn park(&mut self, key: &K, lease: P) {
        if let Some(queue) = self.queues.get_mut(key) {
            queue.parked = Some(lease);
        }
    }

    /// Takes all parked leases, in no order: no caller takes them over any more.
    pub fn take_parked(&mut self) -> Vec<P> {
        let parked = self.queues.values_mut().map(|queue| queue.parked.take());
        parked.flatten().collect()
    }

    /// Gives up a caller's places, whether or not it had the turn.
    ///
    /// `keys` are those that it entered with.
    pub fn leave(&mut self, keys: &[K], ticket: Ticket) -> Departure<P> {
        let mut unclaimed = None;
        // The callers that are at the head of a queue now, and were not before.
        let mut next = Vec::new();
        let mut was_there = false;
        for key in keys {
            let Some(queue) = self.queues.get_mut(key) else {
                continue;
            };
            let Some(place) = queue.places.iter().position(|other| *other == ticket) else {
                continue;
            };
            was_there = true;
            queue.places.remove(place);
            let head = queue.places.front();
            if head.is_none_or(|head| self.sets.contains_key(head))
                && let Some(parked) = queue.parked.take()
            {
                unclaimed = Some(parked);
            }
            next.extend(head.filter(|_| place == 0));
        }
        if was_there {
            self.callers -= 1;
            self.wait_graph.remove(ticket);
        }
        if keys.len() > 1 {
            self.sets.remove(&ticket);
            // One that is at the head of several of them.
            next.sort_unstable();
            next.dedup();
        }
        // At the head of its queue a caller has the turn, unless it wants other keys too.
        next.retain(|head| {
            let set = self.sets.get(head);
            set.is_none_or(|set| self.has_turn(set, *head))
        });
        Departure { next, unclaimed }
    }

    /// Returns what is parked, with its key, in no order.
    pub fn parked(&self) -> impl Iterator<Item = (&K, &P)> {
        let queues = self.queues.iter();
        queues.filter_map(|(key, queue)| Some((key, queue.parked.as_ref()?)))
    }

    /// Returns how many callers have the turn or wait for it; for leak checks.
    pub const fn callers(&self) -> usize {
        self.callers
    }

    /// Returns for how many keys there is a queue; for leak checks.
    pub fn queues(&self) -> usize {
        self.queues.len()
    }

    /// Returns the callers before which a caller comes that wants `keys` and keeps the places `held`: of each key, the
    /// first caller that waits for one of these places.
    fn waiting_for(&self, held: &[Ticket], keys: &[K]) -> Result<Vec<Ticket>, NoPlace> {
        let mut found = Vec::new();
        if held.is_empty() {
            return Ok(found);
        }
        // A caller that has its turn contends, and no caller of this process is in its way.
        let waits = |ticket, wanted: &[K]| !self.has_turn(wanted, ticket);
        let mut search = self.wait_graph.search(held, waits, |ticket, looked_at| {
            self.ahead_of(ticket, looked_at)
        });
        for key in keys {
            let places = self.queues.get(key).into_iter();
            let mut places = places.flat_map(|queue| queue.places.iter().copied());
            let Some(first) = places.find(|place| search.leads_to_held(*place)) else {
                continue;
            };
            if self.has_turn(self.wanted(first, key), first) {
                return Err(NoPlace::Deadlock);
            }
            found.push(first);
        }
        Ok(found)
    }

    /// Returns the callers for which this caller waits, without the first places of each queue that were `looked_at`.
    ///
    /// A caller that wants one key, and holds none, adds none: those ahead of it are also ahead of the callers behind
    /// it.
    fn ahead_of(&self, ticket: Ticket, looked_at: &mut HashMap<K, usize>) -> Vec<Ticket> {
        let wanted = self.sets.get(&ticket).map(Vec::as_slice);
        let wanted = wanted.or_else(|| self.wait_graph.wanted(ticket));
        let mut ahead = Vec::new();
        for key in wanted.unwrap_or_default() {
            let Some(queue) = self.queues.get(key) else {
                continue;
            };
            let places = &queue.places;
            let own = places.iter().position(|place| *place == ticket);
            let looked_at = looked_at.entry(key.clone()).or_default();
            let (from, to) = (*looked_at, own.unwrap_or(0));
            if from < to {
                ahead.extend(places.iter().skip(from).take(to - from));
                *looked_at = to;
            }
        }
        ahead
    }

    /// Returns the keys of a caller that has a place for this one.
    fn wanted<'a>(&'a self, ticket: Ticket, key: &'a K) -> &'a [K] {
        let set = self.sets.get(&ticket);
        set.map_or_else(|| slice::from_ref(key), Vec::as_slice)
    }

    fn sweep(&mut self) {
        if self.queues.len() >= self.sweep_at {
            self.queues.retain(|_, queue| !queue.places.is_empty());
            self.sweep_at = (2 * self.queues.len()).max(64);
        }
    }
}

impl<K: Clone + Eq + Hash, P> Default for LocalQueue<K, P> {
    fn default() -> Self {
        Self::new()
    }
}
