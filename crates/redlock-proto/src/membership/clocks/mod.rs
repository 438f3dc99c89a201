mod reading;
mod standstill;

use std::{cmp::Reverse, time::Duration};

pub use self::reading::ClockReading;
use self::reading::{ClockOffset, Track, micros};
pub(crate) use self::standstill::Baseline;
use crate::{Instant, NodeTime, Quorum, RunId};

/// The wall clocks of the nodes, and which of them agree, by the last answer of each node.
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
    // invariant: one entry per node
    nodes: Vec<NodeClock>,
    /// The last baseline, and when it was made, unless a clock has moved for certain since, or is known better by much.
    latest: Option<(Instant, Baseline)>,
}

/// The wall clock of a node.
#[derive(Clone, Debug, Default)]
struct NodeClock {
    /// Its last answer over the present connection.
    reading: Option<ClockReading>,
    /// Of which run of a server it is, and what all its answers tell, over any connection.
    track: Option<(RunId, Track)>,
    /// How many tracks there were, this one included.
    number: u32,
    /// The most by which the clock can have been ahead at the first answer of this track.
    first: i64,
    /// The least by which it was ahead for certain when leases were looked at last, or since.
    looked_at: i64,
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
            nodes: vec![NodeClock::default(); quorum.nodes()],
            latest: None,
        }
    }

    /// Notes the time that a node's clock showed, in this run of the server.
    pub fn note(&mut self, node: usize, run: &RunId, reading: ClockReading) {
        if let Some(clock) = self.nodes.get_mut(node) {
            clock.reading = Some(reading);
            self.track(node, run, &reading);
        }
    }

    /// Forgets the clock of a node whose connection was lost, because another server may be behind the next one.
    pub fn forget(&mut self, node: usize) {
        if let Some(clock) = self.nodes.get_mut(node) {
            clock.reading = None;
        }
    }

    /// Returns what a node's clock showed in its last answer.
    pub fn time(&self, node: usize) -> Option<NodeTime> {
        Some(self.nodes.get(node)?.reading.as_ref()?.time)
    }

    /// Returns what a node's clock shows now, unless nothing was heard of it for long.
    ///
    /// It is known to about half the time that the node's last answer was on its way.
    pub fn shown(&self, node: usize, now: Instant) -> Option<NodeTime> {
        let ClockOffset { least, most } = self.fresh(now).nth(node).flatten()?;
        shown(now, i64::midpoint(least, most))
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
        let mut ahead: Vec<i64> = agreeing
            .map(|ClockOffset { least, most }| i64::midpoint(least, most))
            .collect();
        ahead.sort_unstable();
        ahead
            .get(ahead.len() / 2)
            .and_then(|middle| shown(now, *middle))
    }

    fn agreement(&self, now: Instant) -> Option<i64> {
        let (start, size) = largest_group(&self.fresh(now).flatten())?;
        (size >= self.quorum.majority()).then_some(start)
    }

    /// Returns by how much each node's clock is ahead, unless nothing was heard of it for long.
    fn fresh(&self, now: Instant) -> impl Iterator<Item = Option<ClockOffset>> + Clone {
        self.nodes.iter().map(move |clock| {
            let reading = clock.reading?;
            let age = now.saturating_since(reading.received);
            (age <= Self::LONGEST_AGE).then(|| reading.ahead_by(now))
        })
    }
}

/// The largest group of clocks that agree.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Agreement {
    /// Where the tolerance begins within which they lie.
    start: i64,
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
fn shown(now: Instant, ahead: i64) -> Option<NodeTime> {
    let time = micros(now.since_origin()).saturating_add(ahead);
    u64::try_from(time).ok().map(NodeTime::from_micros)
}

/// Returns where the tolerance begins within which the largest group of clocks lies, and how large it is.
fn largest_group<C>(clocks: &C) -> Option<(i64, usize)>
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
        .max_by_key(|(start, size)| (*size, Reverse(*start)))
}

/// Returns whether a clock that is ahead of ours by this can be among those that agree.
fn is_within(start: i64, ClockOffset { least, most }: ClockOffset) -> bool {
    least <= start.saturating_add(micros(Clocks::TOLERANCE)) && most >= start
}
