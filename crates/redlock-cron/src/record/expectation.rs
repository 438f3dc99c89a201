//! The state of a job's dead-man's switch, as the nodes remember it, and what a look at it concludes.
//!
//! The nodes remember each change under a key of its own, with the number of the new state in place of a configuration.

use std::{collections::BTreeMap, time::Duration};

use chrono::{DateTime, TimeDelta, Utc};
use parking_lot::Mutex;
use redlock_core::{JobState, RunRecord, Tick};
use tokio::time::Instant;

use super::{PastRun, past_run::is_unstarted};
use crate::clock::{lag, to_instant, to_tick};

/// A state of a job's dead-man's switch.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum SwitchState {
    /// A success is expected: after this one, or after the moment of the record if there was none.
    Expected(Option<Tick>),
    /// A success is expected since this instant, and none is known.
    ExpectedSince(Tick),
    /// The success after this one, or the first, has not come in time.
    Overdue(Option<Tick>),
}

impl SwitchState {
    /// Returns the number for a record: the format, the state, and the end of the last success in milliseconds.
    pub(crate) fn number(self) -> u64 {
        let (state, instant) = match self {
            Self::Expected(success) => (0, success),
            Self::ExpectedSince(since) => (SINCE, Some(since)),
            Self::Overdue(success) => (OVERDUE, success),
        };
        FORMAT << 56 | state | instant.map_or(0, Tick::as_millis)
    }

    /// Reads the number of a record; `None` for one of another format.
    fn of(number: u64) -> Option<Self> {
        let instant = match number & (SINCE - 1) {
            0 => None,
            millis => Some(Tick::from_millis(millis)?),
        };
        match (number >> 56, number & (OVERDUE | SINCE)) {
            (FORMAT, 0) => Some(Self::Expected(instant)),
            (FORMAT, SINCE) => Some(Self::ExpectedSince(instant?)),
            (FORMAT, OVERDUE) => Some(Self::Overdue(instant)),
            _ => None,
        }
    }

    /// Names it for the record of the moment.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Expected(_) | Self::ExpectedSince(_) => "expected",
            Self::Overdue(_) => "overdue",
        }
    }

    /// Returns the success of which it is known.
    fn success(self) -> Option<DateTime<Utc>> {
        match self {
            Self::Expected(success) | Self::Overdue(success) => success.map(to_instant),
            Self::ExpectedSince(_) => None,
        }
    }

    /// Returns the newest state that the nodes remember, and its moment; the claim of the moment `own` does not count.
    pub(crate) fn newest(state: &JobState, own: Option<Tick>) -> Option<(Self, DateTime<Utc>)> {
        let is_state = |run: &&RunRecord| !is_unstarted(run) && Some(run.tick) != own;
        let run = state.runs.iter().find(is_state)?;
        Some((Self::of(run.fingerprint)?, to_instant(run.tick)))
    }
}

/// The conclusion of a look at a job's dead-man's switch.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Conclusion {
    /// The success that is expected may still come until this instant.
    Until(DateTime<Utc>),
    /// A success is overdue, and a replica has said so.
    Overdue,
    /// The state has changed, and no replica has said so.
    Changed(SwitchState),
    /// The state is as it was, and the nodes are about to forget the runs since it was recorded.
    Fading(SwitchState),
}

impl Conclusion {
    /// Concludes from the last success that is known and from the state that the nodes remember.
    ///
    /// A success that is not known may have ended at `unknown`, if that is given.
    pub(crate) fn of(
        LastSuccess { success, unknown }: LastSuccess,
        state: Option<(SwitchState, DateTime<Utc>)>,
        kept: KeptRuns,
        within: Duration,
        now: DateTime<Utc>,
    ) -> Self {
        let ended = success.and_then(to_tick);
        let since = match (success, state) {
            (_, Some((SwitchState::Overdue(before), _))) if ended.is_none() || ended == before => {
                return Self::Overdue;
            }
            (None, None) => return Self::Changed(SwitchState::Expected(None)),
            (None, Some((SwitchState::ExpectedSince(since), _))) => to_instant(since),
            (None, Some((_, moment))) => moment,
            (Some(success), _) => success,
        };
        let since = unknown.map_or(since, |unknown| since.max(unknown));
        if lag(since, now) > within {
            return Self::Changed(SwitchState::Overdue(ended));
        }
        match state {
            Some((SwitchState::Overdue(_), _)) => Self::Changed(SwitchState::Expected(ended)),
            _ if kept.are_fading(since, state) => Self::Fading(match to_tick(since) {
                Some(since) if Some(since) != ended => SwitchState::ExpectedSince(since),
                _ => SwitchState::Expected(ended),
            }),
            _ => {
                let within = TimeDelta::from_std(within).unwrap_or(TimeDelta::MAX);
                let until = since.checked_add_signed(within);
                Self::Until(until.unwrap_or(DateTime::<Utc>::MAX_UTC))
            }
        }
    }

    /// Returns whether the job is overdue.
    #[cfg(feature = "metrics")]
    pub(crate) fn is_overdue(self) -> bool {
        matches!(self, Self::Overdue | Self::Changed(SwitchState::Overdue(_)))
    }
}

/// Returns when a run ended, by the clock of its replica, but after its tick: that clock may be behind.
pub(crate) fn ended_at(run: &PastRun) -> DateTime<Utc> {
    let took = TimeDelta::from_std(run.took().unwrap_or_default()).unwrap_or(TimeDelta::zero());
    let began = run.claimed_at().max(run.tick());
    let ended = began.checked_add_signed(took).unwrap_or(began);
    // As the nodes count, so that it is the same instant after it was remembered.
    to_tick(ended).map_or(ended, to_instant)
}

/// The last success of a job, as far as it is known.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LastSuccess {
    success: Option<DateTime<Utc>>,
    /// Until when another could have ended of which the nodes do not tell any more.
    unknown: Option<DateTime<Utc>>,
}

/// The runs of a job that the nodes remember: for how long, and since when they remember all.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeptRuns {
    /// How long the nodes remember a run, at the rate of the runs so far.
    pub(crate) span: Duration,
    /// None if no earlier run was forgotten.
    since: Option<DateTime<Utc>>,
    /// The newer half begins here.
    half: Option<DateTime<Utc>>,
}

impl KeptRuns {
    /// Looks at the runs of each series, because nodes remember a number of each.
    pub(crate) fn of(runs: &[PastRun], now: DateTime<Utc>) -> Self {
        let mut series: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for PastRun { record } in runs {
            let ticks = series.entry(record.series).or_default();
            ticks.push(to_instant(record.tick));
        }
        let mut kept = Self {
            span: Duration::MAX,
            since: None,
            half: None,
        };
        for mut ticks in series.into_values() {
            ticks.sort();
            let count = u32::try_from(ticks.len()).unwrap_or(u32::MAX);
            kept.span = kept.span.min(lag(ticks[0], now) * KEPT / count);
            if count >= KEPT && kept.since < Some(ticks[0]) {
                kept.since = Some(ticks[0]);
                kept.half = Some(ticks[ticks.len() / 2]);
            }
        }
        kept
    }

    /// Returns whether the nodes may soon forget that no run has ended well since this instant.
    fn are_fading(self, since: DateTime<Utc>, state: Option<(SwitchState, DateTime<Utc>)>) -> bool {
        let is_old = |instant| self.half.is_some_and(|half| instant < half);
        is_old(since) && state.is_none_or(|(_, recorded)| is_old(recorded))
    }
}

/// The looks of this replica at a job's dead-man's switch.
#[derive(Debug, Default)]
pub(crate) struct ExpectationLooks(Mutex<Looks>);

#[derive(Debug, Default)]
struct Looks {
    /// When to look next; at once, if it is not said.
    next: Option<Instant>,
    is_looking: bool,
    /// When the newest run that this replica knows of ended well: the nodes may forget it.
    success: Option<DateTime<Utc>>,
    /// When it looked last, by the nodes' clocks.
    looked: Option<DateTime<Utc>>,
    /// Until when another could have ended.
    unknown: Option<DateTime<Utc>>,
}

impl ExpectationLooks {
    /// Returns whether the caller must look now.
    pub(crate) fn begin(&self) -> bool {
        let mut looks = self.0.lock();
        let is_due = looks.next.is_none_or(|next| next <= Instant::now());
        is_due && !std::mem::replace(&mut looks.is_looking, true)
    }

    /// Notes that a look has ended, and that the next is due after `pause`.
    pub(crate) fn end(&self, pause: Duration) {
        let mut looks = self.0.lock();
        looks.is_looking = false;
        looks.next = Some(Instant::now() + pause);
    }

    /// Returns the last success that is known, after the nodes have told of this one, of this state, and of these runs.
    pub(crate) fn last_success(
        &self,
        success: Option<DateTime<Utc>>,
        state: Option<(SwitchState, DateTime<Utc>)>,
        kept: KeptRuns,
        now: DateTime<Utc>,
    ) -> LastSuccess {
        let mut looks = self.0.lock();
        let recorded = state.and_then(|(state, _)| state.success());
        looks.success = looks.success.max(success).max(recorded);
        // All runs before were seen by this replica, or by the one that recorded the state.
        let seen = looks.looked.max(state.map(|(_, moment)| moment));
        if seen < kept.since {
            looks.unknown = kept.since;
        }
        if let Some((SwitchState::ExpectedSince(since), _)) = state {
            looks.unknown = looks.unknown.max(Some(to_instant(since)));
        }
        looks.looked = Some(now);
        LastSuccess {
            success: looks.success,
            unknown: looks.unknown,
        }
    }
}

const OVERDUE: u64 = 1 << 55;
const SINCE: u64 = 1 << 54;

/// How many runs of a series nodes remember.
#[expect(clippy::cast_possible_truncation, reason = "it is about a hundred")]
const KEPT: u32 = JobState::MOST as u32;

/// Not the format of fingerprints or pauses, so that none is taken for another.
const FORMAT: u64 = 4;

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(1_800_000_000 + second, 0).unwrap()
    }

    #[test]
    fn a_state_that_is_written_is_read() {
        for success in [None, to_tick(at(5))] {
            for state in [
                SwitchState::Expected(success),
                SwitchState::Overdue(success),
            ] {
                assert_eq!(SwitchState::of(state.number()), Some(state));
            }
        }
        let since = SwitchState::ExpectedSince(to_tick(at(5)).unwrap());
        assert_eq!(SwitchState::of(since.number()), Some(since));
        assert_eq!(SwitchState::of(0x0100_0000_0000_0001), None);
        assert_eq!(SwitchState::Expected(None).number(), 0x0400_0000_0000_0000);
    }

    #[test]
    fn a_lapse_is_concluded_once_and_ends_with_a_success() {
        let minute = Duration::from_secs(60);
        let concluded = |success: Option<i64>, state, now| {
            let last = LastSuccess {
                success: success.map(at),
                unknown: None,
            };
            let kept = KeptRuns::of(&[], at(now));
            Conclusion::of(last, state, kept, minute, at(now))
        };
        let begun = SwitchState::Expected(None);
        assert_eq!(concluded(None, None, 0), Conclusion::Changed(begun));
        let begun = Some((begun, at(0)));
        assert_eq!(concluded(None, begun, 60), Conclusion::Until(at(60)));
        let never = SwitchState::Overdue(None);
        assert_eq!(concluded(None, begun, 61), Conclusion::Changed(never));
        let never = Some((never, at(61)));
        assert_eq!(concluded(None, never, 200), Conclusion::Overdue);
        let first = SwitchState::Expected(to_tick(at(200)));
        assert_eq!(concluded(Some(200), never, 201), Conclusion::Changed(first));
        let first = Some((first, at(201)));
        assert_eq!(concluded(Some(230), first, 231), Conclusion::Until(at(290)));
        let second = SwitchState::Overdue(to_tick(at(230)));
        assert_eq!(
            concluded(Some(230), first, 291),
            Conclusion::Changed(second)
        );
        let second = Some((second, at(291)));
        assert_eq!(concluded(Some(230), second, 999), Conclusion::Overdue);
        // The nodes have forgotten it, behind runs that failed.
        assert_eq!(concluded(None, second, 999), Conclusion::Overdue);
        // It ended the lapse, and no replica was up until the next.
        let third = SwitchState::Overdue(to_tick(at(400)));
        assert_eq!(
            concluded(Some(400), second, 999),
            Conclusion::Changed(third)
        );
    }
}
