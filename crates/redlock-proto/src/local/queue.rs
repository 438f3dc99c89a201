use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    hash::Hash,
    time::Duration,
};

use super::Streak;
use crate::Instant;

/// Where the callers of one process wait for each other, first come, first served: a queue for each key `K`, in which
/// a lease `P` may be parked for the next caller.
///
/// The caller at the head of a queue has the turn: to contend for the key, and then to hold it.
/// A queue stays for the length of a gap after its last caller: a caller that comes back at once has left none for
/// other processes, and its streak goes on.
#[derive(Debug)]
pub struct LocalQueue<K, P> {
    queues: HashMap<K, Queue<P>>,
    next_ticket: u64,
    /// Callers that have the turn or wait for it.
    callers: usize,
    /// Keys for which there is one.
    busy: usize,
    /// With this many queues, those that are over are swept out.
    sweep_at: usize,
    /// The places of callers that hold keys while they wait for another, and which they hold.
    holding: BTreeMap<Ticket, (K, Vec<K>)>,
}

/// How many callers may wait.
#[derive(Clone, Copy, Debug)]
#[expect(
    clippy::exhaustive_structs,
    reason = "a driver must settle every part of it"
)]
pub struct QueueLimits {
    /// For one key.
    pub per_key: usize,
    /// For all keys.
    pub total: usize,
}

/// Why a caller has no place.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "a driver must handle every reason")]
pub enum NoPlace {
    /// Too many callers wait for this key.
    FullPerKey,
    /// Too many callers wait in all.
    FullInTotal,
    /// Somebody who is ahead waits for a key that this caller holds: each would wait for the other.
    Deadlock,
}

/// The number of a caller's place.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Ticket(u64);

/// What follows when a caller leaves its place.
#[derive(Debug)]
#[expect(
    clippy::exhaustive_structs,
    reason = "a driver must handle every part of it"
)]
pub struct Left<P> {
    /// The caller that has the turn now, if it has it by this.
    pub next: Option<Ticket>,
    /// The lease that was parked, if nobody is left to take it over; it is to be released.
    pub unclaimed: Option<P>,
}

#[derive(Debug)]
struct Queue<P> {
    places: VecDeque<Ticket>,
    /// The lease of the holder before, for the next caller that has the turn.
    parked: Option<P>,
    streak: Streak,
    /// Since when nobody is there, if so.
    idle_since: Instant,
}

impl<K: Clone + Eq + Hash, P> LocalQueue<K, P> {
    /// Makes a queue in which nobody waits.
    pub fn new() -> Self {
        Self {
            queues: HashMap::new(),
            next_ticket: 0,
            callers: 0,
            busy: 0,
            sweep_at: 0,
            holding: BTreeMap::new(),
        }
    }

    /// Takes a place behind the callers that came before, for a caller that holds other keys: those of `held`.
    ///
    /// # Errors
    ///
    /// Too many wait already; the caller whose turn it is does not count as waiting, hence one more than each limit.
    /// Or the wait could only end by its time limit, or by that of another: who has the turn waits for a key that the
    /// caller holds, or for one whose turn has somebody who does, as far as callers have said what they hold.
    pub fn enter(
        &mut self,
        key: &K,
        held: Vec<K>,
        limits: QueueLimits,
        now: Instant,
    ) -> Result<Ticket, NoPlace> {
        let ahead = self.callers_of(key);
        if ahead > limits.per_key {
            return Err(NoPlace::FullPerKey);
        }
        if ahead > 0 && self.callers - self.busy >= limits.total {
            return Err(NoPlace::FullInTotal);
        }
        if ahead > 0 && self.waits_for_one_of(key, &held) {
            return Err(NoPlace::Deadlock);
        }
        self.callers += 1;
        self.busy += usize::from(ahead == 0);
        self.sweep(now);
        if !self.queues.contains_key(key) {
            self.queues.insert(key.clone(), Queue::new(now));
        }
        let ticket = Ticket(self.next_ticket);
        self.next_ticket += 1;
        if let Some(queue) = self.queues.get_mut(key) {
            if queue.is_over(now) {
                queue.streak = Streak::default();
            }
            queue.places.push_back(ticket);
        }
        if !held.is_empty() {
            self.holding.insert(ticket, (key.clone(), held));
        }
        Ok(ticket)
    }

    /// Returns whether the holder of `key` waits for one of these, or for a key whose holder does, and so on.
    fn waits_for_one_of(&self, key: &K, held: &[K]) -> bool {
        if held.is_empty() {
            return false;
        }
        let mut seen = vec![key];
        let mut next = 0;
        while let Some(key) = seen.get(next).copied() {
            next += 1;
            for (ticket, (awaited, others)) in &self.holding {
                // Who has its turn contends, and nobody of this process is in its way.
                if !others.contains(key) || self.has_turn(awaited, *ticket) {
                    continue;
                }
                if held.contains(awaited) {
                    return true;
                }
                if !seen.contains(&awaited) {
                    seen.push(awaited);
                }
            }
        }
        false
    }

    /// Returns whether it is this caller's turn.
    pub fn has_turn(&self, key: &K, ticket: Ticket) -> bool {
        let queue = self.queues.get(key);
        queue.is_some_and(|queue| queue.places.front() == Some(&ticket))
    }

    /// Returns how many callers have the turn of `key` or wait for it.
    pub fn callers_of(&self, key: &K) -> usize {
        self.queues.get(key).map_or(0, |queue| queue.places.len())
    }

    /// Takes the lease that the holder before has left, if it has.
    pub fn inherit(&mut self, key: &K) -> Option<P> {
        self.queues.get_mut(key)?.parked.take()
    }

    /// Returns how long the present turn waits before it contends, if it is time that other processes have their turn
    /// too and the caller waits as long; [`on_gap_left`](Self::on_gap_left) is told afterwards.
    pub fn gap(&self, key: &K, longest_wait: Duration, now: Instant) -> Option<Duration> {
        let pause = self.queues.get(key)?.streak.pause(now);
        pause.filter(|pause| *pause <= longest_wait)
    }

    /// The gap was left.
    pub fn on_gap_left(&mut self, key: &K) {
        if let Some(queue) = self.queues.get_mut(key) {
            queue.streak.on_paused();
        }
    }

    /// The present turn has won the key from the nodes.
    pub fn on_won(&mut self, key: &K, now: Instant) {
        if let Some(queue) = self.queues.get_mut(key) {
            queue.streak.on_won(now);
        }
    }

    /// Returns whether the present turn's lease may be left to the next caller: one waits, and it is not time to let
    /// other processes have their turn.
    pub fn may_pass_on(&self, key: &K, now: Instant) -> bool {
        let queue = self.queues.get(key);
        queue.is_some_and(|queue| queue.places.len() > 1 && queue.streak.pause(now).is_none())
    }

    /// Leaves a lease to the next caller, if [`may_pass_on`](Self::may_pass_on) says so.
    pub fn park(&mut self, key: &K, lease: P) {
        if let Some(queue) = self.queues.get_mut(key) {
            queue.parked = Some(lease);
        }
    }

    /// A caller leaves its place, whether or not it had the turn.
    pub fn leave(&mut self, key: &K, ticket: Ticket, now: Instant) -> Left<P> {
        let mut left = Left {
            next: None,
            unclaimed: None,
        };
        let Some(queue) = self.queues.get_mut(key) else {
            return left;
        };
        let mut places = queue.places.iter();
        let Some(place) = places.position(|other| *other == ticket) else {
            return left;
        };
        queue.places.remove(place);
        self.holding.remove(&ticket);
        self.callers -= 1;
        if place == 0 {
            left.next = queue.places.front().copied();
        }
        if queue.places.is_empty() {
            queue.idle_since = now;
            left.unclaimed = queue.parked.take();
            self.busy -= 1;
        }
        left
    }

    /// Returns what is parked, with its key, in no order.
    pub fn parked(&self) -> impl Iterator<Item = (&K, &P)> {
        let queues = self.queues.iter();
        queues.filter_map(|(key, queue)| Some((key, queue.parked.as_ref()?)))
    }

    /// Returns how many callers have the turn or wait for it; for those who look for leaks.
    pub const fn callers(&self) -> usize {
        self.callers
    }

    /// Returns for how many keys there is a queue; for those who look for leaks.
    pub fn queues(&self) -> usize {
        self.queues.len()
    }

    fn sweep(&mut self, now: Instant) {
        if self.queues.len() >= self.sweep_at {
            self.queues.retain(|_, queue| !queue.is_over(now));
            self.sweep_at = (2 * self.queues.len()).max(64);
        }
    }
}

impl<K: Clone + Eq + Hash, P> Default for LocalQueue<K, P> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P> Queue<P> {
    fn new(now: Instant) -> Self {
        Self {
            places: VecDeque::new(),
            parked: None,
            streak: Streak::default(),
            idle_since: now,
        }
    }

    /// Returns whether nobody was there for long enough to let another process in.
    fn is_over(&self, now: Instant) -> bool {
        self.places.is_empty() && now.saturating_since(self.idle_since) >= Streak::PAUSE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: QueueLimits = QueueLimits {
        per_key: 2,
        total: 3,
    };

    fn at(ms: u64) -> Instant {
        Instant::from_origin(Duration::from_millis(ms))
    }

    fn queue() -> LocalQueue<&'static str, u32> {
        LocalQueue::new()
    }

    #[test]
    fn turns_come_in_order_whoever_leaves() {
        let mut queue = queue();
        let [first, second, third] =
            [0; 3].map(|_| queue.enter(&"a", Vec::new(), LIMITS, at(0)).unwrap());
        assert!(queue.has_turn(&"a", first));
        assert!(!queue.has_turn(&"a", second) && !queue.has_turn(&"a", third));
        assert_eq!(queue.leave(&"a", second, at(1)).next, None);
        assert_eq!(queue.leave(&"a", first, at(1)).next, Some(third));
        assert!(queue.has_turn(&"a", third));
        assert_eq!(queue.leave(&"a", third, at(1)).next, None);
        assert_eq!(queue.callers(), 0);
    }

    #[test]
    fn waiting_is_bounded_per_key_and_in_all() {
        let mut queue = queue();
        for _ in 0..3 {
            queue.enter(&"a", Vec::new(), LIMITS, at(0)).unwrap();
        }
        assert_eq!(
            queue.enter(&"a", Vec::new(), LIMITS, at(0)),
            Err(NoPlace::FullPerKey)
        );
        for _ in 0..2 {
            queue.enter(&"b", Vec::new(), LIMITS, at(0)).unwrap();
        }
        assert_eq!(
            queue.enter(&"b", Vec::new(), LIMITS, at(0)),
            Err(NoPlace::FullInTotal)
        );
        assert!(
            queue.enter(&"c", Vec::new(), LIMITS, at(0)).is_ok(),
            "nobody is ahead"
        );
    }

    #[test]
    fn a_lease_is_left_to_the_next_caller_or_to_nobody() {
        let mut queue = queue();
        let first = queue.enter(&"a", Vec::new(), LIMITS, at(0)).unwrap();
        queue.on_won(&"a", at(0));
        assert!(!queue.may_pass_on(&"a", at(0)), "nobody waits");
        let second = queue.enter(&"a", Vec::new(), LIMITS, at(0)).unwrap();
        assert!(queue.may_pass_on(&"a", at(249)));
        assert!(!queue.may_pass_on(&"a", at(250)), "others have their turn");
        queue.park(&"a", 7);
        let left = queue.leave(&"a", first, at(1));
        assert_eq!((left.next, left.unclaimed), (Some(second), None));
        assert_eq!(queue.inherit(&"a"), Some(7));
        assert_eq!(queue.inherit(&"a"), None);
        queue.park(&"a", 8);
        assert_eq!(queue.leave(&"a", second, at(1)).unclaimed, Some(8));
    }

    #[test]
    fn a_gap_is_left_once_turns_have_followed_each_other_for_long() {
        let mut queue = queue();
        let mut before = queue.enter(&"a", Vec::new(), LIMITS, at(0)).unwrap();
        queue.on_won(&"a", at(0));
        for ms in [100, 200, 274] {
            queue.leave(&"a", before, at(ms));
            // It comes back before a gap has passed.
            before = queue.enter(&"a", Vec::new(), LIMITS, at(ms + 24)).unwrap();
        }
        assert_eq!(queue.gap(&"a", Streak::PAUSE, at(298)), Some(Streak::PAUSE));
        let short = Streak::PAUSE - Duration::from_millis(1);
        assert_eq!(queue.gap(&"a", short, at(298)), None, "it waits for less");
        queue.on_gap_left(&"a");
        assert_eq!(queue.gap(&"a", Streak::PAUSE, at(323)), None);
        queue.on_won(&"a", at(323));
        queue.leave(&"a", before, at(573));
        queue.enter(&"a", Vec::new(), LIMITS, at(598)).unwrap();
        assert_eq!(queue.gap(&"a", Streak::PAUSE, at(598)), None, "it was left");
    }

    #[test]
    fn who_would_wait_for_somebody_who_waits_for_it_has_no_place() {
        let mut queue = queue();
        for key in ["a", "b", "c"] {
            queue.enter(&key, Vec::new(), LIMITS, at(0)).unwrap();
        }
        let enter = |queue: &mut LocalQueue<_, _>, key: &&'static str, held: &[&'static str]| {
            queue.enter(key, held.to_vec(), LIMITS, at(0))
        };
        // The holder of a waits for b, and that of b for c.
        let first = enter(&mut queue, &"b", &["a"]).unwrap();
        enter(&mut queue, &"c", &["b", "d"]).unwrap();
        for (key, held) in [("b", "c"), ("a", "c"), ("a", "b")] {
            let refused = enter(&mut queue, &key, &["e", held]);
            assert_eq!(refused, Err(NoPlace::Deadlock), "{key} for {held}");
        }
        let other = enter(&mut queue, &"a", &["e"]).unwrap();
        queue.leave(&"a", other, at(1));
        queue.leave(&"b", first, at(1));
        assert!(enter(&mut queue, &"a", &["c"]).is_ok(), "it waits no more");
        assert_eq!(enter(&mut queue, &"b", &["c"]), Err(NoPlace::Deadlock));
    }

    #[test]
    fn who_has_its_turn_waits_for_nobody_here() {
        let mut queue = queue();
        let holder = queue.enter(&"a", Vec::new(), LIMITS, at(0)).unwrap();
        let nested = queue.enter(&"b", vec!["a"], LIMITS, at(0)).unwrap();
        let waits = queue.enter(&"a", vec!["b"], LIMITS, at(0)).unwrap();
        for (key, ticket) in [("a", waits), ("b", nested), ("a", holder)] {
            queue.leave(&key, ticket, at(1));
        }
        assert!(queue.holding.is_empty());
        assert_eq!(queue.callers(), 0);
    }

    #[test]
    fn l09_keys_used_once_do_not_accumulate() {
        let mut queue = LocalQueue::<u64, ()>::new();
        for key in 0..20_000 {
            let ticket = queue.enter(&key, Vec::new(), LIMITS, at(key)).unwrap();
            queue.leave(&key, ticket, at(key));
            assert!(queue.queues() <= 64, "{} queues are kept", queue.queues());
        }
    }
}
