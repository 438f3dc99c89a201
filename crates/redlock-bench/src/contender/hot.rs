//! Many tasks that want one key.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use tokio::task::{JoinSet, spawn_blocking};

use super::{Outcome, Spread, TTL, locks::Locks, sample::Sample};
use crate::{failed::Result, meter};

/// Has `waiters` tasks acquire `key`, hold it and release it, again and again.
pub(super) async fn run<L: Locks>(
    locks: &L,
    key: &str,
    waiters: usize,
    hold: Duration,
    length: Duration,
) -> Result<Outcome> {
    let room = Arc::new(Room::default());
    let sample = Sample::start();
    let until = meter::now() + length;
    let mut set = JoinSet::new();
    for _ in 0..waiters {
        let (locks, room) = (locks.clone(), Arc::clone(&room));
        set.spawn(wait(locks, room, key.to_owned(), hold, until));
    }
    let mut all = Waiter::default();
    let mut shares = Vec::new();
    while let Some(waiter) = set.join_next().await {
        let mut waiter = waiter?;
        shares.push(waiter.waits.len() as u64);
        all.waits.append(&mut waiter.waits);
        all.hand_overs.append(&mut waiter.hand_overs);
        all.held += waiter.held;
        all.failed += waiter.failed;
    }
    let done = all.waits.len();
    let outcome = sample.end_of(done as u64, all.failed);
    Ok(Outcome {
        wait: Spread::of(all.waits),
        hand_over: Spread::of(all.hand_overs),
        hold: all.held.div_f64(done.max(1) as f64),
        shares,
        overlaps: room.state().overlaps,
        ..outcome
    })
}

/// What one task has seen.
#[derive(Debug, Default)]
struct Waiter {
    waits: Vec<Duration>,
    hand_overs: Vec<Duration>,
    held: Duration,
    failed: u64,
}

async fn wait<L: Locks>(
    locks: L,
    room: Arc<Room>,
    key: String,
    hold: Duration,
    until: Instant,
) -> Waiter {
    let mut waiter = Waiter::default();
    loop {
        let started = meter::now();
        if started >= until {
            return waiter;
        }
        let Some(held) = locks.acquire(&key, TTL).await else {
            waiter.failed += 1;
            continue;
        };
        let acquired = meter::now();
        waiter.hand_overs.extend(room.enter(acquired));
        waiter.waits.push(acquired - started);
        if !hold.is_zero() {
            // The runtime's own timer knows whole milliseconds only.
            let _ = spawn_blocking(move || thread::sleep(hold)).await;
        }
        let left = meter::now();
        waiter.held += left - acquired;
        room.leave(left);
        if !locks.release(held).await {
            waiter.failed += 1;
        }
    }
}

/// What the lock protects.
#[derive(Debug, Default)]
struct Room(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    inside: u64,
    left: Option<Instant>,
    overlaps: u64,
}

impl Room {
    /// Enters the room, and returns how long it was empty before.
    fn enter(&self, now: Instant) -> Option<Duration> {
        let mut state = self.state();
        if state.inside > 0 {
            state.overlaps += 1;
        }
        state.inside += 1;
        state
            .left
            .take()
            .map(|left| now.saturating_duration_since(left))
    }

    fn leave(&self, now: Instant) {
        let mut state = self.state();
        state.inside -= 1;
        state.left = Some(now);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_inside_at_once_are_seen_and_the_time_between_two_is_told() {
        let room = Room::default();
        let start = meter::now();
        let later = start + Duration::from_millis(3);
        assert_eq!(room.enter(start), None);
        room.leave(start);
        assert_eq!(room.enter(later), Some(Duration::from_millis(3)));
        assert_eq!(room.state().overlaps, 0);
        assert_eq!(room.enter(later), None);
        assert_eq!(room.state().overlaps, 1);
    }
}
