//! Rules of the protocol, each broken on purpose.

use crate::variants::variants;

variants! {
    /// A rule of the protocol that the model breaks on purpose, to show that the check would notice.
    ///
    /// The decision functions of `redlock-proto` stay as they are.
    /// All but the last two break the order of tokens; those two show that a rule asks for more than it must.
    pub enum Mutation: "mutation" {
        /// The greatest counter is the token at once, even if too few nodes stored it.
        // Shows: T3.3.
        NoWriteBack => "no-write-back",
        /// A write-back is stored and counted even if the attempt does not have the key.
        // Shows: T3.3.
        WriteBackWithoutKey => "write-back-without-key",
        /// A write-back also goes to nodes whose vote did not count, and is counted there.
        // Shows: T3.3.
        WriteBackUncounted => "write-back-uncounted",
        /// A vote that comes late counts, also if its counter is greater than the token.
        // Shows: T3.4.
        LateVoteUnbounded => "late-vote-unbounded",
        /// A node that lost its counters votes as soon as its quarantine has ended.
        // Shows: L3.3.
        NoSeed => "no-seed",
        /// A node that lost its counters takes a floor that may have been read during its quarantine.
        // Shows: L3.1.
        SeedEarly => "seed-early",
        /// A grant raises the counter to the proposal, but does not increment it.
        // Shows: T3.1.
        NoIncrement => "no-increment",
        /// The smallest counter that came with a vote is taken for the greatest.
        // Shows: T3.2.
        MinimumToken => "minimum-token",
        /// The grants and confirmations of a node that lost its counters count as votes at once.
        // Shows: L1.1.
        QuarantinedVotes => "quarantined-votes",
        /// A node that lost its counters takes a floor that too few voting nodes stand for.
        // Shows: L3.4.
        DegradedFloor => "degraded-floor",
        /// A survey reads the counters of a node, but not the floor that it was given.
        // Shows: L3.4.
        FloorUnread => "floor-unread",
        /// A write-back raises the counter of a node that no longer has the attempt's key; it is not counted.
        RaiseWithoutKey => "raise-without-key",
        /// A vote that came with the token needs no confirmation.
        VoteConfirms => "vote-confirms",
    }
}

impl Mutation {
    /// Whether tokens keep their order all the same.
    pub const fn is_safe(self) -> bool {
        matches!(self, Self::RaiseWithoutKey | Self::VoteConfirms)
    }
}
