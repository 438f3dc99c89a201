//! Rules of claims, each broken on purpose.

use crate::variants::variants;

variants! {
    /// A rule of claims that the model breaks on purpose, or something that it assumes, to show that the check would
    /// notice.
    pub enum TickMutation: "mutation" {
        /// A claimant starts as soon as a majority has granted, and no node is asked to remember that.
        // Shows: T4.3.
        WatermarkNotCommitted => "watermark-not-committed",
        /// A claimant starts as soon as one node remembers the tick.
        // Shows: T4.3.
        CommitBeforeMajority => "commit-before-majority",
        /// Nodes whose vote did not count are asked to remember the tick too, and are counted.
        // Shows: T4.3.
        CommitUncounted => "commit-uncounted",
        /// A claimant that has started its tick tells nodes to forget it.
        // Shows: T4.6.
        StartedAndWithdrawn => "started-and-withdrawn",
        /// A withdrawal makes a node forget its newest run, whichever claimant it belongs to.
        // Shows: T4.12.
        NewestWithdrawn => "newest-withdrawn",
        /// A node that lost its data has no horizon.
        // Shows: T4.7.
        HorizonIgnored => "horizon-ignored",
        /// The horizon is what the node's clock shows when it is told to vote.
        // Shows: T4.8.
        HorizonOfTheTelling => "horizon-of-the-telling",
        /// What a node grants and confirms in quarantine counts.
        // Shows: L1.1.
        QuarantinedVotes => "quarantined-claims",
        /// The first claimant may come earlier than the others.
        // Shows: A6.
        EarlyDiffers => "early-differs",
        /// The clock of a node that lost its data may be set back.
        // Shows: A5.
        ClockSetBack => "clock-set-back",
    }
}
