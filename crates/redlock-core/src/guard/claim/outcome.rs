use std::time::Duration;

use redlock_proto::{JobRecord, JobState, NotClaimed, RunRecord, Series, Tick};

use super::Claim;
use crate::NodeReport;

/// The decision of the nodes about a claim.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
/// use redlock_core::{ClaimOptions, ClaimOutcome, Tick};
/// use std::time::SystemTime;
///
/// let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
/// let tick = Tick::from_millis(now.as_secs() * 1_000).ok_or("the clock is off by centuries")?;
/// let won = redlock.claim("close-day", tick, ClaimOptions::new("pod-7")).await?.won();
/// assert!(won.is_some());
/// # drop(won);
/// match redlock.claim("close-day", tick, ClaimOptions::new("pod-8")).await? {
///     ClaimOutcome::AlreadyClaimed { run: Some(run), .. } => {
///         assert_eq!(run.replica.as_str(), "pod-7");
///     }
///     other => unreachable!("{other:?}"),
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "it may carry a claim, and dropping that gives the lock back"]
#[non_exhaustive]
pub enum ClaimOutcome {
    /// The caller has won the claim: it may start the tick, and no other caller may.
    Won(Box<Claim>),
    /// A replica claimed this tick, or a later one, before.
    AlreadyClaimed {
        /// The newest claimed tick of the job, according to the nodes that answered.
        watermark: Tick,
        /// The run of that tick; `None` if the nodes remember only its tick, or if this version cannot read it.
        run: Option<RunRecord>,
    },
    /// The nodes' clocks are before the tick's window, and will be when the wait ends: this replica's own clock is
    /// ahead, or theirs are behind.
    TooEarly {
        /// The time until a replica may claim it.
        by: Duration,
    },
    /// The nodes' clocks are after the tick's window.
    TooLate {
        /// The least time by which the claim is too late.
        by: Duration,
    },
    /// A replica may have claimed the tick before: too many nodes have lost their data for a majority to say whether
    /// one did.
    Forgotten {
        /// `true` if no later answer can change that; otherwise nodes that have not answered may still grant the tick.
        for_good: bool,
        /// The answer of each node.
        reports: Vec<NodeReport>,
    },
    /// The newest run before it was cut short; see
    /// [`ClaimOptions::not_after_cut_short`](crate::ClaimOptions::not_after_cut_short).
    ///
    /// No replica has claimed the tick, and a replica still can.
    CutShort {
        /// That run.
        run: RunRecord,
    },
    /// The nodes had granted the tick, but too few have confirmed in time that they remember it, or the caller was not
    /// polled before its lease was over.
    ///
    /// No replica has started the tick, and perhaps no replica can claim it any more.
    Unconfirmed {
        /// The answer of each node; empty if the caller was too late.
        reports: Vec<NodeReport>,
    },
}

impl ClaimOutcome {
    pub(crate) fn not(why: NotClaimed, reports: Vec<NodeReport>) -> Self {
        match why {
            NotClaimed::Passed { watermark, last } => Self::AlreadyClaimed {
                watermark,
                run: last,
            },
            NotClaimed::TooEarly { by } => Self::TooEarly { by },
            NotClaimed::TooLate { by } => Self::TooLate { by },
            NotClaimed::Forgotten { for_good } => Self::Forgotten { for_good, reports },
            NotClaimed::CutShort { last } => Self::CutShort { run: last },
            _ => Self::Unconfirmed { reports },
        }
    }

    /// Returns the claim, if it was won.
    pub fn won(self) -> Option<Claim> {
        match self {
            Self::Won(claim) => Some(*claim),
            _ => None,
        }
    }
}

/// A reading of a job from the nodes.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
/// let reading = redlock.job_status("close-day").await?;
/// if let Some(state) = reading.state() {
///     println!("the newest claimed tick: {:?}", state.watermark);
/// }
/// for report in reading.reports() {
///     println!("{report}");
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct JobReading {
    record: Option<JobRecord>,
    reports: Vec<NodeReport>,
}

impl JobReading {
    pub(crate) fn new(record: Option<JobRecord>, reports: Vec<NodeReport>) -> Self {
        Self { record, reports }
    }

    /// Returns the state of the job's [ticks](Series::TICKS) according to a majority; `None` if too few nodes gave a usable
    /// answer.
    pub fn state(&self) -> Option<&JobState> {
        self.record().map(|record| record.of(Series::TICKS))
    }

    /// Returns the states of all series of the job according to a majority; `None` if too few nodes gave a usable answer.
    pub fn record(&self) -> Option<&JobRecord> {
        self.record.as_ref()
    }

    /// Returns the part of each node in the reading; empty if the client is closed.
    pub fn reports(&self) -> &[NodeReport] {
        &self.reports
    }
}
