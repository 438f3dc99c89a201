//! Rules of lines, each broken on purpose.

use std::{fmt, str::FromStr};

use crate::UnknownMutation;

/// A rule of lines that the model breaks on purpose, to show that the check would notice.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum LineMutation {
    /// The window of a key that a node gives counts from its message, so the key may end while the window lasts.
    WindowFromTheMessage,
    /// A node that does not vote gives its key to the first in line.
    GivenInQuarantine,
    /// A message to the owner that a caller has given up counts for the present one.
    OldOwnerRevived,
    /// The entry of a caller that a node has given the key stays in line.
    EntryKeptAfterGift,
    /// The first of the callers that wait gives back what it has, and those that came later keep what they have.
    FirstGivesBack,
    /// A node keeps its free key for an entry whose caller waits no longer.
    DeadHeadNotSkipped,
}

impl LineMutation {
    /// All there are.
    pub const ALL: [Self; 6] = [
        Self::WindowFromTheMessage,
        Self::GivenInQuarantine,
        Self::OldOwnerRevived,
        Self::EntryKeptAfterGift,
        Self::FirstGivesBack,
        Self::DeadHeadNotSkipped,
    ];

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            // Shows: R9.2.
            Self::WindowFromTheMessage => "window-from-the-message",
            // Shows: R9.1, R9.2.
            Self::GivenInQuarantine => "given-in-quarantine",
            // Shows: R9.2, R9.3.
            Self::OldOwnerRevived => "old-owner-revived",
            // Shows: R9.1.
            Self::EntryKeptAfterGift => "entry-kept-after-gift",
            // Shows: R9.3.
            Self::FirstGivesBack => "first-gives-back",
            // Shows: R9.1.
            Self::DeadHeadNotSkipped => "dead-head-not-skipped",
        }
    }
}

impl fmt::Display for LineMutation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for LineMutation {
    type Err = UnknownMutation;

    fn from_str(name: &str) -> Result<Self, UnknownMutation> {
        let mut all = Self::ALL.into_iter();
        all.find(|mutation| mutation.name() == name)
            .ok_or_else(|| UnknownMutation::new(name))
    }
}
