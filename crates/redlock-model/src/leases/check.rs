//! What is to be checked.

use std::fmt;

use redlock_proto::Mode;

use super::{LeaseMutation, state::CLIENTS};
use crate::InvalidScope;

/// How a client of the model has the key.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Role {
    /// Alone.
    Writer,
    /// Alone at first; it may share the key from any moment on.
    WriterThenReader,
    /// Shared with others.
    Reader,
}

/// A check of leases in a world of three nodes.
///
/// ```
/// use redlock_model::{LeaseCheck, LeaseMutation, Role};
///
/// let check = LeaseCheck::new(&[Role::Writer, Role::Reader], 0).unwrap();
/// assert!(check.run().holds());
/// let broken = check.mutation(LeaseMutation::KeyEndsBeforeItsLease).run();
/// println!("{}", broken.trace().unwrap());
/// ```
#[derive(Clone, Copy, Debug)]
#[must_use = "nothing is checked until it is run"]
pub struct LeaseCheck {
    /// What each client is; `None` beyond those there are.
    pub(super) roles: [Option<Role>; CLIENTS],
    pub(super) crashes: u8,
    pub(super) mutation: Option<LeaseMutation>,
}

impl LeaseCheck {
    /// Makes a check with a client for each of these roles, 1 to 3, and so many losses of data, 3 at most.
    ///
    /// # Errors
    ///
    /// [`InvalidScope`] if a number is out of range.
    pub fn new(roles: &[Role], crashes: u8) -> Result<Self, InvalidScope> {
        let clients = roles.len();
        if !(1..=CLIENTS).contains(&clients) || crashes > MOST_CRASHES {
            let message = format!(
                "there are from 1 to {CLIENTS} clients and up to {MOST_CRASHES} crashes, not {clients} and {crashes}"
            );
            return Err(InvalidScope::new(message));
        }
        let mut all = [None; CLIENTS];
        for (place, role) in all.iter_mut().zip(roles) {
            *place = Some(*role);
        }
        Ok(Self {
            roles: all,
            crashes,
            mutation: None,
        })
    }

    /// Returns the smallest world that shows a broken rule, with that rule broken.
    pub const fn that_notices(mutation: LeaseMutation) -> Self {
        let (first, third, crashes) = match mutation {
            LeaseMutation::AloneAfterADowngrade => (Role::WriterThenReader, None, 0),
            LeaseMutation::KeyEndsBeforeItsLease => (Role::Writer, None, 0),
            LeaseMutation::NoWriteBackOfReaders => (Role::Reader, Some(Role::Reader), 0),
            _ => (Role::Writer, None, 1),
        };
        Self {
            roles: [Some(first), Some(Role::Reader), third],
            crashes,
            mutation: Some(mutation),
        }
    }

    /// Breaks a rule.
    pub const fn mutation(mut self, mutation: LeaseMutation) -> Self {
        self.mutation = Some(mutation);
        self
    }

    pub(super) fn breaks(&self, mutation: LeaseMutation) -> bool {
        self.mutation == Some(mutation)
    }
}

impl Role {
    /// All there are.
    pub const ALL: [Self; 3] = [Self::Writer, Self::WriterThenReader, Self::Reader];

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Writer => "writer",
            Self::WriterThenReader => "writer-then-reader",
            Self::Reader => "reader",
        }
    }

    /// Returns the mode in which it acquires.
    pub(super) const fn mode(self) -> Mode {
        match self {
            Self::Writer | Self::WriterThenReader => Mode::Exclusive,
            Self::Reader => Mode::Shared,
        }
    }
}

impl fmt::Display for LeaseCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("leases: 3 nodes")?;
        for role in self.roles.iter().flatten() {
            write!(f, ", {}", role.name())?;
        }
        write!(f, ", {} crashes", self.crashes)?;
        match self.mutation {
            Some(mutation) => write!(f, ", {mutation}"),
            None => Ok(()),
        }
    }
}

/// As many as two bits count.
const MOST_CRASHES: u8 = 3;
