use std::{fmt, sync::Arc, time::Duration};

use chrono::{DateTime, TimeDelta, Utc};
use parking_lot::Mutex;
use redlock_core::MemoryNode;
use tokio::time::{Instant, advance, sleep};

use super::WallClock;

/// The time of day in tests of jobs: it begins at the instant that the test sets, and goes on with tokio's time.
///
/// It needs the feature `test-util`, which is for `[dev-dependencies]`.
/// In a test with paused time, a night passes at once, and everything that is due in it happens in order.
/// The code of production finds, claims and runs the ticks, over [nodes in memory](Self::nodes) whose clocks show the
/// same time.
/// Only the alarm differs: it looks for ticks every second, because tokio-cron-scheduler knows only the machine's
/// clock.
///
/// Clones show the same time, and all replicas of a test share one clock.
/// The page about [tests](crate::guide::testing) has examples.
///
/// # Examples
///
/// ```
/// use redlock_core::Redlock;
/// use redlock_cron::{BoxError, JobClock, Outcome, SingletonJob, SingletonScheduler};
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), BoxError> {
/// // In #[tokio::test(start_paused = true)]:
/// let clock = JobClock::starting_at("2026-11-21T18:00:00Z".parse()?);
/// let redlock = Redlock::builder().nodes(clock.nodes(3)).virtual_time().build().await?;
/// let jobs = SingletonScheduler::standalone(redlock).namespace("billing").clock(&clock).build()?;
/// let close_day = |_| async { Ok::<(), BoxError>(()) };
/// jobs.add(SingletonJob::cron("close-day", "0 0 2 * * *", "Europe/Berlin", close_day)).await?;
/// jobs.start().await?;
///
/// let report = jobs.advance_to_next_tick("close-day").await?;
/// assert_eq!(report.tick().to_rfc3339(), "2026-11-22T01:00:00+00:00");
/// assert_eq!(report.outcome(), Outcome::Ok);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct JobClock {
    origin: Instant,
    begin: DateTime<Utc>,
    known: Arc<Mutex<ClockUsers>>,
}

/// The nodes and the schedulers that use the clock.
#[derive(Default)]
struct ClockUsers {
    nodes: Vec<MemoryNode>,
    schedulers: Vec<Box<dyn Driven>>,
}

/// A scheduler that uses the clock.
pub(crate) trait Driven: Send + Sync {
    /// Returns when it has something to do next, the present included; `None` once it is gone.
    fn next(&self, now: DateTime<Utc>) -> Option<DateTime<Utc>>;

    /// Returns whether it has yet to ask for a tick that is due at `instant` or was before.
    fn is_undecided(&self, instant: DateTime<Utc>, now: DateTime<Utc>) -> bool;
}

impl JobClock {
    /// Makes a clock that shows `begin` now.
    pub fn starting_at(begin: DateTime<Utc>) -> Self {
        Self {
            origin: Instant::now(),
            begin,
            known: Arc::default(),
        }
    }

    /// Returns the time that the clock shows.
    pub fn now(&self) -> DateTime<Utc> {
        let since = TimeDelta::from_std(self.origin.elapsed()).unwrap_or(TimeDelta::MAX);
        let now = self.begin.checked_add_signed(since);
        now.unwrap_or(DateTime::<Utc>::MAX_UTC)
    }

    /// Makes nodes whose clocks show the same time, because the nodes' clocks decide when a tick may be claimed.
    pub fn nodes(&self, count: usize) -> Vec<MemoryNode> {
        let nodes = std::iter::repeat_with(MemoryNode::new).take(count);
        let nodes: Vec<_> = nodes.collect();
        nodes
            .iter()
            .for_each(|node| node.set_clock(self.now().into()));
        self.known.lock().nodes.extend(nodes.iter().cloned());
        nodes
    }

    /// Lets time pass until the clock shows `instant`, and everything that is due up to then has happened.
    ///
    /// A replica asks for a tick within half a second, or within the [spread](crate::SingletonJob::spread) that the test
    /// has set.
    /// So if a tick is due at `instant` or right before it, the clock shows up to that much more at the end.
    /// The method does not wait for runs that go on then.
    ///
    /// An `instant` in the past is no error.
    ///
    /// While nothing is locked on the clock's nodes, and its schedulers have nothing to do, time passes in steps of a
    /// minute.
    /// A test's own timers that are due in such a step fire at its end, as after [`tokio::time::advance`].
    /// A node that was [cleared](MemoryNode::clear) ages only when its clients look at it, which they do rarely in
    /// these steps: let its quarantine pass with [`tokio::time::sleep`], in which time passes without steps.
    ///
    /// # Panics
    ///
    /// If tokio's time is not paused.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, time has passed up to that moment.
    ///
    /// # Examples
    ///
    /// ```
    /// use redlock_cron::JobClock;
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let clock = JobClock::starting_at("2026-11-21T18:00:00Z".parse()?);
    /// clock.advance_to("2026-11-24T06:00:00Z".parse()?).await;
    /// assert_eq!(clock.now().to_rfc3339(), "2026-11-24T06:00:00+00:00");
    /// # Ok(())
    /// # }
    /// ```
    pub async fn advance_to(&self, instant: DateTime<Utc>) {
        // tokio says if time is not paused; else a test would wait for a real night.
        advance(Duration::ZERO).await;
        loop {
            let left = until(self.now(), instant);
            if left.is_zero() {
                if !self.is_undecided(instant) {
                    return;
                }
                sleep(MOMENT).await;
                continue;
            }
            // In a step, clients hear nothing of their nodes; after it, they have time for that.
            let idle = until(self.now(), self.next(instant)).saturating_sub(SHORTEST_STEP);
            if idle > SHORTEST_STEP {
                // No task is in the middle of anything: a timer fires after all that can go on has done so.
                advance(idle.min(LONGEST_STEP)).await;
                sleep(MOMENT).await;
            } else {
                sleep(left.min(SHORTEST_STEP)).await;
            }
        }
    }

    /// Adds a scheduler that uses this clock.
    pub(crate) fn drives(&self, scheduler: impl Driven + 'static) {
        self.known.lock().schedulers.push(Box::new(scheduler));
    }

    /// Returns whether a replica has yet to ask for a tick that is due at `instant` or was before.
    fn is_undecided(&self, instant: DateTime<Utc>) -> bool {
        let now = self.now();
        let known = self.known.lock();
        let mut schedulers = known.schedulers.iter();
        schedulers.any(|scheduler| scheduler.is_undecided(instant, now))
    }

    /// Returns the earliest time at which a node or a scheduler may have something to do, `instant` at the latest.
    fn next(&self, instant: DateTime<Utc>) -> DateTime<Utc> {
        let now = self.now();
        let mut known = self.known.lock();
        if known.nodes.iter().any(|node| node.keys() > 0) {
            return now;
        }
        let mut soonest = instant;
        known.schedulers.retain(|scheduler| {
            let next = scheduler.next(now);
            soonest = soonest.min(next.unwrap_or(instant));
            next.is_some()
        });
        soonest
    }
}

impl WallClock for JobClock {
    fn now(&self) -> DateTime<Utc> {
        Self::now(self)
    }

    fn of_test(&self) -> Option<&JobClock> {
        Some(self)
    }
}

impl fmt::Debug for JobClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("JobClock").field(&self.now()).finish()
    }
}

/// Returns how long it is from one instant to another; zero if that has passed.
fn until(now: DateTime<Utc>, instant: DateTime<Utc>) -> Duration {
    (instant - now).to_std().unwrap_or_default()
}

/// The longest delay of a timer of the test.
const LONGEST_STEP: Duration = Duration::from_secs(60);

/// Time up to something nearer than this is not stepped over.
const SHORTEST_STEP: Duration = Duration::from_secs(1);

/// After a step, everything that was due in it goes on before the next.
const MOMENT: Duration = Duration::from_millis(1);
