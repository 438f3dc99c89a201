//! The request for a lease: what it is on, and the terms on which it is asked for.

use std::sync::{Arc, Mutex, PoisonError};

use redlock_proto::{HolderLabel, LeaseTerms, Ticket};
use tokio::sync::watch;

use crate::{Guarantee, ResourceKeys, clock::Clock, meter::LockMeter};

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

impl From<Mode> for redlock_proto::LockMode {
    fn from(mode: Mode) -> Self {
        match mode {
            Mode::Exclusive => Self::Exclusive,
            Mode::Shared => Self::Shared,
        }
    }
}

/// What a lease is on, and the terms on which it is asked for.
#[derive(Clone, Debug)]
pub(crate) struct LeaseRequest {
    pub(crate) keys: ResourceKeys,
    pub(crate) mode: Mode,
    /// Its place in the local queue, once it has the turn.
    pub(crate) place: Option<Ticket>,
    pub(crate) site: Arc<CallSite>,
}

/// What the leases of one call site have in common: a client may keep a hundred thousand of them.
#[derive(Debug)]
pub(crate) struct CallSite {
    /// The number of the client, and its clock.
    pub(crate) client: u64,
    pub(crate) clock: Clock,
    pub(crate) guarantee: Guarantee,
    /// What was asked for, or else the first key's.
    pub(crate) class: Option<Arc<str>>,
    /// The label of the holder, instead of that of the client.
    pub(crate) label: Option<Arc<OwnLabel>>,
    pub(crate) terms: LeaseTerms,
    pub(crate) meter: LockMeter,
}

/// The call sites at which leases were asked for last, without those that have a label or a meter of their own.
#[derive(Debug, Default)]
pub(crate) struct CallSites(Mutex<Vec<Arc<CallSite>>>);

impl CallSites {
    /// Returns the call site of this class and these terms; `new` makes it unless it is known.
    pub(crate) fn get(
        &self,
        class: Option<&str>,
        terms: &LeaseTerms,
        new: impl FnOnce() -> CallSite,
    ) -> Arc<CallSite> {
        // Each entry is whole at every moment, and `new` may be application code.
        let sites = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_it = |site: &&Arc<CallSite>| site.terms == *terms && site.class.as_deref() == class;
        let known = sites().iter().find(is_it).map(Arc::clone);
        known.unwrap_or_else(|| {
            let site = Arc::new(new());
            let mut sites = sites();
            if sites.len() == MOST_SITES {
                sites.remove(0);
            }
            sites.push(Arc::clone(&site));
            site
        })
    }
}

/// How many call sites a client remembers: a search among them costs each acquire something.
const MOST_SITES: usize = 8;

/// Returns the class of a lease on these keys for which this one was asked, or none.
pub(crate) fn class_of<'a>(asked: Option<&'a str>, keys: &'a ResourceKeys) -> Option<&'a str> {
    asked.or_else(|| keys.first().class())
}

/// The label of a holder, instead of that of its client, and the news of its place in line while it waits.
#[derive(Debug)]
pub(crate) struct OwnLabel {
    pub(crate) label: HolderLabel,
    place: watch::Sender<()>,
}

impl OwnLabel {
    pub(crate) fn new(label: HolderLabel) -> Self {
        Self {
            label,
            place: watch::Sender::new(()),
        }
    }

    /// Says that callers before it in line have left it.
    pub(crate) fn moves_up(&self) {
        self.place.send_replace(());
    }

    /// Returns a receiver of that news.
    pub(crate) fn place(&self) -> watch::Receiver<()> {
        self.place.subscribe()
    }
}
