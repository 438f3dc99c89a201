//! The queue in front of the nodes: one contender per process and key.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use redlock_proto::{Instant, Streak};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::{
    ResourceKey, Wait,
    clock::Clock,
    engine::{Holding, Parked},
};

/// Where the callers of one process wait for each other, first come, first served.
///
/// An entry lives as long as somebody holds or awaits its key, and for the length of a gap after that:
/// a caller that comes back at once has left none for other processes, and its streak goes on.
#[derive(Debug)]
pub(crate) struct LocalQueue {
    clock: Clock,
    places: Mutex<Places>,
}

/// How many callers may wait.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QueueLimits {
    pub(crate) per_key: usize,
    pub(crate) total: usize,
}

#[derive(Debug, Default)]
struct Places {
    entries: HashMap<ResourceKey, Entry>,
    /// Those who hold or await a key.
    taken: usize,
    /// The keys that somebody holds or awaits.
    busy: usize,
    /// At this many entries, those that are over are swept out.
    sweep_at: usize,
}

#[derive(Debug)]
struct Entry {
    turns: Arc<Semaphore>,
    interested: usize,
    /// The lease of the holder before, for whoever has the next turn.
    parked: Option<Parked>,
    streak: Streak,
    /// Since when nobody is interested, if so.
    idle_since: Instant,
}

/// A place in the queue of one key.
///
/// Interest, not the turn, owns the entry: a caller that goes away between being handed the turn and
/// noticing it must not leave the entry behind.
#[derive(Debug)]
pub(crate) struct Place {
    queue: Arc<LocalQueue>,
    key: ResourceKey,
    turns: Arc<Semaphore>,
}

/// The turn to contend for, and then to hold, one key.
#[derive(Debug)]
pub(crate) struct Turn {
    // Dropped in this order: the next caller's turn first, then the entry and a lease that nobody takes over.
    _permit: OwnedSemaphorePermit,
    place: Place,
}

/// Too many callers wait.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum QueueFull {
    PerKey,
    Total,
}

impl LocalQueue {
    pub(crate) fn new(clock: Clock) -> Arc<Self> {
        Arc::new(Self {
            clock,
            places: Mutex::default(),
        })
    }

    /// Takes a place behind those who came before, if they are few enough.
    ///
    /// The caller whose turn it is does not count as waiting, hence one more than each limit.
    pub(crate) fn enter(
        self: &Arc<Self>,
        key: &ResourceKey,
        limits: QueueLimits,
    ) -> Result<Place, QueueFull> {
        let now = self.clock.now();
        let mut places = self.places();
        let ahead = places.entries.get(key).map_or(0, |entry| entry.interested);
        if ahead > limits.per_key {
            return Err(QueueFull::PerKey);
        }
        if ahead > 0 && places.taken - places.busy >= limits.total {
            return Err(QueueFull::Total);
        }
        places.taken += 1;
        places.busy += usize::from(ahead == 0);
        places.sweep(now);
        let entry = places
            .entries
            .entry(key.clone())
            .or_insert_with(|| Entry::new(now));
        if ahead == 0 && entry.is_over(now) {
            entry.streak = Streak::default();
        }
        entry.interested += 1;
        let turns = Arc::clone(&entry.turns);
        Ok(Place {
            queue: Arc::clone(self),
            key: key.clone(),
            turns,
        })
    }

    #[cfg(test)]
    fn is_empty(&self) -> bool {
        let places = self.places();
        places.busy == 0 && places.taken == 0 && places.entries.values().all(|e| e.interested == 0)
    }

    fn places(&self) -> MutexGuard<'_, Places> {
        // Nothing panics while the lock is held.
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Places {
    fn sweep(&mut self, now: Instant) {
        if self.entries.len() >= self.sweep_at {
            self.entries.retain(|_, entry| !entry.is_over(now));
            self.sweep_at = (2 * self.entries.len()).max(64);
        }
    }
}

impl Entry {
    fn new(now: Instant) -> Self {
        Self {
            turns: Arc::new(Semaphore::new(1)),
            interested: 0,
            parked: None,
            streak: Streak::default(),
            idle_since: now,
        }
    }

    /// Whether nobody was interested for long enough to let another process in.
    fn is_over(&self, now: Instant) -> bool {
        self.interested == 0 && now.saturating_since(self.idle_since) >= Streak::PAUSE
    }
}

impl Place {
    /// Waits for the turn, in order.
    pub(crate) async fn turn(self) -> Turn {
        let permit = Arc::clone(&self.turns).acquire_owned().await;
        Turn {
            _permit: permit.expect("the queue never closes its semaphores"),
            place: self,
        }
    }

    /// The turn, if nobody is ahead.
    pub(crate) fn try_turn(self) -> Option<Turn> {
        let permit = Arc::clone(&self.turns).try_acquire_owned().ok()?;
        Some(Turn {
            _permit: permit,
            place: self,
        })
    }
}

impl Turn {
    /// Waits before contending if it is time that other processes get their turn too, and the wait allows it.
    pub(crate) async fn leave_a_gap(&self, wait: Wait) {
        let now = self.place.queue.clock.now();
        let pause = self.place.with_streak(|streak| streak.pause(now)).flatten();
        if let Some(pause) = pause.filter(|pause| *pause <= wait.duration()) {
            tokio::time::sleep(pause).await;
            self.place.with_streak(Streak::on_paused);
        }
    }

    /// The lease that the holder before has left, if it has.
    pub(crate) fn inherit(&self) -> Option<Parked> {
        let mut places = self.place.queue.places();
        places.entries.get_mut(&self.place.key)?.parked.take()
    }

    /// Leaves the lease to the next caller of this process, if one waits and it is not time to let other
    /// processes have their turn; else returns it, to be released.
    pub(crate) fn pass_on(&self, holding: Holding) -> Option<Holding> {
        let now = self.place.queue.clock.now();
        let mut places = self.place.queue.places();
        match places.entries.get_mut(&self.place.key) {
            Some(entry) if entry.interested > 1 && entry.streak.pause(now).is_none() => {
                let Some(tokens) = holding.tokens_to_hand_over() else {
                    return Some(holding);
                };
                entry.parked = Some(holding.park(tokens));
                None
            }
            _ => Some(holding),
        }
    }

    /// The key was won in this turn.
    pub(crate) fn won(&self) {
        let now = self.place.queue.clock.now();
        self.place.with_streak(|streak| streak.on_won(now));
    }
}

impl Place {
    fn with_streak<T>(&self, f: impl FnOnce(&mut Streak) -> T) -> Option<T> {
        let mut places = self.queue.places();
        let entry = places.entries.get_mut(&self.key)?;
        Some(f(&mut entry.streak))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let now = self.queue.clock.now();
        let mut parked = None;
        let mut places = self.queue.places();
        places.taken -= 1;
        // An entry is there for as long as somebody is interested.
        if let Some(entry) = places.entries.get_mut(&self.key) {
            entry.interested -= 1;
            if entry.interested == 0 {
                entry.idle_since = now;
                parked = entry.parked.take();
                places.busy -= 1;
            }
        }
        drop(places);
        // Nobody is left who could take the lease over.
        drop(parked);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::poll;
    use std::{pin::pin, task::Poll, time::Duration};

    const LIMITS: QueueLimits = QueueLimits {
        per_key: 2,
        total: 3,
    };

    fn queue() -> Arc<LocalQueue> {
        let clock = Clock::Tokio {
            origin: tokio::time::Instant::now(),
        };
        LocalQueue::new(clock)
    }

    fn key(name: &str) -> ResourceKey {
        name.parse().unwrap()
    }

    #[tokio::test]
    async fn turns_come_in_order_and_leave_nothing() {
        let queue = queue();
        let first = queue.enter(&key("a"), LIMITS).unwrap().turn().await;
        let mut second = pin!(queue.enter(&key("a"), LIMITS).unwrap().turn());
        let mut third = pin!(queue.enter(&key("a"), LIMITS).unwrap().turn());
        assert!(poll!(second.as_mut()).is_pending());
        assert!(poll!(third.as_mut()).is_pending());
        drop(first);
        assert!(poll!(third.as_mut()).is_pending());
        let Poll::Ready(second) = poll!(second.as_mut()) else {
            panic!("not its turn")
        };
        drop(second);
        drop(third.await);
        assert!(queue.is_empty());
    }

    #[tokio::test]
    async fn a_caller_that_leaves_after_being_handed_the_turn_passes_it_on() {
        let queue = queue();
        let first = queue.enter(&key("a"), LIMITS).unwrap().turn().await;
        let mut second = Box::pin(queue.enter(&key("a"), LIMITS).unwrap().turn());
        let mut third = pin!(queue.enter(&key("a"), LIMITS).unwrap().turn());
        assert!(poll!(second.as_mut()).is_pending());
        assert!(poll!(third.as_mut()).is_pending());
        drop(first);
        // The second has been handed the turn and does not know it yet.
        drop(second);
        drop(third.await);
        assert!(queue.is_empty());
    }

    #[tokio::test]
    async fn waiting_is_bounded_per_key_and_in_all() {
        let queue = queue();
        let _holder = queue.enter(&key("a"), LIMITS).unwrap().turn().await;
        let _waiting = [
            queue.enter(&key("a"), LIMITS).unwrap(),
            queue.enter(&key("a"), LIMITS).unwrap(),
        ];
        assert_eq!(
            queue.enter(&key("a"), LIMITS).unwrap_err(),
            QueueFull::PerKey
        );
        let _other = [
            queue.enter(&key("b"), LIMITS).unwrap(),
            queue.enter(&key("b"), LIMITS).unwrap(),
        ];
        assert_eq!(
            queue.enter(&key("b"), LIMITS).unwrap_err(),
            QueueFull::Total
        );
        assert!(queue.enter(&key("c"), LIMITS).is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn l09_keys_used_once_do_not_accumulate() {
        let queue = queue();
        for name in 0..20_000 {
            drop(
                queue
                    .enter(&key(&name.to_string()), LIMITS)
                    .unwrap()
                    .turn()
                    .await,
            );
            tokio::time::advance(Duration::from_millis(1)).await;
            let kept = queue.places().entries.len();
            assert!(kept <= 64, "{kept} entries are kept");
        }
    }
}
