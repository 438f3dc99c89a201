use super::*;
use futures_util::poll;
use std::{
    pin::pin,
    sync::{
        OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

const MOST_WAITING: usize = 2;

fn queue() -> Arc<Queue<()>> {
    let clock = Clock::Tokio {
        origin: tokio::time::Instant::now(),
    };
    Queue::new(clock)
}

fn key(name: &str) -> ResourceKeys {
    ResourceKeys::new([name]).unwrap()
}

/// Takes a place in the queue of a key; returns its turn.
fn enter(queue: &Arc<Queue<()>>, name: &str) -> impl Future<Output = Option<Turn<()>>> + use<> {
    let place = queue.enter(&key(name), Vec::new(), MOST_WAITING);
    place.unwrap().turn()
}

fn is_empty(queue: &Queue<()>) -> bool {
    let state = queue.state();
    state.queue.callers() == 0 && state.waiting.is_empty()
}

// Shows: T1.11.
#[tokio::test]
async fn turns_come_in_order_and_leave_nothing() {
    let queue = queue();
    let first = enter(&queue, "a").await.unwrap();
    let mut second = pin!(enter(&queue, "a"));
    let mut third = pin!(enter(&queue, "a"));
    assert!(poll!(second.as_mut()).is_pending());
    assert!(poll!(third.as_mut()).is_pending());
    drop(first);
    assert!(poll!(third.as_mut()).is_pending());
    let Poll::Ready(Some(second)) = poll!(second.as_mut()) else {
        panic!("not its turn")
    };
    drop(second);
    drop(third.await);
    assert!(is_empty(&queue));
}

#[tokio::test]
async fn a_caller_that_leaves_after_being_handed_the_turn_passes_it_on() {
    let queue = queue();
    let first = enter(&queue, "a").await.unwrap();
    let mut second = Box::pin(enter(&queue, "a"));
    let mut third = pin!(enter(&queue, "a"));
    assert!(poll!(second.as_mut()).is_pending());
    assert!(poll!(third.as_mut()).is_pending());
    drop(first);
    // The second has been handed the turn and does not know it yet.
    drop(second);
    drop(third.await);
    assert!(is_empty(&queue));
}

/// A lease that is released once it is dropped.
struct Parked(Arc<AtomicBool>);

impl Drop for Parked {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// A caller that looks, when it is woken, whether the lease was released.
struct Waiting {
    released: Arc<AtomicBool>,
    was_released: OnceLock<bool>,
}

impl Wake for Waiting {
    fn wake(self: Arc<Self>) {
        let _ = self.was_released.set(self.released.load(Ordering::SeqCst));
    }
}

#[tokio::test]
async fn a_lease_that_nobody_takes_over_is_released_before_the_next_caller_is_told() {
    let clock = Clock::Tokio {
        origin: tokio::time::Instant::now(),
    };
    let queue = Queue::<Parked>::new(clock);
    let enter = |names: &[&str]| {
        let keys = ResourceKeys::new(names.iter().copied()).unwrap();
        Box::pin(queue.enter(&keys, Vec::new(), MOST_WAITING).unwrap().turn())
    };
    let first = enter(&["a"]).await.unwrap();
    let mut second = enter(&["a"]);
    let mut third = enter(&["a", "b"]);
    let released = Arc::new(AtomicBool::new(false));
    let waiting = Arc::new(Waiting {
        released: Arc::clone(&released),
        was_released: OnceLock::new(),
    });
    let waker = Waker::from(Arc::clone(&waiting));
    assert!(poll!(second.as_mut()).is_pending());
    let polled = third.as_mut().poll(&mut Context::from_waker(&waker));
    assert!(polled.is_pending());
    assert!(
        first
            .pass_on(Fairness::Cohort, |_| true, || Parked(released))
            .is_ok()
    );
    // The second caller was woken, and gives up before it takes the lease; a caller of several keys takes over none.
    drop(second);
    assert_eq!(waiting.was_released.get(), Some(&true));
}

#[tokio::test]
async fn a_turn_that_comes_before_it_is_waited_for_is_not_missed() {
    let queue = queue();
    let first = enter(&queue, "a").await.unwrap();
    let second = enter(&queue, "a");
    drop(first);
    drop(second.await);
    assert!(is_empty(&queue));
}
