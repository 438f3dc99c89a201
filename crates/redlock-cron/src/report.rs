use std::{fmt, sync::Arc, time::Duration};

use chrono::{DateTime, TimeDelta, Utc};

use crate::{Trigger, claim::Measured};

/// What became of a tick on this replica.
///
/// Every replica has one report for each tick it was awake for; over a healthy fleet, one of them is
/// about a run.
#[derive(Clone, Debug)]
pub struct TickReport {
    pub(crate) job: Arc<str>,
    pub(crate) tick: DateTime<Utc>,
    /// The last tick it is about and how many there are, if it is about more than one.
    pub(crate) more: Option<(DateTime<Utc>, u64)>,
    pub(crate) trigger: Trigger,
    pub(crate) attempt: u32,
    pub(crate) outcome: Outcome,
    pub(crate) lag: Duration,
    pub(crate) took: Option<Duration>,
    pub(crate) measured: Option<Measured>,
    pub(crate) detail: Option<String>,
}

/// How a tick ended on this replica.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Outcome {
    /// It ran here and returned `Ok`.
    Ok,
    /// It ran here and returned an error.
    Failed,
    /// It ran here and panicked.
    Panicked,
    /// It took longer than `max_runtime` and was told to stop.
    TimedOut,
    /// It was told to stop because the next tick was due; see [`Overlap::CancelOther`](crate::Overlap).
    Cancelled,
    /// It was started here, and its lease was lost: it was dropped unfinished, or told to stop; see
    /// [`OnLost`](crate::OnLost).
    Lost,
    /// It was started here, and told to stop or dropped because the grace of a shutdown was over or the
    /// scheduler was dropped.
    Aborted,
    /// It was started before, by this replica or another.
    NotWinner,
    /// A run of the job was in progress.
    ///
    /// If no replica reports a run of the tick, runs overlapped and the tick was skipped.
    Overlapping,
    /// By the nodes' clocks it is still to come: this replica's clock is ahead.
    ///
    /// If that is by a minute at most, the replica waits instead.
    TooEarly,
    /// By the nodes' clocks it was older than `start_within` when this replica came to it.
    TooLate,
    /// The job is paused; see [`SingletonScheduler::pause`](crate::SingletonScheduler::pause).
    Paused,
    /// Nobody had started it when this replica claimed a later one.
    ///
    /// One replica says so: of the newest hundred, each in a report of its own, and of all before them in one that says
    /// how many [ticks](TickReport::ticks) there are, and which is the first and the last.
    Missed,
    /// So many nodes have lost their data since it could be claimed that nobody knows if it was started.
    ///
    /// It is not started now, so that none is started twice.
    Forgotten,
    /// The nodes gave it to this replica, but too few confirmed in time that they remember it.
    ///
    /// It was not started, and perhaps nobody can claim it any more.
    Unconfirmed,
    /// Too few nodes gave a usable answer in time: nothing ran, and the operator must look at the
    /// nodes.
    NoQuorum,
    /// The lock client refused before it asked any node, because it is closed or overloaded.
    Refused,
    /// The scheduler was being shut down: nothing is started any more.
    Draining,
}

impl TickReport {
    /// The job's name.
    pub fn job(&self) -> &str {
        &self.job
    }

    /// The scheduled instant, in whole seconds; the first, if it is about [several](Self::ticks).
    pub fn tick(&self) -> DateTime<Utc> {
        self.tick
    }

    /// The last tick that it is about: [`tick`](Self::tick), unless it is about several.
    pub fn last_tick(&self) -> DateTime<Utc> {
        self.more.map_or(self.tick, |(last, _)| last)
    }

    /// How many ticks it is about: one, unless very many were [missed](Outcome::Missed).
    ///
    /// Up to a million are counted.
    pub fn ticks(&self) -> u64 {
        self.more.map_or(1, |(_, ticks)| ticks)
    }

    /// Why it was to be started.
    pub fn trigger(&self) -> Trigger {
        self.trigger
    }

    /// Which run of the tick it is about: 1 is the first.
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// What became of it.
    pub fn outcome(&self) -> Outcome {
        self.outcome
    }

    /// How long after the tick, on this replica's clock, the run was started, or it was decided that
    /// it is not.
    pub fn lag(&self) -> Duration {
        self.lag
    }

    /// How long the run took, if it was started here.
    pub fn took(&self) -> Option<Duration> {
        self.took
    }

    /// How long the claim took that decided it, with its wait for a run that went on; `None` if no node was asked.
    pub fn claim_took(&self) -> Option<Duration> {
        self.measured.map(|measured| measured.took)
    }

    /// By how much this replica's clock was ahead of the nodes' when that was decided, and negative if it was behind.
    ///
    /// It is compared with the clock in the middle of a majority that agree, and known to about a round trip.
    /// `None` if no node was asked, or no majority agreed.
    pub fn clock_offset(&self) -> Option<TimeDelta> {
        self.measured?.ahead
    }

    /// More about it for a person: the job's error, the message of the panic, what each node said.
    pub fn detail(&self) -> Option<&str> {
        self.detail.as_deref()
    }
}

impl Outcome {
    /// Whether the tick was started on this replica.
    pub fn was_started(self) -> bool {
        matches!(
            self,
            Self::Ok
                | Self::Failed
                | Self::Panicked
                | Self::TimedOut
                | Self::Cancelled
                | Self::Lost
                | Self::Aborted
        )
    }

    /// The outcome as a word for logs and as a label of metrics, such as `not_winner`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Failed => "failed",
            Self::Panicked => "panicked",
            Self::TimedOut => "timed_out",
            Self::Cancelled => "cancelled",
            Self::Lost => "lost",
            Self::Aborted => "aborted",
            Self::NotWinner => "not_winner",
            Self::Overlapping => "overlapping",
            Self::TooEarly => "too_early",
            Self::Paused => "paused",
            Self::Missed => "missed",
            Self::Forgotten => "forgotten",
            Self::Unconfirmed => "unconfirmed",
            Self::TooLate => "too_late",
            Self::NoQuorum => "no_quorum",
            Self::Refused => "refused",
            Self::Draining => "draining",
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a shutdown left undone.
#[derive(Clone, Debug, Default)]
#[must_use = "it says which runs did not finish"]
pub struct ShutdownReport {
    pub(crate) unfinished: Vec<UnfinishedRun>,
}

/// A run that had not finished when the grace of the shutdown was over.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct UnfinishedRun {
    pub(crate) job: Arc<str>,
    pub(crate) tick: DateTime<Utc>,
    pub(crate) dropped: bool,
}

impl ShutdownReport {
    /// Whether every run that was in flight finished by itself.
    pub fn is_clean(&self) -> bool {
        self.unfinished.is_empty()
    }

    /// The runs that did not.
    pub fn unfinished(&self) -> &[UnfinishedRun] {
        &self.unfinished
    }
}

impl UnfinishedRun {
    /// The job's name.
    pub fn job(&self) -> &str {
        &self.job
    }

    /// The scheduled instant.
    pub fn tick(&self) -> DateTime<Utc> {
        self.tick
    }

    /// Whether it was dropped, or ended when it was told to stop; if not, it blocks its thread and goes on.
    pub fn was_dropped(&self) -> bool {
        self.dropped
    }
}
