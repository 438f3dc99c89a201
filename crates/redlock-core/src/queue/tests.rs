use super::*;
use futures_util::poll;
use std::{
    pin::pin,
    sync::{
        OnceLock,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};
use tokio::task::JoinSet;

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

fn is_empty<P>(queue: &Queue<P>) -> bool {
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
            .pass_on(Fairness::Cohort, |_| true, |_| Parked(released))
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

/// Returns a queue in which the first caller of a key has left a lease to the second, and the turn of the third.
async fn left_to_the_second(
    released: &Arc<AtomicBool>,
) -> (Arc<Queue<Parked>>, [WaitingTurn<Parked>; 2]) {
    let clock = Clock::Tokio {
        origin: tokio::time::Instant::now(),
    };
    let queue = Queue::<Parked>::new(clock);
    let enter = || {
        Box::pin(
            queue
                .enter(&key("a"), Vec::new(), MOST_WAITING)
                .unwrap()
                .turn(),
        )
    };
    let first = enter().await.unwrap();
    let mut waiting: [WaitingTurn<Parked>; 2] = [enter(), enter()];
    for turn in &mut waiting {
        assert!(poll!(turn.as_mut()).is_pending());
    }
    let parked = Parked(Arc::clone(released));
    let left = first.pass_on(Fairness::Cohort, |_| true, |_| parked);
    assert!(left.is_ok());
    (queue, waiting)
}

type WaitingTurn<P> = std::pin::Pin<Box<dyn Future<Output = Option<Turn<P>>>>>;

#[tokio::test]
async fn a_lease_that_was_left_to_a_caller_that_goes_away_is_left_to_the_next() {
    // The caller goes away before it knows of its turn, or before it takes the lease.
    for knows_its_turn in [false, true] {
        let released = Arc::default();
        let (_queue, [mut second, third]) = left_to_the_second(&released).await;
        let turn = match knows_its_turn {
            true => second.as_mut().await,
            false => None,
        };
        assert_eq!(turn.is_some(), knows_its_turn);
        drop((second, turn));
        let mut third = third.await.unwrap();
        assert!(!released.load(Ordering::SeqCst), "knows: {knows_its_turn}");
        drop(third.inherit().unwrap());
    }
}

#[tokio::test]
async fn a_lease_that_was_left_to_a_caller_is_released_when_the_queue_is_closed() {
    // Whether or not the caller is polled after that.
    let released = Arc::default();
    let (queue, [second, third]) = left_to_the_second(&released).await;
    queue.close();
    assert!(released.load(Ordering::SeqCst));
    assert!(second.await.is_none() && third.await.is_none());
    assert!(is_empty(&queue));
}

/// A lease that counts those that there are.
struct Counted(Arc<AtomicUsize>);

impl Counted {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(count))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn callers_that_go_away_at_any_moment_leave_no_lease_behind_and_never_two_at_once() {
    let queue = Queue::<Counted>::new(Clock::Boot);
    let (count, taken) = (Arc::default(), Arc::new(AtomicUsize::new(0)));
    let mut callers = JoinSet::new();
    for number in 0..8 {
        let (queue, count, taken) = (Arc::clone(&queue), Arc::clone(&count), Arc::clone(&taken));
        callers.spawn(async move {
            for round in 0..2_000 {
                let turn = queue
                    .enter(&key("a"), Vec::new(), usize::MAX)
                    .unwrap()
                    .turn();
                // Mostly it waits, and now and then it goes away after so many polls.
                let polls = (number * 7 + round * 13) % 11;
                let mut turn = pin!(turn);
                let mut left = if polls < 4 { polls } else { usize::MAX };
                let turn = poll_fn(|cx| match turn.as_mut().poll(cx) {
                    Poll::Ready(turn) => Poll::Ready(turn),
                    Poll::Pending if left == 0 => Poll::Ready(None),
                    Poll::Pending if left < usize::MAX => {
                        left -= 1;
                        cx.waker().wake_by_ref();
                        Poll::Pending
                    }
                    Poll::Pending => Poll::Pending,
                });
                let Some(mut turn) = turn.await else { continue };
                if round % 5 == 0 {
                    // It has its turn, and goes away before it takes the lease.
                    continue;
                }
                let inherited = turn.inherit();
                taken.fetch_add(usize::from(inherited.is_some()), Ordering::Relaxed);
                let lease = inherited.unwrap_or_else(|| Counted::new(&count));
                assert_eq!(
                    count.load(Ordering::SeqCst),
                    1,
                    "there is a lease beside it"
                );
                drop(turn.pass_on(Fairness::Strict, |_| true, |_| lease));
            }
        });
    }
    callers.join_all().await;
    assert_eq!(count.load(Ordering::SeqCst), 0);
    assert!(is_empty(&queue));
    assert!(taken.load(Ordering::SeqCst) > 1_000, "{taken:?}");
}
