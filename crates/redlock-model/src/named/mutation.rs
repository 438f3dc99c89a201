//! Rules of named servers, each broken on purpose.

use crate::variants::variants;

variants! {
    /// A rule of named servers that the model breaks on purpose, to show that the check would notice.
    pub enum NamedMutation: "mutation" {
        /// The mark has no epoch, so a server that is named again under another one goes on voting.
        NoEpochInMark => "no-epoch-in-mark",
        /// A majority names the same server under any epochs, and the greatest of these counts.
        GreatestEpoch => "greatest-epoch",
        /// A majority names the same server under any epochs, and the least of these counts.
        LeastEpoch => "least-epoch",
        /// A majority that names the session's server confirms it under any epoch.
        ServerConfirms => "server-confirms",
        /// The quarantine lasts for a lease only, and not until the last confirmation is too old besides.
        ShortQuarantine => "short-quarantine",
        /// The number of informants is the one that those know of which answer.
        NumberShrinks => "number-shrinks",
        /// There is no roll: the id of any informant counts.
        AnyIdCounts => "any-id-counts",
        /// A roll begins although an informant did not answer.
        ListsUnheard => "lists-unheard",
        /// A roll begins although an informant names another pair that is not older.
        ListsUnderSmaller => "lists-under-smaller",
        /// A roll is replaced although an informant did not answer.
        RelistsUnheard => "relists-unheard",
        /// A roll is replaced although an informant names another pair that is not older.
        RelistsUnderSmaller => "relists-under-smaller",
        /// A roll is replaced, and the server goes on voting.
        RelistsInPlace => "relists-in-place",
        /// A session begins with answers of different moments.
        BeginsUnsteady => "begins-unsteady",
        /// An informant joins the roll by answers of different moments, all of ids that are older than the inquiry.
        JoinsUnsteady => "joins-unsteady",
        /// An informant joins the roll by answers of different moments, and may be younger than the others.
        YoungJoins => "young-joins",
        /// Informants join the roll without a majority of it.
        JoinsUnconfirmed => "joins-unconfirmed",
    }
}
