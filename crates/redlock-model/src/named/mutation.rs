//! Rules of named servers, each broken on purpose.

use std::{fmt, str::FromStr};

use crate::UnknownMutation;

/// A rule of named servers that the model breaks on purpose, to show that the check would notice.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum NamedMutation {
    /// The mark has no epoch, so a server that is named again under another one goes on voting.
    NoEpochInMark,
    /// A majority names the same server under any epochs, and the greatest of these counts.
    GreatestEpoch,
    /// A majority names the same server under any epochs, and the least of these counts.
    LeastEpoch,
    /// A majority that names the session's server confirms it under any epoch.
    ServerConfirms,
    /// The quarantine lasts for a lease only, and not until the last confirmation is too old besides.
    ShortQuarantine,
    /// The number of informants is the one that those know of which answer.
    NumberShrinks,
    /// There is no roll: the id of any informant counts.
    AnyIdCounts,
    /// A roll begins although an informant did not answer.
    ListsUnheard,
    /// A roll begins although an informant names another pair that is not older.
    ListsUnderSmaller,
    /// A roll is replaced although an informant did not answer.
    RelistsUnheard,
    /// A roll is replaced although an informant names another pair that is not older.
    RelistsUnderSmaller,
    /// A roll is replaced, and the server goes on voting.
    RelistsInPlace,
    /// A session begins with answers of different moments.
    BeginsUnsteady,
    /// An informant joins the roll by answers of different moments, all of ids that are older than the inquiry.
    JoinsUnsteady,
    /// An informant joins the roll by answers of different moments, and may be younger than the others.
    YoungJoins,
    /// Informants join the roll without a majority of it.
    JoinsUnconfirmed,
}

impl NamedMutation {
    /// All there are.
    pub const ALL: [Self; 16] = [
        Self::NoEpochInMark,
        Self::GreatestEpoch,
        Self::LeastEpoch,
        Self::ServerConfirms,
        Self::ShortQuarantine,
        Self::NumberShrinks,
        Self::AnyIdCounts,
        Self::ListsUnheard,
        Self::ListsUnderSmaller,
        Self::RelistsUnheard,
        Self::RelistsUnderSmaller,
        Self::RelistsInPlace,
        Self::BeginsUnsteady,
        Self::JoinsUnsteady,
        Self::YoungJoins,
        Self::JoinsUnconfirmed,
    ];

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NoEpochInMark => "no-epoch-in-mark",
            Self::GreatestEpoch => "greatest-epoch",
            Self::LeastEpoch => "least-epoch",
            Self::ServerConfirms => "server-confirms",
            Self::ShortQuarantine => "short-quarantine",
            Self::NumberShrinks => "number-shrinks",
            Self::AnyIdCounts => "any-id-counts",
            Self::ListsUnheard => "lists-unheard",
            Self::ListsUnderSmaller => "lists-under-smaller",
            Self::RelistsUnheard => "relists-unheard",
            Self::RelistsUnderSmaller => "relists-under-smaller",
            Self::RelistsInPlace => "relists-in-place",
            Self::BeginsUnsteady => "begins-unsteady",
            Self::JoinsUnsteady => "joins-unsteady",
            Self::YoungJoins => "young-joins",
            Self::JoinsUnconfirmed => "joins-unconfirmed",
        }
    }
}

impl fmt::Display for NamedMutation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for NamedMutation {
    type Err = UnknownMutation;

    fn from_str(name: &str) -> Result<Self, UnknownMutation> {
        let mut all = Self::ALL.into_iter();
        all.find(|mutation| mutation.name() == name)
            .ok_or_else(|| UnknownMutation::new(name))
    }
}
