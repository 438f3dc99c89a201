//! Rules of claims, each broken on purpose.

use std::{fmt, str::FromStr};

use crate::UnknownMutation;

/// A rule of claims that the model breaks on purpose, or something that it assumes, to show that the check would
/// notice.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum TickMutation {
    /// A claimant starts as soon as a majority has granted, and no node is asked to remember that.
    WatermarkNotCommitted,
    /// A claimant starts as soon as one node remembers the tick.
    CommitBeforeMajority,
    /// Nodes whose vote did not count are asked to remember the tick too, and are counted.
    CommitUncounted,
    /// A claimant that has started its tick tells nodes to forget it.
    StartedAndWithdrawn,
    /// A withdrawal makes a node forget its newest run, whichever claimant it belongs to.
    NewestWithdrawn,
    /// A node that lost its data has no horizon.
    HorizonIgnored,
    /// The horizon is what the node's clock shows when it is told to vote.
    HorizonOfTheTelling,
    /// What a node grants and confirms in quarantine counts.
    QuarantinedVotes,
    /// The first claimant may come earlier than the others.
    EarlyDiffers,
    /// The clock of a node that lost its data may be set back.
    ClockSetBack,
}

impl TickMutation {
    /// All there are.
    pub const ALL: [Self; 10] = [
        Self::WatermarkNotCommitted,
        Self::CommitBeforeMajority,
        Self::CommitUncounted,
        Self::StartedAndWithdrawn,
        Self::NewestWithdrawn,
        Self::HorizonIgnored,
        Self::HorizonOfTheTelling,
        Self::QuarantinedVotes,
        Self::EarlyDiffers,
        Self::ClockSetBack,
    ];

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            // Shows: T4.3.
            Self::WatermarkNotCommitted => "watermark-not-committed",
            // Shows: T4.3.
            Self::CommitBeforeMajority => "commit-before-majority",
            // Shows: T4.3.
            Self::CommitUncounted => "commit-uncounted",
            // Shows: T4.6.
            Self::StartedAndWithdrawn => "started-and-withdrawn",
            // Shows: T4.12.
            Self::NewestWithdrawn => "newest-withdrawn",
            // Shows: T4.7.
            Self::HorizonIgnored => "horizon-ignored",
            // Shows: T4.8.
            Self::HorizonOfTheTelling => "horizon-of-the-telling",
            // Shows: L1.1.
            Self::QuarantinedVotes => "quarantined-claims",
            // Shows: A6.
            Self::EarlyDiffers => "early-differs",
            // Shows: A5.
            Self::ClockSetBack => "clock-set-back",
        }
    }
}

impl fmt::Display for TickMutation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for TickMutation {
    type Err = UnknownMutation;

    fn from_str(name: &str) -> Result<Self, UnknownMutation> {
        let mut all = Self::ALL.into_iter();
        all.find(|mutation| mutation.name() == name)
            .ok_or_else(|| UnknownMutation::new(name))
    }
}
