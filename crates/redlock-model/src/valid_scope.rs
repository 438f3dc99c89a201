//! Which worlds can be explored.

use std::{error::Error, fmt};

use crate::{Scope, layout::Layout};

impl Scope {
    /// A world of `nodes` nodes and `clients` clients, each of which makes one attempt with any proposal
    /// from 1 to `proposals`, and in which nodes lose their memory `crashes` times in all.
    ///
    /// # Errors
    ///
    /// [`InvalidScope`] if a number is out of range, or if a state of this world takes more than 128 bits.
    pub fn new(
        nodes: usize,
        clients: usize,
        crashes: u8,
        proposals: u8,
    ) -> Result<Self, InvalidScope> {
        let checks = [
            ("nodes", nodes, 1, Self::MAX_NODES),
            ("clients", clients, 1, Self::MAX_CLIENTS),
            ("crashes", crashes.into(), 0, Self::MAX_CRASHES.into()),
            ("proposals", proposals.into(), 1, Self::MAX_PROPOSALS.into()),
        ];
        for (what, number, least, most) in checks {
            if !(least..=most).contains(&number) {
                let message = format!("{what} must be from {least} to {most}, not {number}");
                return Err(InvalidScope(message));
            }
        }
        let scope = Self {
            nodes,
            clients,
            crashes,
            proposals,
        };
        match Layout::bits(scope) {
            bits if bits <= u128::BITS => Ok(scope),
            bits => Err(InvalidScope(format!(
                "a state of {scope} takes {bits} bits, and there are {}",
                u128::BITS
            ))),
        }
    }
}

/// A world that cannot be explored; the text says why.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct InvalidScope(String);

impl InvalidScope {
    pub(crate) const fn new(message: String) -> Self {
        Self(message)
    }
}

impl fmt::Display for InvalidScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for InvalidScope {}
