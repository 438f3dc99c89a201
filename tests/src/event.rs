//! What one process did, line by line.

use std::{
    fs::File,
    io::{self, Write},
    path::Path,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use redlock_core::{Lease, Mode};
use serde::{Deserialize, Serialize};

use crate::now;

/// A moment in the life of a hold.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub enum Moment {
    /// The acquire has returned.
    Acquired,
    /// The work that the lease guards was polled.
    Polled,
    /// The work is done and the release is about to be sent.
    Releasing,
    /// The holder was told of the loss.
    Lost,
}

/// One line of the history.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Event {
    /// When, as [`now`] counts.
    pub at: Duration,
    /// Until when the lease was valid, as known at that moment; `at` if it was valid no longer.
    pub until: Duration,
    /// What happened.
    pub moment: Moment,
    /// The resource.
    pub key: String,
    /// The process.
    pub process: u32,
    /// The lease, among those of its process.
    pub lease: u64,
    /// Its fencing token.
    pub token: u64,
    /// Whether others may have one on the same resource.
    pub is_shared: bool,
}

impl Event {
    /// What is true of `lease` at this moment.
    pub fn of(lease: &Lease, id: u64, moment: Moment) -> Self {
        // In this order: a lease that is valid afterwards was valid at `at`.
        let at = now();
        let until = at + lease.remaining();
        Self {
            at,
            until,
            moment,
            key: lease.key().as_str().to_owned(),
            process: std::process::id(),
            lease: id,
            token: lease.token().get(),
            is_shared: lease.mode() == Mode::Shared,
        }
    }

    /// Whether the lease was valid at that moment.
    pub fn is_valid(&self) -> bool {
        self.until > self.at
    }
}

/// Where one process writes its events, each with one write to the kernel.
///
/// A file of its own, and one line at a time: whatever was written stays, in order and whole, though
/// the process is killed the moment after.
#[derive(Debug)]
pub struct HistoryWriter(Mutex<File>);

impl HistoryWriter {
    /// Appends to the file at `path`.
    ///
    /// # Errors
    ///
    /// As opening a file.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = File::options().create(true).append(true).open(path)?;
        Ok(Self(Mutex::new(file)))
    }

    /// Appends an event.
    ///
    /// # Panics
    ///
    /// If it cannot be written.
    pub fn write(&self, event: &Event) {
        let mut line = serde_json::to_string(event).expect("an event is plain data");
        line.push('\n');
        let mut file = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        file.write_all(line.as_bytes())
            .expect("the history can be written");
    }
}
