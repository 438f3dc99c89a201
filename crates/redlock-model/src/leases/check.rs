//! What is to be checked.

use std::fmt;

use redlock_proto::LockMode;

use super::{LeaseMutation, node::owner, state::CLIENTS};
use crate::{InvalidScope, variants::variants};

variants! {
    /// How a client of the model has the key.
    pub enum Role: "role" {
        /// Alone.
        Writer => "writer",
        /// Alone at first; it may share the key from any moment on.
        WriterThenReader => "writer-then-reader",
        /// Shared with others.
        Reader => "reader",
        /// The reader before it, once it has a lease: it tries to have the key alone, beside its shared lease.
        Upgrade => "upgrade",
    }
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
    /// [`InvalidScope`] if a number is out of range, or if an upgrade does not follow a reader.
    pub fn new(roles: &[Role], crashes: u8) -> Result<Self, InvalidScope> {
        let clients = roles.len();
        if !(1..=CLIENTS).contains(&clients) || crashes > MOST_CRASHES {
            let message = format!(
                "there are from 1 to {CLIENTS} clients and up to {MOST_CRASHES} crashes, not {clients} and {crashes}"
            );
            return Err(InvalidScope::new(message));
        }
        let follows_a_reader = |pair: &[Role]| pair[1] != Role::Upgrade || pair[0] == Role::Reader;
        if roles[0] == Role::Upgrade || !roles.windows(2).all(follows_a_reader) {
            let message = "an upgrade is of the reader before it: name that first".to_owned();
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
            LeaseMutation::KeyEndsBeforeItsLease | LeaseMutation::TransactionOvertaken => {
                (Role::Writer, None, 0)
            }
            LeaseMutation::NoWriteBackOfReaders => (Role::Reader, Some(Role::Reader), 0),
            LeaseMutation::UpgradeBesideReaders => (Role::Reader, Some(Role::Upgrade), 0),
            LeaseMutation::UpgradeOfWhatIsOver => (Role::Writer, Some(Role::Upgrade), 0),
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
    /// Returns the mode in which client `by` acquires that is this.
    pub(super) fn mode(self, by: usize) -> LockMode {
        match self {
            Self::Writer | Self::WriterThenReader => LockMode::Exclusive,
            Self::Reader => LockMode::Shared,
            Self::Upgrade => LockMode::Upgrade {
                of: owner(by.saturating_sub(1)).secret(),
            },
        }
    }
}

impl fmt::Display for LeaseCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("leases: 3 nodes")?;
        for role in self.roles.iter().flatten() {
            write!(f, ", {role}")?;
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
