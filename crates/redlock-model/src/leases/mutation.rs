//! Rules of leases, each broken on purpose.

use crate::variants::variants;

variants! {
    /// A rule of leases that the model breaks on purpose, or something that it assumes, to show that the check would
    /// notice.
    pub enum LeaseMutation: "mutation" {
        /// A lease counts as had alone though its holder shares its key.
        // Shows: R4.3.
        AloneAfterADowngrade => "alone-after-a-downgrade",
        /// A key ends on a node though its holder's lease still rests on that node.
        // Shows: R4.1.
        KeyEndsBeforeItsLease => "key-ends-before-its-lease",
        /// What a node grants and confirms in quarantine counts.
        // Shows: R4.1.
        QuarantinedGrants => "quarantined-grants",
        /// A node votes again though a lease still rests on what it has forgotten.
        // Shows: R4.1.
        QuarantineTooShort => "quarantine-too-short",
        /// A node that lost its data votes again without a floor.
        // Shows: R4.5.
        NoFloorForReaders => "no-floor-for-readers",
        /// The greatest counter is the token at once, even if too few nodes stored it.
        // Shows: R4.5.
        NoWriteBackOfReaders => "no-write-back-of-readers",
        /// A node upgrades a reader beside others.
        // Shows: R4.4.
        UpgradeBesideReaders => "upgrade-beside-readers",
        /// A reader is upgraded though its shared lease is over.
        // Shows: R4.4.
        UpgradeOfWhatIsOver => "upgrade-of-what-is-over",
        /// A key that a transaction has taken is a vote for what the client proposed, though the node has counted further.
        // Shows: R2.3.
        TransactionOvertaken => "transaction-overtaken",
    }
}
