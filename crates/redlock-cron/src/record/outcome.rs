use std::{
    fmt,
    sync::{Arc, LazyLock},
    time::Duration,
};

use redlock_core::{RunRecord, RunState, Word};

/// The end of a tick on this replica.
///
/// # Examples
///
/// ```
/// # use redlock_cron::{BoxError, SingletonJob, SingletonScheduler};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), BoxError> {
/// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
/// # let jobs = SingletonScheduler::standalone(redlock).namespace("billing").replica("pod-7").build()?;
/// # jobs.add(SingletonJob::cron("close-day", "0 0 2 * * *", "UTC", |_| async { Ok::<(), BoxError>(()) })).await?;
/// use redlock_cron::Outcome;
///
/// let panics = |_| async { if true { panic!("no paper") } else { Ok::<(), BoxError>(()) } };
/// jobs.add(SingletonJob::cron("print", "0 0 6 * * *", "UTC", panics)).await?;
/// let report = jobs.trigger_now("print").await?;
/// assert_eq!(report.outcome(), Outcome::Panicked); // the service goes on
/// assert_eq!(report.outcome().as_str(), "panicked");
/// assert!(report.outcome().was_started());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Outcome {
    /// The tick ran here and returned `Ok`.
    Ok,
    /// The tick ran here and returned an error.
    Failed,
    /// The tick ran here and panicked.
    Panicked,
    /// The run took longer than `max_runtime` and was told to stop.
    TimedOut,
    /// The run was told to stop because the next tick was due; see [`Overlap::CancelOther`](crate::Overlap).
    Cancelled,
    /// The run was started here, and its lease was lost: the run was dropped unfinished, or told to stop; see
    /// [`OnLost`](crate::OnLost).
    Lost,
    /// The run was started here, and told to stop or dropped, because the grace of a shutdown or of a removal of its
    /// job was over, or because the scheduler was dropped.
    Aborted,
    /// This or another replica has started the tick before, or a later one.
    NotWinner,
    /// A run of the job was in progress.
    ///
    /// If no replica reports a run of the tick, the tick was skipped because of that run.
    Overlapping,
    /// All [places](crate::SingletonSchedulerBuilder::max_runs) for runs were taken here, for as long as the tick could
    /// be started.
    ///
    /// This replica did not ask for the tick, and another replica may have started it.
    NoPlace,
    /// The job's [condition](crate::SingletonJob::only_if) kept this replica from asking for the tick.
    Declined,
    /// The tick is still to come by the nodes' clocks, by more than a minute: this replica had not heard of the nodes yet,
    /// or their clocks were set back.
    ///
    /// The replica finds the tick again when it is due; it waits for a tick that is nearer.
    TooEarly,
    /// The nodes remember a claim of a later tick that is still to come: their clocks were ahead then, and are right again.
    ///
    /// No replica starts a tick up to that one, so that no tick is started twice; the detail says until when.
    /// If an operator knows that no run of the job goes on, [`dangerous_forget`](crate::dangerous_forget) ends this.
    ClockWasAhead,
    /// The tick was older than `start_within` by the nodes' clocks when this replica reached it.
    TooLate,
    /// The job is paused; see [`SingletonScheduler::pause`](crate::SingletonScheduler::pause).
    Paused,
    /// No replica had started the tick when this replica claimed a later one.
    ///
    /// One replica reports it: the newest hundred missed ticks in a report each, and all earlier ones in one report
    /// with their [number](crate::TickReport::ticks), the first and the last.
    Missed,
    /// The runs of a tick that is delivered [at least once](crate::Delivery::AtLeastOnce) did not end by themselves, and
    /// there will be no other: all attempts are used up, or it is too late for another one.
    ///
    /// One replica reports it, and the nodes remember it as the last run of the tick.
    /// An operator must look at what the runs left undone.
    GivenUp,
    /// Too many nodes have lost their data since the tick could be claimed, so it is not known whether it was started.
    ///
    /// The tick is not started, so that no tick is started twice, whatever [`Delivery`](crate::Delivery) and
    /// [`Missed`](crate::Missed) say; later ticks go on.
    /// A tick whose run was cut short has this outcome if it is not known whether it was started again; it is not given up.
    /// On new nodes, all ticks up to the moment at which they first vote have this outcome, and nothing is amiss.
    /// Otherwise, look whether the tick's work was done; if not, `redlock jobs backfill` or [`request_backfill`] runs it.
    ///
    /// [`request_backfill`]: crate::request_backfill
    Forgotten,
    /// The nodes granted the tick to this replica, but too few confirmed in time that they remember it.
    ///
    /// The tick was not started, and perhaps no replica can claim it any more.
    Unconfirmed,
    /// Too few nodes gave a usable answer in time: nothing ran, and the operator must look at the
    /// nodes.
    NoQuorum,
    /// The lock client refused before it asked any node, because it is closed or overloaded.
    Refused,
    /// The scheduler was shutting down: it starts nothing more.
    Draining,
    /// The job was [removed](crate::SingletonScheduler::remove) or [replaced](crate::SingletonScheduler::replace) here
    /// before the tick was started.
    Removed,
}

impl Outcome {
    /// Returns whether the tick was started on this replica.
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

    /// Returns whether another replica may start the tick of which this one says so, and has not said that it has.
    pub(crate) fn may_be_elsewhere(self) -> bool {
        matches!(
            self,
            Self::Overlapping
                | Self::NoPlace
                | Self::Declined
                | Self::TooEarly
                | Self::TooLate
                | Self::NoQuorum
                | Self::Refused
        )
    }

    /// Returns the outcome as a word for logs and as a label of metrics, such as `not_winner`.
    pub fn as_str(self) -> &'static str {
        WORDS[self as usize].1
    }
}

/// Returns the recorded outcomes of runs that were cut short, besides runs whose end is not recorded.
pub(crate) fn cut_short_outcomes() -> Arc<[Word]> {
    static WORDS: LazyLock<Arc<[Word]>> = LazyLock::new(|| {
        let outcomes = [
            Outcome::Lost,
            Outcome::Aborted,
            Outcome::Draining,
            Outcome::Removed,
        ];
        let words = outcomes.map(Outcome::as_str).into_iter();
        words.filter_map(Word::new).collect()
    });
    Arc::clone(&WORDS)
}

/// Returns the recorded outcome of a run and the time that it took; `None` if its end is not recorded.
pub(crate) fn end_of(run: &RunRecord) -> Option<(&str, Duration)> {
    match &run.state {
        RunState::Ended { outcome, took } => Some((outcome.as_str(), *took)),
        _ => None,
    }
}

/// Returns whether a run has ended with this outcome.
pub(crate) fn is_outcome(run: &RunRecord, word: &str) -> bool {
    end_of(run).is_some_and(|(outcome, _)| outcome == word)
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// All outcomes in their order, and the word of each.
pub(crate) const WORDS: [(Outcome, &str); Outcome::Removed as usize + 1] = [
    (Outcome::Ok, "ok"),
    (Outcome::Failed, "failed"),
    (Outcome::Panicked, "panicked"),
    (Outcome::TimedOut, "timed_out"),
    (Outcome::Cancelled, "cancelled"),
    (Outcome::Lost, "lost"),
    (Outcome::Aborted, "aborted"),
    (Outcome::NotWinner, "not_winner"),
    (Outcome::Overlapping, "overlapping"),
    (Outcome::NoPlace, "no_place"),
    (Outcome::Declined, "declined"),
    (Outcome::TooEarly, "too_early"),
    (Outcome::ClockWasAhead, "clock_was_ahead"),
    (Outcome::TooLate, "too_late"),
    (Outcome::Paused, "paused"),
    (Outcome::Missed, "missed"),
    (Outcome::GivenUp, "given_up"),
    (Outcome::Forgotten, "forgotten"),
    (Outcome::Unconfirmed, "unconfirmed"),
    (Outcome::NoQuorum, "no_quorum"),
    (Outcome::Refused, "refused"),
    (Outcome::Draining, "draining"),
    (Outcome::Removed, "removed"),
];

// The place of each is its number.
const _: () = {
    let mut place = 0;
    while place < WORDS.len() {
        assert!(WORDS[place].0 as usize == place);
        place += 1;
    }
};
