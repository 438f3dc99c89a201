//! The standstill of a client's clock, by how far the nodes' clocks have gone ahead of it since some moment.
//!
//! Clocks drift apart by little.
//! If those of a majority are ahead at once, the client's own stood still, as it does while a hypervisor pauses the
//! machine; or else all of theirs were set.

use std::{sync::Arc, time::Duration};

use super::{ClockReading, Clocks, NodeClock, reading::Track};
use crate::{Instant, RunId};

/// The most by which each node's clock can have been ahead of the client's at some moment, in microseconds.
#[derive(Clone, Debug)]
pub(crate) struct Baseline(Arc<[(u32, i64)]>);

impl Clocks {
    /// Adds a reading to the track of a node's clock, in this run of the server.
    pub(super) fn track(&mut self, node: usize, run: &RunId, reading: &ClockReading) {
        let Some(tracked) = self.nodes.get_mut(node) else {
            return;
        };
        match &mut tracked.track {
            Some((before, track)) if before == run => {
                let has_moved = track.take_in(reading);
                let most = track.most(reading.received).saturating_add(MUCH);
                let is_vague = |(_, baseline): &(_, Baseline)| baseline.0[node].1 > most;
                self.latest.take_if(|latest| has_moved || is_vague(latest));
                // A clock that was set back can go ahead from there.
                tracked.looked_at = tracked.looked_at.min(track.least());
            }
            track => {
                let (_, track) = track.insert((run.clone(), Track::of(reading)));
                tracked.number += 1;
                tracked.first = track.most(reading.received);
                tracked.looked_at = track.least();
                self.latest = None;
            }
        }
    }

    /// Returns what the clocks are compared with later that have gone ahead since now.
    pub(crate) fn baseline(&mut self, now: Instant) -> Baseline {
        if let Some((made, baseline)) = &self.latest
            && now.saturating_since(*made) <= SHARED_FOR
        {
            return baseline.clone();
        }
        let most = |tracked: &NodeClock| match &tracked.track {
            Some((_, track)) => (tracked.number, track.most(now + SHARED_FOR)),
            None => (tracked.number, 0),
        };
        let baseline = Baseline(self.nodes.iter().map(most).collect());
        self.latest = Some((now, baseline.clone()));
        baseline
    }

    /// Returns by how many microseconds the clocks of a majority have gone ahead of the client's for certain since then;
    /// it is negative where none is certain.
    ///
    /// Each clock is compared with itself: of clocks that were set at different times long ago, none stands for another.
    pub(crate) fn ahead_since(&self, baseline: &Baseline) -> i64 {
        let ahead = || {
            let nodes = self.nodes.iter().zip(&*baseline.0);
            nodes.filter_map(|(tracked, (number, most))| {
                let (_, track) = tracked.track.as_ref()?;
                // A track that began later tells of the time since then.
                let most = if tracked.number == *number {
                    *most
                } else {
                    tracked.first
                };
                Some(track.least().saturating_sub(most))
            })
        };
        let is_certain =
            |least: &i64| ahead().filter(|other| other >= least).count() >= self.quorum.majority();
        // The least of all is certain.
        ahead().filter(is_certain).max().unwrap_or(-1)
    }

    /// Returns whether a node's clock has gone ahead by more than this since leases were looked at last.
    pub(crate) fn is_news(&self, node: usize, by: Duration) -> bool {
        let by = i64::try_from(by.as_micros()).unwrap_or(i64::MAX);
        self.nodes.get(node).is_some_and(|tracked| {
            let least = tracked.track.as_ref().map(|(_, track)| track.least());
            least.is_some_and(|least| least.saturating_sub(tracked.looked_at) > by)
        })
    }

    /// Notes that all leases were looked at.
    pub(crate) fn on_look(&mut self) {
        for tracked in &mut self.nodes {
            if let Some((_, track)) = &tracked.track {
                tracked.looked_at = track.least();
            }
        }
    }
}

/// In microseconds: by so much a clock is known better than before.
const MUCH: i64 = 1_000;

/// Rounds that are started within so little time of each other share a baseline, and its memory.
const SHARED_FOR: Duration = Duration::from_millis(10);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{NodeTime, Quorum};
    use std::num::NonZeroUsize;

    const MS: i64 = 1_000;

    /// Makes a record of this number of nodes.
    fn clocks(nodes: usize) -> Clocks {
        Clocks::new(Quorum::of(NonZeroUsize::new(nodes).unwrap()))
    }

    fn at(ms: u64) -> Instant {
        Instant::from_origin(Duration::from_millis(ms))
    }

    /// Notes that a node's clock shows `shown` milliseconds, in an answer that was sent and received at the times of
    /// `way`.
    fn note(clocks: &mut Clocks, node: usize, shown: u64, way: (u64, u64)) {
        note_run(clocks, node, shown, way, "run");
    }

    fn note_run(clocks: &mut Clocks, node: usize, shown: u64, way: (u64, u64), run: &str) {
        let reading = ClockReading {
            time: NodeTime::from_micros((36_000_000 + shown) * 1_000),
            sent: at(way.0),
            received: at(way.1),
        };
        clocks.note(node, &RunId::from(run), reading);
    }

    // Shows: A1.
    #[test]
    fn a_majority_that_goes_ahead_of_the_clients_clock_is_noticed() {
        let mut clocks = clocks(3);
        for node in 0..3 {
            note(&mut clocks, node, 1_000, (1_000, 1_002));
        }
        let before = clocks.baseline(at(1_002));
        assert!(clocks.ahead_since(&before) <= 0);
        // The client's clock stood still for ten seconds.
        note(&mut clocks, 0, 12_000, (2_000, 2_002));
        assert!(clocks.ahead_since(&before) <= 0, "one may have been set");
        note(&mut clocks, 2, 12_000, (2_000, 2_002));
        let ahead = clocks.ahead_since(&before);
        assert!((9_900 * MS..=10_000 * MS).contains(&ahead), "{ahead}");
        // Whatever begins now is not concerned.
        let after = clocks.baseline(at(2_002));
        note(&mut clocks, 0, 13_000, (3_000, 3_002));
        note(&mut clocks, 2, 13_000, (3_000, 3_002));
        assert!(clocks.ahead_since(&after) <= 0);
        // What was set forward by mistake and set right again has not gone ahead.
        note(&mut clocks, 2, 4_000, (4_000, 4_002));
        assert!(clocks.ahead_since(&before) <= 0);
    }

    // Shows: A1.
    #[test]
    fn a_clock_that_was_set_long_ago_stands_for_no_other() {
        for before in [[0, 0, 0], [900, 0, 100], [800, 900, 0]] {
            let mut clocks = clocks(3);
            for (node, before) in before.into_iter().enumerate() {
                note(&mut clocks, node, 2_000, (2_000, 2_001));
                note(&mut clocks, node, 3_000 + before, (3_000, 3_001));
            }
            let baseline = clocks.baseline(at(3_001));
            note(&mut clocks, 1, 4_000 + before[1] + 700, (4_000, 4_001));
            assert!(clocks.ahead_since(&baseline) <= 0, "{before:?}");
            note(&mut clocks, 2, 4_000 + before[2] + 700, (4_000, 4_001));
            let ahead = clocks.ahead_since(&baseline);
            assert!((670 * MS..=700 * MS).contains(&ahead), "{ahead} {before:?}");
        }
    }

    /// A hypervisor takes the client a thirtieth of the time, a part of a millisecond between any two answers, each of
    /// which takes a millisecond.
    // Shows: A1.
    #[test]
    fn standstills_that_are_shorter_than_an_answer_takes_are_noticed_once_they_add_up() {
        let mut clocks = clocks(3);
        let mut baseline = None;
        for ms in 2..10_000 {
            for node in 0..3 {
                note(&mut clocks, node, ms + ms / 30, (ms, ms + 1));
            }
            baseline = baseline.or_else(|| Some(clocks.baseline(at(ms + 1))));
        }
        let ahead = clocks.ahead_since(&baseline.unwrap());
        assert!((330 * MS..=334 * MS).contains(&ahead), "{ahead}");
    }

    /// The way of an answer varies, and the clock drifts by as much as the drift of a lease allows for.
    // Shows: A1.
    #[test]
    fn clocks_that_drift_and_answers_that_are_late_are_no_jump() {
        for drift in [-1_i64, 0, 1] {
            let mut clocks = clocks(1);
            note(&mut clocks, 0, 0, (0, 1));
            let baseline = clocks.baseline(at(1));
            for ms in 2..20_000_u64 {
                let shown = ms.cast_signed() + drift * ms.cast_signed() / 51;
                let way = (ms - ms % 7, ms + 4 - ms % 4);
                note(&mut clocks, 0, shown.try_into().unwrap(), way);
                let allowed = i64::try_from(ms).unwrap() * MS / 50;
                assert!(clocks.ahead_since(&baseline) <= allowed, "{drift} {ms}");
            }
        }
    }

    // Shows: A1.
    #[test]
    fn a_connection_that_breaks_hides_no_jump_and_another_server_makes_none() {
        let mut clocks = clocks(1);
        note(&mut clocks, 0, 0, (0, 1));
        let baseline = clocks.baseline(at(1));
        note(&mut clocks, 0, 9_000, (1_000, 1_001));
        let ahead = clocks.ahead_since(&baseline);
        assert!(ahead > 7_900 * MS, "{ahead}");
        note_run(&mut clocks, 0, 99_000, (1_001, 1_002), "another");
        assert!(clocks.ahead_since(&baseline) <= 0);
        // Which can go ahead, too.
        note_run(&mut clocks, 0, 101_000, (2_001, 2_002), "another");
        let ahead = clocks.ahead_since(&baseline);
        assert!((900 * MS..=1_000 * MS).contains(&ahead), "{ahead}");
    }

    /// It may be looked at seldom, if nothing goes ahead unseen between the looks.
    // Shows: A1.
    #[test]
    fn a_clock_that_goes_ahead_is_news_until_it_was_looked_at() {
        let step = Duration::from_millis(50);
        let mut clocks = clocks(3);
        note(&mut clocks, 0, 0, (0, 1));
        assert!(!clocks.is_news(0, step) && !clocks.is_news(1, step));
        note(&mut clocks, 0, 1_040, (1_000, 1_001));
        assert!(!clocks.is_news(0, step));
        note(&mut clocks, 0, 2_080, (2_000, 2_001));
        assert!(clocks.is_news(0, step));
        clocks.on_look();
        assert!(!clocks.is_news(0, step));
        // It was set back, and goes ahead from there.
        note(&mut clocks, 0, 2_500, (3_000, 3_001));
        assert!(!clocks.is_news(0, step));
        note(&mut clocks, 0, 3_600, (4_000, 4_001));
        assert!(clocks.is_news(0, step));
    }

    #[test]
    fn rounds_of_one_moment_share_a_baseline_unless_a_clock_has_moved() {
        let mut clocks = clocks(1);
        note(&mut clocks, 0, 0, (0, 1));
        let first = clocks.baseline(at(1));
        note(&mut clocks, 0, 5, (5, 6));
        let is_same = |one: &Baseline, other: &Baseline| Arc::ptr_eq(&one.0, &other.0);
        assert!(is_same(&first, &clocks.baseline(at(6))));
        note(&mut clocks, 0, 507, (7, 8));
        let second = clocks.baseline(at(8));
        assert!(!is_same(&first, &second));
        assert!(clocks.ahead_since(&second) <= 0);
        assert!(!is_same(&second, &clocks.baseline(at(30))));
    }
}
