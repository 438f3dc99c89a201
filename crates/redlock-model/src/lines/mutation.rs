//! Rules of lines, each broken on purpose.

use crate::variants::variants;

variants! {
    /// A rule of lines that the model breaks on purpose, to show that the check would notice.
    pub enum LineMutation: "mutation" {
        /// The window of a key that a node gives counts from its message, so the key may end while the window lasts.
        // Shows: R9.2.
        WindowFromTheMessage => "window-from-the-message",
        /// A node that does not vote gives its key to the first in line.
        // Shows: R9.1, R9.2.
        GivenInQuarantine => "given-in-quarantine",
        /// A message to the owner that a caller has given up counts for the present one.
        // Shows: R9.2, R9.3.
        OldOwnerRevived => "old-owner-revived",
        /// The entry of a caller that a node has given the key stays in line.
        // Shows: R9.1.
        EntryKeptAfterGift => "entry-kept-after-gift",
        /// The first of the callers that wait gives back what it has, and those that came later keep what they have.
        // Shows: R9.3.
        FirstGivesBack => "first-gives-back",
        /// A node gives its key to an entry without looking whether its client gives signs of life.
        // Shows: R9.7.
        SignNotLookedAt => "sign-not-looked-at",
        /// A node keeps its free key for an entry whose client gives no sign of life.
        // Shows: R9.1.
        DeadHeadNotSkipped => "dead-head-not-skipped",
    }
}
