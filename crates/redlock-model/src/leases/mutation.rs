//! Rules of leases, each broken on purpose.

use std::{fmt, str::FromStr};

use crate::UnknownMutation;

/// A rule of leases that the model breaks on purpose, or something that it assumes, to show that the check would
/// notice.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum LeaseMutation {
    /// A lease counts as had alone though its holder shares its key.
    AloneAfterADowngrade,
    /// A key ends on a node though its holder's lease still rests on that node.
    KeyEndsBeforeItsLease,
    /// What a node grants and confirms in quarantine counts.
    QuarantinedGrants,
    /// A node votes again though a lease still rests on what it has forgotten.
    QuarantineTooShort,
    /// A node that lost its data votes again without a floor.
    NoFloorForReaders,
    /// The greatest counter is the token at once, even if too few nodes stored it.
    NoWriteBackOfReaders,
    /// A node upgrades a reader beside others.
    UpgradeBesideReaders,
    /// A reader is upgraded though its shared lease is over.
    UpgradeOfWhatIsOver,
    /// A key that a transaction has taken is a vote for what the client proposed, though the node has counted further.
    TransactionOvertaken,
}

impl LeaseMutation {
    /// All there are.
    pub const ALL: [Self; 9] = [
        Self::AloneAfterADowngrade,
        Self::KeyEndsBeforeItsLease,
        Self::QuarantinedGrants,
        Self::QuarantineTooShort,
        Self::NoFloorForReaders,
        Self::NoWriteBackOfReaders,
        Self::UpgradeBesideReaders,
        Self::UpgradeOfWhatIsOver,
        Self::TransactionOvertaken,
    ];

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            // Shows: R4.3.
            Self::AloneAfterADowngrade => "alone-after-a-downgrade",
            // Shows: R4.1.
            Self::KeyEndsBeforeItsLease => "key-ends-before-its-lease",
            // Shows: R4.1.
            Self::QuarantinedGrants => "quarantined-grants",
            // Shows: R4.1.
            Self::QuarantineTooShort => "quarantine-too-short",
            // Shows: R4.5.
            Self::NoFloorForReaders => "no-floor-for-readers",
            // Shows: R4.5.
            Self::NoWriteBackOfReaders => "no-write-back-of-readers",
            // Shows: R4.4.
            Self::UpgradeBesideReaders => "upgrade-beside-readers",
            // Shows: R4.4.
            Self::UpgradeOfWhatIsOver => "upgrade-of-what-is-over",
            // Shows: R2.3.
            Self::TransactionOvertaken => "transaction-overtaken",
        }
    }
}

impl fmt::Display for LeaseMutation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for LeaseMutation {
    type Err = UnknownMutation;

    fn from_str(name: &str) -> Result<Self, UnknownMutation> {
        let mut all = Self::ALL.into_iter();
        all.find(|mutation| mutation.name() == name)
            .ok_or_else(|| UnknownMutation::new(name))
    }
}
