//! Rules about a job's ticks above their claims, each broken on purpose.

use crate::variants::variants;

variants! {
    /// A rule about a job's ticks that the model breaks on purpose, to show that the check would notice.
    ///
    /// The first six are rules of earlier versions.
    pub enum LedgerMutation: "mutation" {
        /// A backfill looks for runs that ended well only once it has claimed a tick.
        // Shows: R6.5.
        CountedLate => "counted-late",
        /// The series of backfills keeps only as many lines as a backfill has ticks.
        // Shows: R6.5.
        NoLineToSpare => "no-line-to-spare",
        /// A retry does not look at backfills.
        // Shows: R6.5.
        BackfillUnseen => "backfill-unseen",
        /// A backfill claims a tick after one whose run was cut short.
        // Shows: R6.5.
        CutShortPassed => "cut-short-passed",
        /// A backfill does not report the missed ticks that its claim of a tick passes.
        // Shows: R6.6.
        MissedUntold => "missed-untold",
        /// A replica that looks again under the lock takes its own lock for that of the run before.
        // Shows: R6.5.
        OwnLockMistaken => "own-lock-mistaken",
        /// A schedule claims a tick after one whose run was cut short.
        // Shows: R6.2.
        CutShortPassedOnTime => "cut-short-passed-on-time",
        /// A replica that has claimed a further run of a tick does not look again under the lock.
        // Shows: R6.1.
        RunsNotReadAgain => "runs-not-read-again",
        /// A replica that has claimed a tick of a backfill goes by what was counted before.
        // Shows: R6.5.
        BackfillByCountAlone => "backfill-by-count-alone",
        /// A backfill runs a tick without a claim of the tick itself.
        // Shows: R6.1.
        TickNotUsedUp => "tick-not-used-up",
        /// A replica decides on the newest request first.
        // Shows: R6.7.
        NewestRequestFirst => "newest-request-first",
        /// Any number of requests may wait.
        // Shows: R6.7.
        RequestsUnlimited => "requests-unlimited",
    }
}
