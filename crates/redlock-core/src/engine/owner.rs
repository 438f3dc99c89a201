//! The two tasks that can drive, and which of them does.
//!
//! The thread's task drives at first. While callers come one at a time, the task on their runtime does: an answer then
//! wakes the thread that waits for it, and no other. The thread's task takes the driver back when callers come together,
//! and when something waits that the runtime does not look at: its threads may be blocked, or it may have ended.

use std::{
    future::poll_fn,
    pin::pin,
    process,
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicU8, Ordering},
    },
    task::Poll,
    time::Duration,
};

use futures_util::task::AtomicWaker;
use redlock_proto::{Instant, Now};
use tokio::{task::yield_now, time::sleep};

use super::{
    alarm::Alarm,
    driver::{Driver, Seat},
};

/// A driver that one of two tasks drives.
pub(super) struct SharedDriver {
    /// `None` once it is over.
    driver: Mutex<Option<Driver>>,
    /// One of the constants below.
    owner: AtomicU8,
    /// The task of the thread, and that of the runtime.
    tasks: [AtomicWaker; 2],
    /// The process of both.
    process: u32,
}

/// The thread's task drives, and may lend the driver to the runtime's.
const THREAD: u8 = 0;
/// The runtime's task drives.
const RUNTIME: u8 = 1;
/// The thread's task drives for good.
const THREAD_ONLY: u8 = 2;
/// There is nothing left to drive.
const OVER: u8 = 3;

impl SharedDriver {
    /// Shares a driver; a runtime's task can drive it too if `is_lent`.
    pub(super) fn new(driver: Driver, is_lent: bool) -> Arc<Self> {
        Arc::new(Self {
            driver: Mutex::new(Some(driver)),
            owner: AtomicU8::new(if is_lent { THREAD } else { THREAD_ONLY }),
            tasks: Default::default(),
            process: process::id(),
        })
    }

    /// Drives whenever the driver is this task's, until no handle is left and everything is cleaned up.
    ///
    /// If the runtime's task is dropped, the thread drives for good; if the thread's is, the driver ends.
    pub(super) fn drive(self: Arc<Self>, seat: Seat) -> impl Future<Output = ()> + Send {
        // Here, because a runtime may drop a task that it has never polled.
        let task = DrivingTask(self, seat);
        async move {
            let mut driving = pin!(task.0.drive_in_turns(seat));
            // A process that was forked has the runtime's task, too, and the same sockets; the client is its parent's.
            poll_fn(|cx| match seat == Seat::Runtime && task.0.is_forked() {
                true => Poll::Pending,
                false => driving.as_mut().poll(cx),
            })
            .await;
        }
    }

    async fn drive_in_turns(&self, seat: Seat) {
        let mut alarm = None;
        while self.seated(seat).await {
            while self.turn(seat, &mut alarm).await.is_some() {}
        }
    }

    /// Waits until something happens or is due, and does all that comes of it; `None` if the driver is not this task's.
    async fn turn(&self, seat: Seat, alarm: &mut Option<Alarm>) -> Option<()> {
        let wait = self.with(seat, |driver| driver.until_next_timer())?;
        let alarm = alarm.get_or_insert_with(|| Alarm::new(wait));
        alarm.set(wait);
        poll_fn(|cx| {
            self.tasks[seat as usize].register(cx.waker());
            match self.with(seat, |driver| driver.hear(cx)) {
                Some(false) => alarm.poll(cx),
                Some(true) | None => Poll::Ready(()),
            }
        })
        .await;
        if seat == Seat::Thread {
            // Whatever else is ready joins the same calls to the nodes: one turn for the other tasks of
            // this thread, and no timer, so that a lone caller never waits.
            others_first().await;
        }
        let mut heard_until: Option<Now> = None;
        loop {
            heard_until =
                poll_fn(|cx| Poll::Ready(self.with(seat, |driver| driver.act(cx, heard_until))))
                    .await?;
            if heard_until.is_none() {
                break;
            }
            // What lies unread in a socket when a time limit is reached is an answer: this process may have been too
            // slow to read it.
            yield_now().await;
        }
        self.finish_turn(seat);
        Some(())
    }

    /// Ends the driver if it is over, and passes it to the other task if that one is to drive.
    fn finish_turn(&self, seat: Seat) {
        let mut driver = self.lock();
        let Some(of) = driver.as_mut().filter(|driver| driver.seat == seat) else {
            return;
        };
        if of.is_over() {
            let over = driver.take();
            self.owner.store(OVER, Ordering::Release);
            // Its connections end here, where they belong.
            drop((driver, over));
            return self.tasks.iter().for_each(AtomicWaker::wake);
        }
        let next = of.next_seat();
        // First unlocked: the next owner must not wait for this thread, which may lose its processor here.
        drop(driver);
        match (seat, next) {
            (Seat::Thread, Seat::Runtime) => self.pass(THREAD, RUNTIME),
            (Seat::Runtime, Seat::Thread) => self.pass(RUNTIME, THREAD),
            _ => {}
        }
    }

    /// Waits until this task is to drive; `false` if there is nothing left to drive.
    async fn seated(&self, seat: Seat) -> bool {
        let mut lookout = Lookout::default();
        loop {
            let mut nap = pin!(async {
                match seat {
                    Seat::Thread => sleep(LOOK_EVERY).await,
                    Seat::Runtime => std::future::pending().await,
                }
            });
            poll_fn(|cx| {
                self.tasks[seat as usize].register(cx.waker());
                let is_needed = self.is_owner(seat) || self.owner() == OVER;
                if is_needed {
                    Poll::Ready(())
                } else {
                    nap.as_mut().poll(cx)
                }
            })
            .await;
            if self.owner() == OVER {
                return false;
            }
            if self.is_owner(seat) {
                match self.take_seat(seat) {
                    Some(true) => return true,
                    Some(false) => {}
                    None => return false,
                }
            } else {
                self.look(&mut lookout);
            }
        }
    }

    /// Moves the connections of the driver to the runtime of this task; `None` if the driver is over.
    fn take_seat(&self, seat: Seat) -> Option<bool> {
        let mut driver = self.lock();
        let driver = driver.as_mut()?;
        if !self.is_owner(seat) {
            return Some(false);
        }
        if driver.seat != seat && !driver.move_here(seat) {
            self.pass(RUNTIME, THREAD_ONLY);
        }
        Some(self.is_owner(seat))
    }

    /// Takes the driver back from the runtime if that leaves something waiting, or if no caller has come for a while.
    ///
    /// This does not wait for the lock: while that is held, the runtime drives.
    fn look(&self, lookout: &mut Lookout) {
        if let Ok(mut driver) = self.driver.try_lock()
            && let Some(driver) = &mut *driver
            && lookout.wants(driver)
        {
            self.pass(RUNTIME, THREAD);
        }
    }

    /// Does something with the driver, if it is this task's.
    fn with<T>(&self, seat: Seat, work: impl FnOnce(&mut Driver) -> T) -> Option<T> {
        let mut driver = self.is_owner(seat).then(|| self.lock())?;
        let driver = driver.as_mut()?;
        // The other task may have had it meanwhile: then its connections are there.
        let is_its = self.is_owner(seat) && driver.seat == seat;
        is_its.then(|| work(driver))
    }

    fn lock(&self) -> MutexGuard<'_, Option<Driver>> {
        match self.driver.lock() {
            Ok(driver) => driver,
            Err(poisoned) => {
                // A task panicked with it half changed, so nothing may drive it any more: callers learn that it is gone.
                let mut driver = poisoned.into_inner();
                *driver = None;
                driver
            }
        }
    }

    fn owner(&self) -> u8 {
        self.owner.load(Ordering::Acquire)
    }

    fn is_owner(&self, seat: Seat) -> bool {
        match seat {
            Seat::Thread => matches!(self.owner(), THREAD | THREAD_ONLY),
            Seat::Runtime => self.owner() == RUNTIME,
        }
    }

    /// Passes the driver on, unless the owner has changed.
    fn pass(&self, from: u8, to: u8) {
        let passed = self
            .owner
            .compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed);
        if passed.is_ok() {
            let next = if to == RUNTIME {
                Seat::Runtime
            } else {
                Seat::Thread
            };
            self.tasks[next as usize].wake();
        }
    }

    fn is_forked(&self) -> bool {
        self.process != process::id()
    }
}

/// A task that drives, until it is dropped.
struct DrivingTask(Arc<SharedDriver>, Seat);

impl Drop for DrivingTask {
    fn drop(&mut self) {
        let Self(shared, seat) = self;
        let owner = match seat {
            Seat::Thread => OVER,
            // The thread is not there in a process that was forked.
            Seat::Runtime if shared.is_forked() => return,
            Seat::Runtime => THREAD_ONLY,
        };
        let next = |before| (before != OVER).then_some(owner);
        let (set, fetch) = (Ordering::AcqRel, Ordering::Acquire);
        let is_news = shared.owner.fetch_update(set, fetch, next).is_ok();
        if is_news && *seat == Seat::Thread {
            // It has panicked, or its runtime has ended.
            let driver = shared.lock().take();
            drop(driver);
        }
        shared.tasks.iter().for_each(AtomicWaker::wake);
    }
}

/// What the thread's task has seen of the driver while the runtime has it.
#[derive(Default)]
struct Lookout {
    /// At which turn the driver was seen to be kept waiting, and since when.
    kept_waiting: Option<(u64, Instant)>,
    /// How many commands there had been, and since when.
    commands: Option<(u64, Instant)>,
}

impl Lookout {
    fn wants(&mut self, driver: &mut Driver) -> bool {
        let now = driver.now().clock;
        let same = |seen: &mut Option<(u64, Instant)>, count: u64| match *seen {
            Some((known, since)) if known == count => now.saturating_since(since),
            _ => {
                *seen = Some((count, now));
                Duration::ZERO
            }
        };
        if !driver.is_kept_waiting(now) {
            self.kept_waiting = None;
        } else if same(&mut self.kept_waiting, driver.turns) >= LONGEST_PAUSE {
            driver.distrust_runtime();
            return true;
        }
        same(&mut self.commands, driver.commands_heard) >= RESTS_AFTER
    }
}

/// How often the thread's task looks at a driver that the runtime has.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// How long the runtime may leave something waiting.
const LONGEST_PAUSE: Duration = Duration::from_millis(20);

/// After how long without a command the thread's task drives again, so that it need not look at a client at rest.
const RESTS_AFTER: Duration = Duration::from_millis(100);

/// Lets the tasks of this thread go first that are ready.
///
/// tokio's `yield_now` looks at the sockets too, which is a call of the system each time.
async fn others_first() {
    let mut is_my_turn = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut is_my_turn, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
