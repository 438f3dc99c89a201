use std::sync::Arc;

use crate::{Answer, Client, Instant, Now, Reply, RequestError, Standing};

/// Something that a [`Link`](crate::Link) tells the client.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_enums, reason = "a driver may look at every event")]
pub enum LinkEvent {
    /// A connection was made, and the node has said what it is.
    Connected {
        /// Its first answer.
        answer: Answer,
        /// The time at which it was asked.
        sent: Instant,
    },
    /// The connection was lost, or could not be made; the outcomes of its requests were reported before.
    Disconnected {
        /// The reason, in words for an operator.
        reason: Arc<str>,
    },
    /// A call was answered.
    Answered {
        /// The node's standing, if it said so.
        standing: Option<Standing>,
        /// The result of each request, by its round; releases that are repeated are left out.
        results: Vec<(u64, Result<Reply, RequestError>)>,
        /// The time at which the call was sent.
        sent: Instant,
    },
    /// A request was not answered.
    Failed {
        /// The round.
        round: u64,
        /// The error.
        error: RequestError,
    },
    /// A release was not answered, and is repeated.
    Delayed {
        /// The round.
        round: u64,
        /// The error.
        error: RequestError,
    },
    /// A release is not needed, because what it would undo was never sent.
    Needless {
        /// The round.
        round: u64,
    },
}

impl LinkEvent {
    /// Tells the client what happened on its link to a node.
    pub fn tell(self, client: &mut Client, node: usize, now: Now) {
        match self {
            Self::Connected { answer, sent } => client.on_connected(node, answer, sent, now),
            Self::Disconnected { reason } => client.on_disconnected(node, reason, now),
            Self::Answered {
                standing,
                results,
                sent,
            } => client.on_answer(node, standing, results, sent, now),
            Self::Failed { round, error } => {
                client.on_answer(node, None, [(round, Err(error))], now.clock, now);
            }
            Self::Delayed { round, error } => client.on_delayed(node, round, &error),
            Self::Needless { round } => {
                client.on_answer(node, None, [(round, Ok(Reply::Missing))], now.clock, now);
            }
        }
    }
}
