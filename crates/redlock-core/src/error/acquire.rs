use std::{error::Error, fmt, time::Duration};

use redlock_proto::{Failure, FailureKind, HolderLabel, Instant};

use super::{NodeAnswer, NodeReport, nodes};
use crate::{InvalidKey, InvalidOption};

/// An acquire that did not win the lease; the caller holds nothing, and the client releases the keys that nodes
/// granted.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
/// use redlock_core::AcquireErrorKind::{Contended, NoQuorum, Quarantined};
///
/// let guard = redlock.acquire("report").await?;
/// let error = redlock.try_acquire("report").await.unwrap_err();
/// match error.kind() {
///     Contended => println!("held by {:?}, free in {:?}", error.holder(), error.remaining()),
///     Quarantined => println!("try again in {:?}", error.ready_in()),
///     NoQuorum => error.reports().iter().for_each(|report| println!("{report}")),
///     _ => return Err(error.into()),
/// }
/// # drop(guard);
/// # Ok(())
/// # }
/// ```
pub struct AcquireError {
    kind: AcquireErrorKind,
    detail: Detail,
    ahead: usize,
}

#[derive(Debug)]
enum Detail {
    Nodes {
        needed: usize,
        remaining: Option<Duration>,
        ready_in: Option<Duration>,
        reports: Vec<NodeReport>,
    },
    Key(InvalidKey),
    Text(String),
    None,
}

/// The kind of an [`AcquireError`], which says whether the caller, the operator or the program must act.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum AcquireErrorKind {
    /// Another caller holds the resource: try again later.
    Contended,
    /// Too few nodes gave a usable answer: the operator must look at the nodes.
    NoQuorum,
    /// Too few nodes vote, because some may have forgotten leases: try again after
    /// [`ready_in`](AcquireError::ready_in).
    ///
    /// This happens on a first start, after a restart without data, and after a failover.
    /// If the nodes are known to have forgotten nothing, an operator can use
    /// [`Redlock::dangerous_bless`](crate::Redlock::dangerous_bless).
    Quarantined,
    /// A majority granted too late for the time to live, or the lease was over before the caller was
    /// polled: the nodes or this process are too slow for the time to live.
    /// So is a process in which the client's own thread hangs.
    Expired,
    /// The caller would have to wait, and too many callers in this process wait already; or its wait ended while its
    /// requests waited in this process behind others, or at nodes that answered others: shed load.
    Overloaded,
    /// The caller runs under a lease on the same resource, and would wait for itself.
    ///
    /// The client reports it where it can know it: in work that [`Lease::run`](crate::Lease::run) runs, and in a
    /// handler behind a layer of `redlock-tower`, but not in a task that such work spawns.
    /// The caller must use the lease that it has.
    AlreadyHeld,
    /// The caller holds a resource for which another caller of this process waits, and that other caller holds the
    /// resource that this one wants: each would wait for the other until its wait ends.
    ///
    /// The client reports it where it can know it, as with [`AlreadyHeld`](Self::AlreadyHeld), and also by the leases
    /// of a [scope](crate::Scope).
    /// It reports it only to callers that wait: not to a caller that makes [one attempt](crate::Wait::Never), and not
    /// to a caller that holds nothing, however many keys it asks for.
    /// A caller that waits for any of several [slots](crate::Slots) counts as waiting for each of them.
    /// The caller must release what it holds and try again.
    /// The error cannot happen if both callers [acquire](crate::Redlock::acquire_all) all resources that they need at
    /// once.
    Deadlock,
    /// Other clients give the resource another number of [slots](crate::Slots): give the same number everywhere.
    ///
    /// In a rolling restart that changes the number, it passes a time to live after the old replicas have last acquired or
    /// renewed a slot, or tried to: try again later.
    OtherSlots,
    /// The client was closed, or this process was forked after the client was built: build a client in each process.
    Closed,
    /// The key or an option is not valid: the caller must change it.
    Misuse,
}

impl AcquireError {
    /// Makes the error of an acquisition that failed on the nodes.
    pub(crate) fn failed(
        failure: &Failure,
        needed: usize,
        reports: Vec<NodeReport>,
        now: Instant,
    ) -> Self {
        let count = |is_counted: fn(&NodeAnswer) -> bool| {
            let answers = reports.iter().map(|report| &report.answer);
            answers.filter(|answer| is_counted(answer)).count()
        };
        let held = count(|answer| matches!(answer, NodeAnswer::Held { .. }));
        let others = count(|answer| matches!(answer, NodeAnswer::OtherSlots { .. }));
        let willing = count(|answer| matches!(answer, NodeAnswer::Granted | NodeAnswer::Reachable));
        let kind = match failure.kind {
            // A few nodes that remember another number are not why it failed.
            FailureKind::Contended if others > held && willing < needed => {
                AcquireErrorKind::OtherSlots
            }
            FailureKind::Contended => AcquireErrorKind::Contended,
            FailureKind::Expired => AcquireErrorKind::Expired,
            FailureKind::Quarantined => AcquireErrorKind::Quarantined,
            FailureKind::NoQuorum => AcquireErrorKind::NoQuorum,
            FailureKind::Overloaded => AcquireErrorKind::Overloaded,
            // The caller has gone away, and reads no error.
            _ => return Self::closed(),
        };
        let remaining = failure.majority_free_at.map(|at| at.saturating_since(now));
        Self {
            kind,
            detail: Detail::Nodes {
                needed,
                remaining,
                ready_in: failure.quorum_ready_in,
                reports,
            },
            ahead: 0,
        }
    }

    /// Makes the error for a key that another caller of this process has.
    pub(crate) fn contended_locally() -> Self {
        Self::plain(AcquireErrorKind::Contended)
    }

    pub(crate) fn overloaded(limit: &str) -> Self {
        Self {
            kind: AcquireErrorKind::Overloaded,
            detail: Detail::Text(limit.to_owned()),
            ahead: 0,
        }
    }

    /// Makes the error for a lease that was granted in time, and was over before the caller looked.
    pub(crate) fn expired() -> Self {
        Self::plain(AcquireErrorKind::Expired)
    }

    /// Makes the error for a caller that holds the resource already.
    pub(crate) fn already_held() -> Self {
        Self::plain(AcquireErrorKind::AlreadyHeld)
    }

    /// Makes the error for a reader of the resource that asks for an exclusive lease on it.
    pub(crate) fn only_shared() -> Self {
        Self {
            kind: AcquireErrorKind::AlreadyHeld,
            detail: Detail::Text(
                "it shares the resource and wants it alone; acquire it alone from the start, or release it before"
                    .to_owned(),
            ),
            ahead: 0,
        }
    }

    /// Makes the error for a caller that would wait for a caller that waits for it.
    pub(crate) fn deadlock() -> Self {
        Self::plain(AcquireErrorKind::Deadlock)
    }

    pub(crate) fn closed() -> Self {
        Self::plain(AcquireErrorKind::Closed)
    }

    /// Makes the error for a client whose thread is in the process from which this one was forked.
    pub(crate) fn forked() -> Self {
        Self::text(
            AcquireErrorKind::Closed,
            "this process was forked after the client was built; build a client in each process",
        )
    }

    /// Makes the error for a client whose thread hangs.
    pub(crate) fn unanswered() -> Self {
        Self::text(
            AcquireErrorKind::Expired,
            "the client's thread does not answer; look for code of a node, a log or a recorder of metrics that blocks it",
        )
    }

    pub(crate) fn option(invalid: &InvalidOption) -> Self {
        Self {
            kind: AcquireErrorKind::Misuse,
            detail: Detail::Text(invalid.to_string()),
            ahead: 0,
        }
    }

    fn text(kind: AcquireErrorKind, text: &str) -> Self {
        Self {
            kind,
            detail: Detail::Text(text.to_owned()),
            ahead: 0,
        }
    }

    fn plain(kind: AcquireErrorKind) -> Self {
        Self {
            kind,
            detail: Detail::None,
            ahead: 0,
        }
    }

    /// Returns the error with `ahead` callers before another attempt.
    pub(crate) fn with_ahead(self, ahead: usize) -> Self {
        Self { ahead, ..self }
    }

    /// Returns why it failed.
    pub fn kind(&self) -> AcquireErrorKind {
        self.kind
    }

    /// Returns the time after which a majority is free at the latest, as the present holders' keys end on the nodes
    /// that answered.
    ///
    /// A holder that renews its lease keeps it longer, and a holder that releases it frees it sooner.
    pub fn remaining(&self) -> Option<Duration> {
        match self.detail {
            Detail::Nodes { remaining, .. } => remaining,
            _ => None,
        }
    }

    /// Returns how many callers of this process would have been ahead of another attempt when this one failed.
    ///
    /// It counts the callers that hold the resource or wait for it; of several resources, it takes the one with the
    /// most.
    /// With [`remaining`](Self::remaining) a caller can estimate how long it takes until the resource is free.
    pub fn ahead(&self) -> usize {
        self.ahead
    }

    /// Returns the label of the present holder, as given by most of the nodes that refused.
    ///
    /// It returns `None` if the holder has no [label](HolderLabel), or if another caller of this process was in the
    /// way.
    /// That holder may have released the resource since.
    pub fn holder(&self) -> Option<HolderLabel> {
        let held = |report: &NodeReport| match report.answer {
            NodeAnswer::Held { holder, .. } => holder,
            _ => None,
        };
        let told: Vec<HolderLabel> = self.reports().iter().filter_map(held).collect();
        let count = |label: &HolderLabel| told.iter().filter(|other| *other == label).count();
        told.iter().max_by_key(|label| count(label)).copied()
    }

    /// Returns the time after which enough nodes vote again at the earliest, if a majority is missing because of nodes
    /// in quarantine.
    pub fn ready_in(&self) -> Option<Duration> {
        match self.detail {
            Detail::Nodes { ready_in, .. } => ready_in,
            _ => None,
        }
    }

    /// Returns the answer of each node in the last attempt; empty if the client asked no node.
    pub fn reports(&self) -> &[NodeReport] {
        match &self.detail {
            Detail::Nodes { reports, .. } => reports,
            _ => &[],
        }
    }
}

impl fmt::Display for AcquireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            AcquireErrorKind::Contended => "another holds the resource",
            AcquireErrorKind::NoQuorum => "no quorum",
            AcquireErrorKind::Quarantined => "no quorum until nodes leave their quarantine",
            AcquireErrorKind::Expired => "the lease was over before it could be used",
            AcquireErrorKind::Overloaded => match self.detail {
                Detail::Nodes { .. } => {
                    "the client or its nodes have more to do than they can: the wait ended before they came to this request"
                }
                _ => "too many callers wait",
            },
            AcquireErrorKind::AlreadyHeld => {
                "the caller holds the resource itself, and would wait for itself: use the lease that is there"
            }
            AcquireErrorKind::Deadlock => {
                "the holder of the resource waits for what the caller holds: acquire all of it at once, or in one order"
            }
            AcquireErrorKind::OtherSlots => {
                "other clients give the resource another number of slots: give the same number everywhere"
            }
            AcquireErrorKind::Closed => "the client is closed",
            AcquireErrorKind::Misuse => "the request is not valid",
        })?;
        if let (AcquireErrorKind::Contended, Some(holder)) = (self.kind, self.holder()) {
            write!(f, " ({holder})")?;
        }
        match &self.detail {
            Detail::Nodes {
                needed, reports, ..
            } => {
                let granted = reports
                    .iter()
                    .filter(|r| r.answer == NodeAnswer::Granted)
                    .count();
                write!(
                    f,
                    ": {granted} of {} nodes granted, {needed} needed",
                    reports.len()
                )?;
                nodes::write_lines(f, reports)
            }
            Detail::Text(text) => write!(f, ": {text}"),
            Detail::Key(invalid) => write!(f, ": {invalid}"),
            Detail::None => Ok(()),
        }
    }
}

// The message has what is wrong with a key, so that is no source: a program that prints both would print it twice.
impl Error for AcquireError {}

debug_as_display!(AcquireError);

impl From<InvalidKey> for AcquireError {
    fn from(invalid: InvalidKey) -> Self {
        Self {
            kind: AcquireErrorKind::Misuse,
            detail: Detail::Key(invalid),
            ahead: 0,
        }
    }
}
