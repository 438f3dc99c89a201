use std::sync::Arc;

use redlock_proto::{Ticket, Timing};

use crate::{ResourceKeys, meter::LockMeter};

/// The mode of a lease: exclusive, or shared with other readers.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "a holder has the resource alone, or does not"
)]
pub enum Mode {
    /// No other holder has the resource at the same time: a writer.
    #[default]
    Exclusive,
    /// Other holders may share the resource: a reader.
    Shared,
}

impl From<Mode> for redlock_proto::Mode {
    fn from(mode: Mode) -> Self {
        match mode {
            Mode::Exclusive => Self::Exclusive,
            Mode::Shared => Self::Shared,
        }
    }
}

/// What a lease is on, and how long it is asked for at a time.
#[derive(Clone, Debug)]
pub(crate) struct Subject {
    pub(crate) keys: ResourceKeys,
    pub(crate) mode: Mode,
    pub(crate) class: Option<Arc<str>>,
    pub(crate) timing: Timing,
    pub(crate) meter: LockMeter,
    /// Its place in the local queue, once it has the turn.
    pub(crate) place: Option<Ticket>,
}

impl Subject {
    /// Returns the class: what was asked for, or else the first key's.
    pub(crate) fn class(&self) -> Option<&str> {
        class_of(self.class.as_deref(), &self.keys)
    }
}

/// Returns the class of a lease on these keys for which this one was asked, or none.
pub(crate) fn class_of<'a>(asked: Option<&'a str>, keys: &'a ResourceKeys) -> Option<&'a str> {
    asked.or_else(|| keys.first().class())
}
