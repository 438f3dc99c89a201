//! The messages of a node to this client, about keys that it gives to callers in line.

use std::{
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use futures_util::{FutureExt, StreamExt, future::BoxFuture, stream::BoxStream};
use redlock_proto::{Gift, Instant, Keyspace};

use crate::{clock::Clock, node::Session};

/// The subscription to a node's messages, which lasts no longer than the connection to it.
#[derive(Default)]
pub(super) struct Hearing {
    /// The number under which the node knows the client, if it is to be heard.
    client: Option<u64>,
    phase: HearingPhase,
}

#[derive(Default)]
enum HearingPhase {
    #[default]
    Deaf,
    Subscribing(BoxFuture<'static, Subscribed>),
    Listening(BoxStream<'static, Gift>),
    /// It is tried again at this moment.
    Pausing(Instant),
}

type Subscribed = Result<BoxStream<'static, Gift>, Arc<str>>;

/// Something heard of a node's messages.
#[derive(Debug)]
pub(super) enum Heard {
    /// From now on they are heard.
    Begins,
    /// From now on they are not heard, for this reason.
    Ends(Arc<str>),
    Gift(Gift),
}

impl Hearing {
    /// Has the node heard under this number from now on, whenever there is a connection to it; `None` if it is not to be
    /// heard.
    pub(super) fn listen(&mut self, client: Option<u64>) {
        self.client = client;
    }

    /// Begins over this connection, if it is time; returns whether it did, so that it must be looked at.
    pub(super) fn begin(
        &mut self,
        session: &mut dyn Session,
        keyspace: &Arc<Keyspace>,
        clock: Clock,
    ) -> bool {
        let Some(client) = self.client else {
            return false;
        };
        let is_time = match self.phase {
            HearingPhase::Deaf => true,
            HearingPhase::Pausing(until) => until <= clock.now(),
            HearingPhase::Subscribing(_) | HearingPhase::Listening(_) => false,
        };
        if is_time {
            // If the node's code panics, it is not called again at once.
            self.phase = HearingPhase::Pausing(clock.now() + AFTER_REFUSAL);
            self.phase = HearingPhase::Subscribing(session.listen(keyspace, client));
        }
        is_time
    }

    /// Ends, and returns what must be dropped; it begins again if the node is to be heard.
    pub(super) fn end(&mut self) -> impl Sized {
        std::mem::take(&mut self.phase)
    }

    /// Ends because the node's code has panicked, and returns what must be dropped.
    pub(super) fn fail(&mut self, clock: Clock) -> impl Sized {
        let pausing = HearingPhase::Pausing(clock.now() + AFTER_REFUSAL);
        std::mem::replace(&mut self.phase, pausing)
    }

    /// Returns when it tries again.
    pub(super) const fn next_timer(&self) -> Option<Instant> {
        match self.phase {
            HearingPhase::Pausing(until) => Some(until),
            _ => None,
        }
    }

    /// Returns what was heard next, if there is anything; the task is woken when there is more.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>, clock: Clock) -> Option<Heard> {
        let (ended, pause) = match &mut self.phase {
            HearingPhase::Deaf | HearingPhase::Pausing(_) => return None,
            HearingPhase::Subscribing(subscribing) => match subscribing.poll_unpin(cx) {
                Poll::Pending => return None,
                Poll::Ready(Ok(messages)) => {
                    self.phase = HearingPhase::Listening(messages);
                    return Some(Heard::Begins);
                }
                Poll::Ready(Err(reason)) => (reason, AFTER_REFUSAL),
            },
            HearingPhase::Listening(messages) => match messages.poll_next_unpin(cx) {
                Poll::Pending => return None,
                Poll::Ready(Some(gift)) => return Some(Heard::Gift(gift)),
                Poll::Ready(None) => ("the connection for messages was lost".into(), AFTER_LOSS),
            },
        };
        self.phase = HearingPhase::Pausing(clock.now() + pause);
        Some(Heard::Ends(ended))
    }
}

/// How long it waits before it subscribes again, after its connection was lost.
const AFTER_LOSS: Duration = Duration::from_secs(1);
/// The same where the node has refused: its user may lack the right, or has no connection left.
const AFTER_REFUSAL: Duration = Duration::from_secs(30);
