use std::time::Duration;

use super::standstill::{Baseline, ClockOffset, ClockReading, Tracks};
use crate::{Instant, NodeTime, Quorum, RunId};

/// Whose wall clocks agree, by the last answer of each node.
///
/// Nodes expire keys by their wall clocks, so a node whose clock is set forward expires keys of leases that are valid.
/// Every answer carries the node's clock.
/// Votes count only from nodes whose clocks agree within [`TOLERANCE`](Self::TOLERANCE), as far as the way of the
/// answer allows to tell.
/// For votes, the readings that came with the votes themselves decide that: see [`Votes`](crate::Votes).
/// These readings say where a node stands when it is not asked for a vote.
#[derive(Clone, Debug)]
pub struct Clocks {
    quorum: Quorum,
    /// The last answer of each node over the present connection.
    // invariant: one entry per node
    readings: Vec<Option<ClockReading>>,
    tracks: Tracks,
}

impl Clocks {
    /// The most by which clocks that agree may differ.
    pub const TOLERANCE: Duration = Duration::from_secs(1);

    /// For how long an answer tells of a clock: the client, or the node's clock, may stand still unnoticed.
    pub const LONGEST_AGE: Duration = Duration::from_secs(10);

    /// Makes a record of clocks of which nothing is known yet.
    pub fn new(quorum: Quorum) -> Self {
        Self {
            quorum,
            readings: vec![None; quorum.nodes()],
            tracks: Tracks::new(quorum),
        }
    }

    /// Notes the time that a node's clock showed, in this run of the server.
    pub fn note(&mut self, node: usize, run: &RunId, reading: ClockReading) {
        let Some(last) = self.readings.get_mut(node) else {
            return;
        };
        *last = Some(reading);
        self.tracks.note(node, run, &reading);
    }

    /// Forgets the clock of a node whose connection was lost, because another server may be behind the next one.
    pub fn forget(&mut self, node: usize) {
        if let Some(last) = self.readings.get_mut(node) {
            *last = None;
        }
    }

    /// Returns what the clocks are compared with later that have gone ahead since now.
    pub(crate) fn baseline(&mut self, now: Instant) -> Baseline {
        self.tracks.baseline(now)
    }

    /// Returns by how many microseconds the clocks of a majority have gone ahead of the client's for certain since then.
    pub(crate) fn ahead_since(&self, baseline: &Baseline) -> i64 {
        self.tracks.ahead_since(baseline)
    }

    /// Returns whether a node's clock has gone ahead by more than this since leases were looked at last.
    pub(crate) fn is_news(&self, node: usize, by: Duration) -> bool {
        self.tracks.is_news(node, by)
    }

    /// Notes that all leases were looked at.
    pub(crate) fn on_look(&mut self) {
        self.tracks.on_look();
    }

    /// Returns what a node's clock showed in its last answer.
    pub fn time(&self, node: usize) -> Option<NodeTime> {
        Some(self.readings.get(node)?.as_ref()?.time)
    }

    /// Returns what a node's clock shows now, unless nothing was heard of it for long.
    ///
    /// It is known to about half the time that the node's last answer was on its way.
    pub fn shown(&self, node: usize, now: Instant) -> Option<NodeTime> {
        let ClockOffset { least, most } = self.fresh(now).nth(node).flatten()?;
        shown(now, i128::midpoint(least, most))
    }

    /// Returns whether the clocks of a majority are known, so that it can be told which agree.
    pub fn are_comparable(&self, now: Instant) -> bool {
        self.fresh(now).flatten().count() >= self.quorum.majority()
    }

    /// Returns whether the node's clock agrees with those of a majority.
    pub fn agrees(&self, node: usize, now: Instant) -> bool {
        let Some(own) = self.fresh(now).nth(node).flatten() else {
            return false;
        };
        let start = self.agreement(now);
        start.is_some_and(|start| is_within(start, own))
    }

    /// Returns what the clock in the middle of those that agree shows now, if a majority does.
    ///
    /// Each is known to about half the time that its last answer was on its way.
    pub fn middle(&self, now: Instant) -> Option<NodeTime> {
        let start = self.agreement(now)?;
        let known = self.fresh(now).flatten();
        let agreeing = known.filter(|ahead| is_within(start, *ahead));
        let mut ahead: Vec<i128> = agreeing
            .map(|ClockOffset { least, most }| i128::midpoint(least, most))
            .collect();
        ahead.sort_unstable();
        ahead
            .get(ahead.len() / 2)
            .and_then(|middle| shown(now, *middle))
    }

    fn agreement(&self, now: Instant) -> Option<i128> {
        let (start, size) = largest_group(&self.fresh(now).flatten())?;
        (size >= self.quorum.majority()).then_some(start)
    }

    /// Returns by how much each node's clock is ahead, unless nothing was heard of it for long.
    fn fresh(&self, now: Instant) -> impl Iterator<Item = Option<ClockOffset>> + Clone {
        self.readings.iter().map(move |reading| {
            let reading = (*reading)?;
            let age = now.saturating_since(reading.received);
            (age <= Self::LONGEST_AGE).then(|| reading.ahead_by(now))
        })
    }
}

/// The largest group of clocks that agree.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Agreement {
    /// Where the tolerance begins within which they lie.
    start: i128,
}

impl Agreement {
    /// Returns the largest group among the clocks of these readings; `None` if there are none.
    ///
    /// They are of one round, so that no reading is older than the others.
    pub(crate) fn of(readings: impl Iterator<Item = ClockReading> + Clone) -> Option<Self> {
        let (start, _) = largest_group(&readings.map(|reading| reading.ahead()))?;
        Some(Self { start })
    }

    /// Returns whether the clock of this reading is in it.
    pub(crate) fn includes(self, reading: &ClockReading) -> bool {
        is_within(self.start, reading.ahead())
    }
}

/// Returns what a clock shows that is `ahead` of the client's, in microseconds.
fn shown(now: Instant, ahead: i128) -> Option<NodeTime> {
    let time = now.since_origin().as_micros().cast_signed() + ahead;
    u64::try_from(time).ok().map(NodeTime::from_micros)
}

/// Returns where the tolerance begins within which the largest group of clocks lies, and how large it is.
fn largest_group<C>(clocks: &C) -> Option<(i128, usize)>
where
    C: Iterator<Item = ClockOffset> + Clone,
{
    // The window of the largest group begins where the range of one clock ends: moving it later from there loses that
    // member, and moving it earlier gains none that begins later.
    let size = |start| {
        clocks
            .clone()
            .filter(|ahead| is_within(start, *ahead))
            .count()
    };
    // Of groups of one size, the one whose clocks are behind: its nodes keep keys for longest.
    let starts = clocks.clone().map(|ahead| ahead.most);
    starts
        .map(|start| (start, size(start)))
        .max_by_key(|(start, size)| (*size, -start))
}

/// Returns whether a clock that is ahead of ours by this can be among those that agree.
fn is_within(start: i128, ClockOffset { least, most }: ClockOffset) -> bool {
    let tolerance = Clocks::TOLERANCE.as_micros().cast_signed();
    least <= start + tolerance && most >= start
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::num::NonZeroUsize;

    const HOUR: i64 = 3_600_000;

    /// Returns clocks that are ahead by these numbers of milliseconds, read over a connection that takes 2 ms.
    fn clocks(ahead: &[i64]) -> Clocks {
        let mut clocks = Clocks::new(Quorum::of(NonZeroUsize::new(ahead.len()).unwrap()));
        for (node, ahead) in ahead.iter().enumerate() {
            let time = u64::try_from(10 * HOUR + 1 + ahead).unwrap() * 1_000;
            note(&mut clocks, node, time, (0, 2));
        }
        clocks
    }

    fn note(clocks: &mut Clocks, node: usize, micros: u64, (sent, received): (u64, u64)) {
        let reading = ClockReading {
            time: NodeTime::from_micros(micros),
            sent: at(sent),
            received: at(received),
        };
        clocks.note(node, &RunId::from("run"), reading);
    }

    fn at(ms: u64) -> Instant {
        Instant::from_origin(Duration::from_millis(ms))
    }

    fn agreeing(ahead: &[i64]) -> Vec<bool> {
        let clocks = clocks(ahead);
        (0..ahead.len())
            .map(|node| clocks.agrees(node, at(5)))
            .collect()
    }

    // Shows: L2.2.
    #[test]
    fn s14_a_clock_that_is_an_hour_off_is_left_out() {
        assert_eq!(
            agreeing(&[0, HOUR, 3, -4, 8]),
            [true, false, true, true, true]
        );
        assert_eq!(agreeing(&[-HOUR, 0, 500]), [false, true, true]);
        assert_eq!(agreeing(&[0, 1_200, 500]), [true, false, true]);
    }

    // Shows: L2.3.
    #[test]
    fn without_a_majority_that_agrees_nobody_does() {
        assert_eq!(agreeing(&[0, HOUR, 2 * HOUR]), [false; 3]);
        assert_eq!(agreeing(&[0, HOUR]), [false; 2]);
        assert_eq!(agreeing(&[HOUR]), [true]);
    }

    #[test]
    fn the_time_is_that_of_the_clock_in_the_middle_of_those_that_agree() {
        let time = |ahead: &[i64]| {
            let clocks = clocks(ahead);
            let time = clocks.middle(at(5))?;
            Some(i64::try_from(time.as_millis()).unwrap() - 10 * HOUR - 5)
        };
        assert_eq!(time(&[0, 300, -20]), Some(0));
        assert_eq!(time(&[7, HOUR, 9, -HOUR, 8]), Some(8));
        assert_eq!(time(&[0, HOUR, 2 * HOUR]), None);
        assert_eq!(
            Clocks::new(Quorum::of(NonZeroUsize::MIN)).middle(at(5)),
            None
        );
        // It goes on with ours.
        let later = clocks(&[0; 3]).middle(at(1_000)).unwrap();
        assert_eq!(later.as_millis(), 36_001_000);
    }

    // Shows: L2.2.
    #[test]
    fn s14_readings_that_are_old_say_nothing() {
        let mut clocks = clocks(&[0, 0, 0]);
        let limit = 2 + 10_000;
        assert!(clocks.agrees(0, at(limit)) && clocks.are_comparable(at(limit)));
        assert!(!clocks.agrees(0, at(limit + 1)) && !clocks.are_comparable(at(limit + 1)));
        // A client that stood still must not take a new reading for right because of old ones.
        let hour = 3_600_000_000;
        note(&mut clocks, 0, 11 * hour, (600_000, 600_000));
        assert!(!clocks.agrees(0, at(600_000)));
    }

    #[test]
    fn what_was_forgotten_does_not_agree() {
        let mut clocks = clocks(&[0, 0, 0]);
        clocks.forget(1);
        assert!(clocks.agrees(0, at(5)) && !clocks.agrees(1, at(5)));
        assert!(clocks.are_comparable(at(5)));
        clocks.forget(2);
        assert!(!clocks.are_comparable(at(5)));
        assert!(!clocks.agrees(0, at(5)), "one of three is no majority");
    }

    // Shows: L2.4.
    #[test]
    fn a_slow_answer_is_given_the_benefit_of_the_doubt() {
        let mut clocks = clocks(&[0, 0, 0]);
        // It was on its way for five seconds, in either direction.
        note(&mut clocks, 2, 36_004_000_000, (0, 5_000));
        assert!(clocks.agrees(2, at(5_001)));
    }
}
