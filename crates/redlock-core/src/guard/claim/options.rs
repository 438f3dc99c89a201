use std::{sync::Arc, time::Duration};

use redlock_proto::NotAfter;

use crate::{ResourceKey, Series, Tick, Wait, Word};

/// The options of one claim.
///
/// # Examples
///
/// ```
/// use redlock_core::{ClaimOptions, Series, Wait};
/// use std::time::Duration;
///
/// let options = ClaimOptions::new("pod-7")
///     .early(Duration::ZERO)
///     .start_within(Duration::from_secs(60))
///     .ttl(Duration::from_secs(30))
///     .max_hold(Duration::from_secs(600))
///     .fingerprint(0x5eed);
/// let second_attempt = ClaimOptions::new("pod-7")
///     .series(Series::TICKS)
///     .attempt(2)
///     .lock("report:7".parse()?)
///     .wait(Wait::Never);
/// # Ok::<_, redlock_core::InvalidKey>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "options do nothing until they are passed to a claim"]
pub struct ClaimOptions {
    pub(crate) replica: String,
    pub(crate) series: Series,
    pub(crate) attempt: u8,
    pub(crate) lock: Option<ResourceKey>,
    pub(crate) early: Duration,
    pub(crate) start_within: Duration,
    pub(crate) ttl: Option<Duration>,
    pub(crate) wait: Duration,
    pub(crate) max_hold: Option<Duration>,
    pub(crate) fingerprint: u64,
    pub(crate) not_after: Option<NotAfter>,
}

impl ClaimOptions {
    /// Makes the options of a claim on behalf of this replica, with the defaults of everything else.
    ///
    /// The nodes keep the name with the run, for people: 1 to 64 bytes, without spaces and control characters.
    pub fn new(replica: impl Into<String>) -> Self {
        Self {
            replica: replica.into(),
            series: Series::TICKS,
            attempt: 1,
            lock: None,
            early: Duration::from_secs(5),
            start_within: Duration::from_secs(10),
            ttl: None,
            wait: Duration::from_secs(1),
            max_hold: None,
            fingerprint: 0,
            not_after: None,
        }
    }

    /// Sets the series of the job's record in which the tick is claimed: [`Series::TICKS`] by default.
    ///
    /// Each series has a watermark of its own, so a tick that was claimed in one can be claimed in another.
    /// Nodes keep the last 101 runs of a series, and of one with an upper-case letter the last.
    /// A reading of the job [returns them all](crate::JobReading::record).
    pub fn series(mut self, series: Series) -> Self {
        self.series = series;
        self
    }

    /// Sets the number of the tick's run, from 1 to 99: 1 by default.
    ///
    /// No run of a tick can be claimed after a later one of that tick, or of a later tick, in the same series.
    /// A claim with another number fails before any node is asked, as one with an option that is not valid.
    pub fn attempt(mut self, attempt: u8) -> Self {
        self.attempt = attempt;
        self
    }

    /// Sets the lock that the run holds: the resource of the job's name by default.
    ///
    /// Jobs that share a lock do not run at the same time, and their runs have one order of fencing tokens.
    /// Runs of a job that replicas claim under different locks may overlap, and their tokens have no order.
    /// No tick is claimed twice, as long as all claims of the same tick use the same lock.
    pub fn lock(mut self, lock: ResourceKey) -> Self {
        self.lock = Some(lock);
        self
    }

    /// Sets by how much the nodes' clocks may be before the tick: 5 s by default, a year at most, in whole
    /// milliseconds.
    ///
    /// A replica that follows a clock which is ahead by more than this claims no tick.
    /// All replicas must use the same value, also from one version of a program to the next.
    /// A node that lost its data refuses the ticks that a replica could have claimed before the node voted again, and
    /// it relies on the claimant's value to know how early that could be.
    /// So after a first start, or after the loss of a majority, no replica can claim a tick for this long.
    pub fn early(mut self, early: Duration) -> Self {
        self.early = early;
        self
    }

    /// Sets by how much the nodes' clocks may be after the tick: 10 s by default, a year at most, in whole
    /// milliseconds.
    pub fn start_within(mut self, start_within: Duration) -> Self {
        self.start_within = start_within;
        self
    }

    /// Sets how long nodes keep the lock without a renewal: from 100 ms to the client's `max_ttl`, in whole
    /// milliseconds;
    /// the client's `ttl` by default.
    ///
    /// It limits how long a crashed replica keeps the next tick from running.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = Some(ttl);
        self
    }

    /// Sets how long to wait for the end of another run, for a majority, and for the tick's window to open: 1 s by
    /// default, a day at most.
    ///
    /// If a majority has granted the tick in this time, the claim may take longer to confirm it, for as long as the
    /// lease lasts, because the tick would be lost otherwise.
    pub fn wait(mut self, wait: Wait) -> Self {
        self.wait = wait.duration();
        self
    }

    /// Sets the longest time for which the run may hold the lock, however often the client renews it; without end by
    /// default.
    pub fn max_hold(mut self, max_hold: Duration) -> Self {
        self.max_hold = Some(max_hold);
        self
    }

    /// Sets a number that stands for the job's configuration; the nodes keep it with the run.
    ///
    /// The nodes do not refuse replicas with different numbers.
    /// A claimant sees the number of the run before, and so does a caller that reads the job's status.
    pub fn fingerprint(mut self, fingerprint: u64) -> Self {
        self.fingerprint = fingerprint;
        self
    }

    /// Refuses the claim if the newest run before it was cut short, as
    /// [`ClaimOutcome::CutShort`](crate::ClaimOutcome::CutShort); by default, nothing before it matters.
    ///
    /// A run counts as cut short if no replica holds its lock and none has recorded how it ended, if it was dropped or
    /// never started, or if it ended with one of `outcomes`; see
    /// [`RunRecord::was_cut_short`](crate::RunRecord::was_cut_short).
    /// Runs of ticks up to `settled` do not matter, however they ended.
    ///
    /// # Examples
    ///
    /// ```
    /// use redlock_core::{ClaimOptions, Word};
    ///
    /// // A run that crashed, or ended as `failed`, is made up for before the next tick.
    /// let failed = Word::new("failed").ok_or("it has a space")?;
    /// let options = ClaimOptions::new("pod-7").not_after_cut_short([failed], None);
    /// # drop(options);
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// ```
    pub fn not_after_cut_short(
        mut self,
        outcomes: impl Into<Arc<[Word]>>,
        settled: Option<Tick>,
    ) -> Self {
        self.not_after = Some(NotAfter {
            outcomes: outcomes.into(),
            settled,
        });
        self
    }
}
