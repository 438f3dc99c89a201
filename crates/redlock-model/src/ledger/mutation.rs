//! Rules about a job's ticks above their claims, each broken on purpose.

use std::{fmt, str::FromStr};

use crate::UnknownMutation;

/// A rule about a job's ticks that the model breaks on purpose, to show that the check would notice.
///
/// The first six are rules of earlier versions.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum LedgerMutation {
    /// A backfill looks for runs that ended well only once it has claimed a tick.
    CountedLate,
    /// The series of backfills keeps only as many lines as a backfill has ticks.
    NoLineToSpare,
    /// A retry does not look at backfills.
    BackfillUnseen,
    /// A backfill claims a tick after one whose run was cut short.
    CutShortPassed,
    /// A backfill does not report the missed ticks that its claim of a tick passes.
    MissedUntold,
    /// A replica that looks again under the lock takes its own lock for that of the run before.
    OwnLockMistaken,
    /// A schedule claims a tick after one whose run was cut short.
    CutShortPassedOnTime,
    /// A replica that has claimed a further run of a tick does not look again under the lock.
    RunsNotReadAgain,
    /// A replica that has claimed a tick of a backfill goes by what was counted before.
    BackfillByCountAlone,
    /// A backfill runs a tick without a claim of the tick itself.
    TickNotUsedUp,
    /// A replica decides on the newest request first.
    NewestRequestFirst,
    /// Any number of requests may wait.
    RequestsUnlimited,
}

impl LedgerMutation {
    /// All there are.
    pub const ALL: [Self; 12] = [
        Self::CountedLate,
        Self::NoLineToSpare,
        Self::BackfillUnseen,
        Self::CutShortPassed,
        Self::MissedUntold,
        Self::OwnLockMistaken,
        Self::CutShortPassedOnTime,
        Self::RunsNotReadAgain,
        Self::BackfillByCountAlone,
        Self::TickNotUsedUp,
        Self::NewestRequestFirst,
        Self::RequestsUnlimited,
    ];

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            // Shows: R6.5.
            Self::CountedLate => "counted-late",
            // Shows: R6.5.
            Self::NoLineToSpare => "no-line-to-spare",
            // Shows: R6.5.
            Self::BackfillUnseen => "backfill-unseen",
            // Shows: R6.5.
            Self::CutShortPassed => "cut-short-passed",
            // Shows: R6.6.
            Self::MissedUntold => "missed-untold",
            // Shows: R6.5.
            Self::OwnLockMistaken => "own-lock-mistaken",
            // Shows: R6.2.
            Self::CutShortPassedOnTime => "cut-short-passed-on-time",
            // Shows: R6.1.
            Self::RunsNotReadAgain => "runs-not-read-again",
            // Shows: R6.5.
            Self::BackfillByCountAlone => "backfill-by-count-alone",
            // Shows: R6.1.
            Self::TickNotUsedUp => "tick-not-used-up",
            // Shows: R6.7.
            Self::NewestRequestFirst => "newest-request-first",
            // Shows: R6.7.
            Self::RequestsUnlimited => "requests-unlimited",
        }
    }
}

impl fmt::Display for LedgerMutation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for LedgerMutation {
    type Err = UnknownMutation;

    fn from_str(name: &str) -> Result<Self, UnknownMutation> {
        let mut all = Self::ALL.into_iter();
        all.find(|mutation| mutation.name() == name)
            .ok_or_else(|| UnknownMutation::new(name))
    }
}
