use std::time::Duration;

use redlock_proto::{NotClaimed, RunRecord, Tick};

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
    /// The tick is this caller's to start, and nobody else's.
    Won(Box<Claim>),
    /// The tick was claimed before, or a later one was.
    AlreadyClaimed {
        /// The newest tick of the job that was claimed, as far as the nodes said that were heard.
        watermark: Tick,
        /// That run; `None` if no more than its tick is remembered, or if this version cannot read it.
        run: Option<RunRecord>,
    },
    /// The nodes' clocks are before the tick's window, and will be when the wait ends: this replica's own clock is
    /// ahead, or theirs are behind.
    TooEarly {
        /// The time until it may be claimed.
        by: Duration,
    },
    /// The nodes' clocks are after the tick's window.
    TooLate {
        /// The least time by which it is too late.
        by: Duration,
    },
    /// The tick could have been claimed before so many nodes lost their data that no majority is left to say whether
    /// it was.
    Forgotten {
        /// `true` if that will stay so; otherwise nodes that have not answered may still grant it.
        for_good: bool,
        /// The answer of each node.
        reports: Vec<NodeReport>,
    },
    /// The newest run before it was cut short; see
    /// [`ClaimOptions::not_after_cut_short`](crate::ClaimOptions::not_after_cut_short).
    ///
    /// The tick was not claimed, and can be.
    CutShort {
        /// That run.
        run: RunRecord,
    },
    /// The nodes had granted the tick, and too few have confirmed in time that they remember it, or this caller was
    /// not polled before its lease was over.
    ///
    /// It was not started, and perhaps nobody can claim it any more.
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
