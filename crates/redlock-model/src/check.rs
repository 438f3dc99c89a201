//! What is to be checked.

use std::fmt;

use crate::{Mutation, Scope};

/// A check of a whole world.
///
/// ```
/// use redlock_model::{Check, Mutation, Scope};
///
/// let scope = Scope::new(3, 2, 0, 2).unwrap();
/// assert!(Check::new(scope).run().holds());
///
/// let broken = Check::new(scope).mutation(Mutation::NoWriteBack);
/// println!("{}", broken.run().trace().unwrap());
/// ```
#[derive(Clone, Copy, Debug)]
#[must_use = "nothing is checked until it is run"]
pub struct Check {
    pub(crate) scope: Scope,
    pub(crate) mutation: Option<Mutation>,
    pub(crate) symmetry: bool,
    pub(crate) pruning: bool,
    pub(crate) limit: usize,
}

impl Check {
    /// A check of the protocol as it is, in this scope.
    pub const fn new(scope: Scope) -> Self {
        Self {
            scope,
            mutation: None,
            symmetry: true,
            pruning: true,
            limit: usize::MAX,
        }
    }

    /// Returns how large a world is explored.
    pub const fn scope(&self) -> Scope {
        self.scope
    }

    /// Breaks a rule.
    pub const fn mutation(mut self, mutation: Mutation) -> Self {
        self.mutation = Some(mutation);
        self
    }

    /// Keeps states that differ only in which client is which, and which node is which.
    pub const fn without_symmetry(mut self) -> Self {
        self.symmetry = false;
        self
    }

    /// Takes every step on its own: expiry, refusals, lost replies, clients that give up.
    pub const fn without_pruning(mut self) -> Self {
        self.pruning = false;
        self
    }

    /// Ends the search, without a verdict, once there are more states than this; by default never.
    ///
    /// A state takes about 40 bytes.
    pub const fn limit(mut self, states: usize) -> Self {
        self.limit = states;
        self
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.scope)?;
        if let Some(mutation) = self.mutation {
            write!(f, ", {mutation}")?;
        }
        if !self.symmetry {
            f.write_str(", no symmetry")?;
        }
        if !self.pruning {
            f.write_str(", no pruning")?;
        }
        Ok(())
    }
}
