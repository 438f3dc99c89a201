//! The settings of a job.

use std::{ops::RangeInclusive, time::Duration};

use redlock_core::{Redlock, Slots};

use crate::{Delivery, Missed, OnLost, Overlap, SetupError, Tries, schedule::Schedule};

/// The settings of a job: as the application gave them, or in force.
///
/// `T` is the type of the times whose defaults depend on the schedule and the client: [`Option`] as given, and
/// [`Duration`] in force.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct JobSettings<T> {
    /// By how much the nodes' clocks may be after the tick.
    pub(crate) start_within: T,
    /// The time to live of the lease that a run holds.
    pub(crate) ttl: T,
    pub(crate) overlap: Overlap,
    pub(crate) missed: Missed,
    /// How late a missed tick may be started: with [`Missed::Skip`], as late as any other.
    pub(crate) catch_up_window: T,
    pub(crate) delivery: Delivery,
    pub(crate) on_lost: OnLost,
    pub(crate) max_runtime: Option<Duration>,
    pub(crate) spread: T,
    pub(crate) tries: Tries,
    /// How long the job may have no successful run before its replicas say so.
    pub(crate) expect_success_within: Option<Duration>,
    /// Whether nodes remember the texts of its errors.
    pub(crate) remember_errors: bool,
}

impl JobSettings<Option<Duration>> {
    /// Checks the settings, and fills in the defaults of those that were not given.
    pub(crate) fn in_force(
        self,
        schedule: &Schedule,
        redlock: &Redlock,
    ) -> Result<JobSettings<Duration>, SetupError> {
        let start_within = match self.start_within {
            Some(limit) => limit,
            None => default_start_within(schedule.shortest_gap()),
        };
        check(
            "start_within",
            start_within,
            SHORTEST_START_WITHIN..=LONGEST_WINDOW,
        )?;
        let ttl = self.ttl.unwrap_or_else(|| redlock.ttl());
        check("ttl", ttl, Redlock::MIN_TTL..=redlock.max_ttl())?;
        if let Some(limit) = self.max_runtime {
            check("max_runtime", limit, SHORTEST_RUNTIME..=Duration::MAX)?;
        }
        if let Some(within) = self.expect_success_within {
            check(
                "expect_success_within",
                within,
                SHORTEST_EXPECTATION..=LONGEST_WINDOW,
            )?;
        }
        let spread = self.spread.unwrap_or_else(|| SPREAD.min(start_within / 4));
        check("spread", spread, Duration::ZERO..=start_within / 4)?;
        self.check_overlap(start_within)?;
        if !(1..=MOST_TRIES).contains(&self.tries.most) {
            let message = format!("{} is not between 1 and {MOST_TRIES}", self.tries.most);
            return Err(SetupError::misuse("tries", message));
        }
        let Tries { first, longest, .. } = self.tries;
        check("backoff", longest, SHORTEST_PAUSE..=LONGEST_PAUSE)?;
        check("backoff", first, SHORTEST_PAUSE..=longest)?;
        let catch_up_window = self.window_in_force(start_within)?;
        self.check_delivery()?;
        Ok(JobSettings {
            start_within,
            ttl,
            overlap: self.overlap,
            missed: self.missed,
            catch_up_window,
            delivery: self.delivery,
            on_lost: self.on_lost,
            max_runtime: self.max_runtime,
            spread,
            tries: self.tries,
            expect_success_within: self.expect_success_within,
            remember_errors: self.remember_errors,
        })
    }

    fn check_overlap(&self, start_within: Duration) -> Result<(), SetupError> {
        match self.overlap {
            Overlap::CancelOther if start_within < SHORTEST_CANCELLATION => {
                let message = format!(
                    "{start_within:?} is too short for Overlap::CancelOther: a run may take \
                     {SHORTEST_CANCELLATION:?} to end"
                );
                Err(SetupError::contradiction("start_within", message))
            }
            Overlap::UpTo(1) => {
                let message =
                    "Overlap::UpTo(1) is Overlap::Skip, whose runs have fencing tokens in order";
                Err(SetupError::misuse("overlap", message))
            }
            Overlap::UpTo(most) if !(2..=Slots::MAX_COUNT).contains(&most) => {
                let most_slots = Slots::MAX_COUNT;
                let message = format!("Overlap::UpTo({most}) is not between 2 and {most_slots}");
                Err(SetupError::misuse("overlap", message))
            }
            _ => Ok(()),
        }
    }

    /// Returns how late a tick may be started that was missed.
    fn window_in_force(&self, start_within: Duration) -> Result<Duration, SetupError> {
        let contradiction = |field, message: &str| Err(SetupError::contradiction(field, message));
        match (self.missed, self.catch_up_window) {
            (Missed::Skip, None) => return Ok(start_within),
            (Missed::Skip, Some(_)) => {
                return contradiction("catch_up_window", "it says nothing with Missed::Skip");
            }
            (Missed::All { max }, _) if !(1..=MOST_MISSED).contains(&max) => {
                let message =
                    format!("Missed::All has a max of {max}; it must be 1 to {MOST_MISSED}");
                return Err(SetupError::misuse("missed", message));
            }
            (Missed::All { .. }, _)
                if matches!(
                    self.overlap,
                    Overlap::Allow | Overlap::UpTo(_) | Overlap::CancelOther
                ) =>
            {
                let message = "Missed::All runs ticks one after another, which Overlap::Allow, \
                               Overlap::UpTo and Overlap::CancelOther do not";
                return contradiction("missed", message);
            }
            _ => {}
        }
        let window = self.catch_up_window;
        let window = window.unwrap_or_else(|| CATCH_UP_WINDOW.max(start_within));
        check("catch_up_window", window, start_within..=LONGEST_WINDOW)?;
        Ok(window)
    }

    fn check_delivery(&self) -> Result<(), SetupError> {
        let Delivery::AtLeastOnce { max_attempts } = self.delivery else {
            return Ok(());
        };
        if !(2..=MOST_ATTEMPTS).contains(&max_attempts) {
            let message =
                format!("max_attempts is {max_attempts}; it must be 2 to {MOST_ATTEMPTS}");
            return Err(SetupError::misuse("delivery", message));
        }
        let message = match (self.overlap, self.on_lost) {
            (Overlap::Allow, _) => {
                "with Overlap::Allow, nobody can tell which ticks still run, and which must start again"
            }
            (Overlap::UpTo(_), _) => {
                "with Overlap::UpTo, nobody can tell which ticks still run, and which must start again"
            }
            (_, OnLost::Signal) => {
                "with OnLost::Signal, a run may go on beside the one that is started in its place"
            }
            _ => return Ok(()),
        };
        Err(SetupError::contradiction("delivery", message))
    }
}

impl JobSettings<Duration> {
    /// Returns the most runs of one tick.
    pub(crate) fn max_attempts(&self) -> u32 {
        match self.delivery {
            Delivery::AtMostOnce => 1,
            Delivery::AtLeastOnce { max_attempts } => max_attempts,
        }
    }

    /// Returns how late a tick may be started again whose run was cut short.
    pub(crate) fn retry_within(&self) -> Duration {
        let (window, further) = (self.catch_up_window, self.max_attempts() - 1);
        if further == 0 {
            return window;
        }
        // The first run began in time, each took as long as it may, and its lease ended before the next began.
        let runs = self
            .max_runtime
            .map(|each| each.saturating_add(self.ttl).saturating_mul(further));
        let limit = runs.map_or(RETRY_WITHIN, |runs| window.saturating_add(runs));
        limit.max(window).min(LONGEST_WINDOW)
    }
}

/// Returns by how much the nodes' clocks may be before a tick that is claimed.
///
/// Nodes that lost data are quarantined for longer than `max_ttl`, which makes up for replicas that disagree on this.
pub(crate) fn early(redlock: &Redlock) -> Duration {
    EARLY.min(redlock.max_ttl() / 2)
}

/// Returns half of the time between two ticks, so that a tick does not wait for the next one, but a minute at most, and
/// no less than a busy machine needs.
fn default_start_within(shortest_gap: Option<Duration>) -> Duration {
    let half = shortest_gap.map_or(LONGEST_DEFAULT, |gap| gap / 2);
    half.clamp(SHORTEST_DEFAULT, LONGEST_DEFAULT)
}

fn check(
    field: &'static str,
    value: Duration,
    range: RangeInclusive<Duration>,
) -> Result<(), SetupError> {
    if range.contains(&value) {
        return Ok(());
    }
    let (least, most) = range.into_inner();
    let message = format!("{value:?} is not between {least:?} and {most:?}");
    Err(SetupError::misuse(field, message))
}

/// A replica keeps them in memory while they wait.
const MOST_MISSED: usize = 100_000;

const MOST_ATTEMPTS: u32 = 10;

/// The most runs of one tick, those included that used up no attempt: for each there is a key on the nodes.
pub(crate) const MOST_RUNS: u32 = 50;

/// A second until it is known that a run goes on, until that learns of it, until it is dropped, and for the claim.
const SHORTEST_CANCELLATION: Duration = Duration::from_secs(4);

const SHORTEST_RUNTIME: Duration = Duration::from_millis(1);

/// Replicas look once a second at the most.
const SHORTEST_EXPECTATION: Duration = Duration::from_secs(1);

const MOST_TRIES: u32 = 1_000;
const SHORTEST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(24 * 60 * 60);

/// Replicas that are asked a few milliseconds apart do not meet, and a person does not notice.
const SPREAD: Duration = Duration::from_millis(500);

const EARLY: Duration = Duration::from_secs(2);

/// tokio-cron-scheduler looks at its jobs every half second, so a shorter limit would refuse ticks
/// that are not late at all.
const SHORTEST_START_WITHIN: Duration = Duration::from_secs(1);
const SHORTEST_DEFAULT: Duration = Duration::from_secs(5);
const LONGEST_DEFAULT: Duration = Duration::from_secs(60);
const CATCH_UP_WINDOW: Duration = Duration::from_secs(24 * 60 * 60);
/// The default for a job without `max_runtime`, whose runs may take any time.
const RETRY_WITHIN: Duration = Duration::from_secs(24 * 60 * 60);
/// The longest window that nodes know.
pub(crate) const LONGEST_WINDOW: Duration = Duration::from_secs(365 * 24 * 60 * 60);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tick_waits_for_half_of_the_time_to_the_next_within_bounds() {
        let seconds = Duration::from_secs;
        for (gap, expected) in [(1, 5), (5, 5), (60, 30), (86_400, 60)] {
            let default = default_start_within(Some(seconds(gap)));
            assert_eq!(default.as_secs(), expected, "{gap}");
        }
        assert_eq!(default_start_within(None), seconds(60));
    }
}
