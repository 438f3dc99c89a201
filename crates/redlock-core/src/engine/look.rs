//! A holder's question to the nodes: whether they have refused its key to a caller lately.

use redlock_proto::Instant;
use tokio::sync::oneshot::{self, error::TryRecvError};

/// `true` if nodes have refused a key to no caller lately.
pub(super) type IsUndisputed = bool;

/// A question that is under way.
#[derive(Debug)]
pub(super) struct Look {
    asked: Instant,
    answer: oneshot::Receiver<IsUndisputed>,
}

/// What came of a question.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Looked {
    /// A majority has refused the key to no caller lately.
    Undisputed {
        /// When it was asked.
        asked: Instant,
    },
    /// A node has refused the key to a caller, or no majority says that none has.
    Disputed,
    /// The driver did not ask the nodes, because the lease had no holder any more.
    Nothing,
}

impl Look {
    /// Makes a question that is asked now; the driver answers it by the sender, or drops the sender if it does not ask.
    pub(super) fn new(now: Instant) -> (Self, oneshot::Sender<IsUndisputed>) {
        let (sender, answer) = oneshot::channel();
        (Self { asked: now, answer }, sender)
    }

    /// Returns what came of it; `None` if there is no answer yet.
    pub(super) fn outcome(&mut self) -> Option<Looked> {
        match self.answer.try_recv() {
            Err(TryRecvError::Empty) => None,
            Ok(true) => Some(Looked::Undisputed { asked: self.asked }),
            Ok(false) => Some(Looked::Disputed),
            Err(TryRecvError::Closed) => Some(Looked::Nothing),
        }
    }
}
