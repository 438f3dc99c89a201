use std::time::Duration;

use crate::{Instant, NodeTime, Quorum};

/// Whose wall clocks agree.
///
/// Nodes expire keys by their wall clocks, so one that is set forward lets go of leases that are valid.
/// Every answer carries the node's clock; votes count only from the largest group of at least a majority
/// whose clocks agree within [`TOLERANCE`](Self::TOLERANCE), as far as the way of the answer allows to tell.
#[derive(Clone, Debug)]
pub struct Clocks {
    quorum: Quorum,
    // invariant: one entry per node
    samples: Vec<Option<Sample>>,
}

/// What one answer told.
#[derive(Clone, Copy, Debug)]
struct Sample {
    time: NodeTime,
    received: Instant,
    /// The least and the most by which the node's clock was ahead of ours, in microseconds.
    ahead: (i128, i128),
}

impl Sample {
    /// The least and the most by which the node's clock can be ahead of ours by now, in microseconds.
    fn ahead(&self, now: Instant) -> (i128, i128) {
        let (least, most) = self.ahead;
        let age = now.saturating_since(self.received).as_micros();
        // Narrow, because this is asked for every vote.
        let drifted = u64::try_from(age).unwrap_or(u64::MAX) / DRIFT;
        let drifted = i128::from(drifted);
        (least - drifted, most + drifted)
    }
}

impl Clocks {
    /// By how much clocks that agree may differ.
    pub const TOLERANCE: Duration = Duration::from_secs(1);

    /// Nothing is known yet.
    pub fn new(quorum: Quorum) -> Self {
        Self {
            quorum,
            samples: vec![None; quorum.nodes()],
        }
    }

    /// A node's clock showed `time`, in answer to what was sent at `sent` and seen at `received`.
    pub fn note(&mut self, node: usize, time: NodeTime, sent: Instant, received: Instant) {
        // At some moment of ours between these two, it showed this.
        let micros = |instant: Instant| instant.since_origin().as_micros().cast_signed();
        let shown = i128::from(time.as_micros());
        let ahead = (shown - micros(received), shown - micros(sent));
        if let Some(sample) = self.samples.get_mut(node) {
            *sample = Some(Sample {
                time,
                received,
                ahead,
            });
        }
    }

    /// Nothing is known of this node any more.
    pub fn forget(&mut self, node: usize) {
        if let Some(sample) = self.samples.get_mut(node) {
            *sample = None;
        }
    }

    /// What a node's clock showed in its last answer.
    pub fn time(&self, node: usize) -> Option<NodeTime> {
        Some(self.samples.get(node)?.as_ref()?.time)
    }

    /// Whether the clocks of a majority are known, so that it can be told which agree.
    pub fn are_comparable(&self) -> bool {
        self.samples.iter().flatten().count() >= self.quorum.majority()
    }

    /// Whether the node's clock agrees with those of a majority.
    pub fn agrees(&self, node: usize, now: Instant) -> bool {
        let Some(own) = self.samples.get(node).copied().flatten() else {
            return false;
        };
        let start = self.agreement(now);
        start.is_some_and(|start| is_within(start, own.ahead(now)))
    }

    /// What the clock in the middle of those that agree shows now, if a majority does.
    ///
    /// Each is known to about half the time that its last answer was on its way.
    pub fn middle(&self, now: Instant) -> Option<NodeTime> {
        let start = self.agreement(now)?;
        let known = self.samples.iter().flatten();
        let known = known.map(|sample| sample.ahead(now));
        let agreeing = known.filter(|range| is_within(start, *range));
        let mut ahead: Vec<i128> = agreeing
            .map(|(least, most)| i128::midpoint(least, most))
            .collect();
        ahead.sort_unstable();
        let middle = ahead.get(ahead.len() / 2)?;
        let time = now.since_origin().as_micros().cast_signed() + middle;
        u64::try_from(time).ok().map(NodeTime::from_micros)
    }

    /// Where the tolerance begins within which the largest group of clocks lies, if that is a majority.
    fn agreement(&self, now: Instant) -> Option<i128> {
        let known = self.samples.iter().flatten();
        let ranges: Vec<(i128, i128)> = known.map(|sample| sample.ahead(now)).collect();
        // The largest group has its window begin where somebody's range ends: moving it later from there
        // loses that member, and moving it earlier gains none that begins later.
        let size = |start| {
            ranges
                .iter()
                .filter(|range| is_within(start, **range))
                .count()
        };
        // Of groups of one size, the one whose clocks are behind: its nodes keep keys for longest.
        let starts = ranges.iter().map(|(_, most)| *most);
        starts
            .max_by_key(|start| (size(*start), -start))
            .filter(|start| size(*start) >= self.quorum.majority())
    }
}

/// Whether a clock that is ahead of ours by this can be among those that agree.
fn is_within(start: i128, (least, most): (i128, i128)) -> bool {
    let tolerance = Clocks::TOLERANCE.as_micros().cast_signed();
    least <= start + tolerance && most >= start
}

/// Two clocks drift apart by a part of this at most, since an answer was seen.
const DRIFT: u64 = 50;

#[cfg(test)]
mod tests {
    use super::*;
    use std::num::NonZeroUsize;

    const HOUR: i64 = 3_600_000;

    /// Clocks that are ahead by so many milliseconds, read over a connection that takes 2 ms.
    fn clocks(ahead: &[i64]) -> Clocks {
        let mut clocks = Clocks::new(Quorum::of(NonZeroUsize::new(ahead.len()).unwrap()));
        for (node, ahead) in ahead.iter().enumerate() {
            let time = u64::try_from(10 * HOUR + 1 + ahead).unwrap() * 1_000;
            clocks.note(node, NodeTime::from_micros(time), at(0), at(2));
        }
        clocks
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

    #[test]
    fn s14_a_clock_that_is_an_hour_off_is_left_out() {
        assert_eq!(
            agreeing(&[0, HOUR, 3, -4, 8]),
            [true, false, true, true, true]
        );
        assert_eq!(agreeing(&[-HOUR, 0, 500]), [false, true, true]);
        assert_eq!(agreeing(&[0, 1_200, 500]), [true, false, true]);
    }

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

    #[test]
    fn old_readings_say_less() {
        let mut clocks = clocks(&[0, 1_500, 1_600]);
        assert!(!clocks.agrees(0, at(5)));
        let minute = at(60_000);
        assert!(clocks.agrees(0, minute), "they may have drifted since");
        clocks.note(
            0,
            NodeTime::from_micros(10 * 3_600_000_000 + 60_000_000),
            at(60_000),
            at(60_000),
        );
        assert!(clocks.agrees(1, minute));
    }

    #[test]
    fn what_was_forgotten_does_not_agree() {
        let mut clocks = clocks(&[0, 0, 0]);
        clocks.forget(1);
        assert!(clocks.agrees(0, at(5)) && !clocks.agrees(1, at(5)));
        assert!(clocks.are_comparable());
        clocks.forget(2);
        assert!(!clocks.are_comparable());
        assert!(!clocks.agrees(0, at(5)), "one of three is no majority");
    }

    #[test]
    fn a_slow_answer_is_given_the_benefit_of_the_doubt() {
        let mut clocks = clocks(&[0, 0, 0]);
        // It was on its way for five seconds, in either direction.
        let time = NodeTime::from_micros(10 * 3_600_000_000 + 4_000_000);
        clocks.note(2, time, at(0), at(5_000));
        assert!(clocks.agrees(2, at(5_001)));
    }
}
