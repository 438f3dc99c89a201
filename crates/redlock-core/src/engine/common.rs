//! The state that all handles of a driver share.

use std::sync::{Mutex, MutexGuard, PoisonError};

use redlock_proto::Slab;

use super::hand_overs::HandOvers;

/// What all handles share.
#[derive(Debug, Default)]
pub(super) struct Common {
    /// Callers take the numbers of acquisitions, so that they can abandon one before the driver has heard of it.
    /// The driver returns a number once neither an acquisition nor a lease uses it.
    numbers: Mutex<Slab<()>>,
    pub(super) hand_overs: HandOvers,
    process: Process,
}

/// The process that has the driver: one that was forked from it has none.
#[derive(Debug)]
struct Process(u32);

impl Default for Process {
    fn default() -> Self {
        Self(std::process::id())
    }
}

impl Common {
    /// Returns whether this is the process in which the driver runs.
    pub(super) fn has_driver(&self) -> bool {
        self.process.0 == std::process::id()
    }

    pub(super) fn numbers(&self) -> MutexGuard<'_, Slab<()>> {
        // Nothing panics while the lock is held.
        self.numbers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
