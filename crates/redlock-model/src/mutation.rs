//! Rules of the protocol, each broken on purpose.

use std::{error::Error, fmt, str::FromStr};

/// A rule of the protocol that the model breaks on purpose, to show that the check would notice.
///
/// The decision functions of `redlock-proto` stay as they are.
/// All but the last two break the order of tokens; those two show that a rule asks for more than it must.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Mutation {
    /// The greatest counter is the token at once, even if too few nodes stored it.
    NoWriteBack,
    /// A write-back is stored and counted even if the attempt does not have the key.
    WriteBackWithoutKey,
    /// A write-back also goes to nodes whose vote did not count, and is counted there.
    WriteBackUncounted,
    /// A vote that comes late counts, also if its counter is greater than the token.
    LateVoteUnbounded,
    /// A node that lost its counters votes as soon as its quarantine has ended.
    NoSeed,
    /// A node that lost its counters takes a floor that may have been read during its quarantine.
    SeedEarly,
    /// A grant raises the counter to the proposal, but does not increment it.
    NoIncrement,
    /// The smallest counter that came with a vote is taken for the greatest.
    MinimumToken,
    /// The grants and confirmations of a node that lost its counters count as votes at once.
    QuarantinedVotes,
    /// A node that lost its counters takes a floor that too few voting nodes stand for.
    DegradedFloor,
    /// A survey reads the counters of a node, but not the floor that it was given.
    FloorUnread,
    /// A write-back raises the counter of a node that no longer has the attempt's key; it is not counted.
    RaiseWithoutKey,
    /// A vote that came with the token needs no confirmation.
    VoteConfirms,
}

impl Mutation {
    /// All there are.
    pub const ALL: [Self; 13] = [
        Self::NoWriteBack,
        Self::WriteBackWithoutKey,
        Self::WriteBackUncounted,
        Self::LateVoteUnbounded,
        Self::NoSeed,
        Self::SeedEarly,
        Self::NoIncrement,
        Self::MinimumToken,
        Self::QuarantinedVotes,
        Self::DegradedFloor,
        Self::FloorUnread,
        Self::RaiseWithoutKey,
        Self::VoteConfirms,
    ];

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            // Shows: T3.3.
            Self::NoWriteBack => "no-write-back",
            // Shows: T3.3.
            Self::WriteBackWithoutKey => "write-back-without-key",
            // Shows: T3.3.
            Self::WriteBackUncounted => "write-back-uncounted",
            // Shows: T3.4.
            Self::LateVoteUnbounded => "late-vote-unbounded",
            // Shows: L3.3.
            Self::NoSeed => "no-seed",
            // Shows: L3.1.
            Self::SeedEarly => "seed-early",
            // Shows: T3.1.
            Self::NoIncrement => "no-increment",
            // Shows: T3.2.
            Self::MinimumToken => "minimum-token",
            // Shows: L1.1.
            Self::QuarantinedVotes => "quarantined-votes",
            // Shows: L3.4.
            Self::DegradedFloor => "degraded-floor",
            // Shows: L3.4.
            Self::FloorUnread => "floor-unread",
            Self::RaiseWithoutKey => "raise-without-key",
            Self::VoteConfirms => "vote-confirms",
        }
    }

    /// Whether tokens keep their order all the same.
    pub const fn is_safe(self) -> bool {
        matches!(self, Self::RaiseWithoutKey | Self::VoteConfirms)
    }
}

impl fmt::Display for Mutation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Mutation {
    type Err = UnknownMutation;

    fn from_str(name: &str) -> Result<Self, UnknownMutation> {
        Self::ALL
            .into_iter()
            .find(|mutation| mutation.name() == name)
            .ok_or_else(|| UnknownMutation(name.to_owned()))
    }
}

/// A name that no [`Mutation`] has.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct UnknownMutation(String);

impl UnknownMutation {
    pub(crate) fn new(name: &str) -> Self {
        Self(name.to_owned())
    }
}

impl fmt::Display for UnknownMutation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = Mutation::ALL.map(Mutation::name).join(", ");
        write!(f, "there is no mutation '{}', only {names}", self.0)
    }
}

impl Error for UnknownMutation {}
