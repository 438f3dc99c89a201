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
pub(super) struct Subscription {
    /// The number under which the node knows the client, if it is to be heard.
    client: Option<u64>,
    phase: Phase,
    /// How often it was refused since it was heard last.
    refusals: u32,
}

#[derive(Default)]
enum Phase {
    #[default]
    Idle,
    Subscribing(BoxFuture<'static, Messages>),
    Listening(BoxStream<'static, Gift>),
    /// It is tried again at this moment.
    Pausing(Instant),
}

type Messages = Result<BoxStream<'static, Gift>, Arc<str>>;

/// Something heard of a node's messages.
#[derive(Debug)]
pub(super) enum SubscriptionEvent {
    /// From now on they are heard.
    Begins,
    /// From now on they are not heard, for this reason.
    Ends(Arc<str>),
    Gift(Gift),
}

impl Subscription {
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
            Phase::Idle => true,
            Phase::Pausing(until) => until <= clock.now(),
            Phase::Subscribing(_) | Phase::Listening(_) => false,
        };
        if is_time {
            // If the node's code panics, it is not called again at once.
            self.phase = Phase::Pausing(clock.now() + AFTER_REFUSAL);
            self.phase = Phase::Subscribing(session.listen(keyspace, client));
        }
        is_time
    }

    /// Returns whether a connection for messages is being made.
    pub(super) const fn is_subscribing(&self) -> bool {
        matches!(self.phase, Phase::Subscribing(_))
    }

    /// Ends, and returns what must be dropped; it begins again if the node is to be heard.
    pub(super) fn end(&mut self) -> impl Sized {
        std::mem::take(&mut self.phase)
    }

    /// Ends because the node's code has panicked, and returns what must be dropped.
    pub(super) fn fail(&mut self, clock: Clock) -> impl Sized {
        let pausing = Phase::Pausing(clock.now() + AFTER_REFUSAL);
        std::mem::replace(&mut self.phase, pausing)
    }

    /// Returns when it tries again.
    pub(super) const fn next_timer(&self) -> Option<Instant> {
        match self.phase {
            Phase::Pausing(until) => Some(until),
            _ => None,
        }
    }

    /// Returns what was heard next, if there is anything; the task is woken when there is more.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>, clock: Clock) -> Option<SubscriptionEvent> {
        let (ended, pause) = match &mut self.phase {
            Phase::Idle | Phase::Pausing(_) => return None,
            Phase::Subscribing(subscribing) => match subscribing.poll_unpin(cx) {
                Poll::Pending => return None,
                Poll::Ready(Ok(messages)) => {
                    self.phase = Phase::Listening(messages);
                    self.refusals = 0;
                    return Some(SubscriptionEvent::Begins);
                }
                Poll::Ready(Err(reason)) => {
                    self.refusals = self.refusals.saturating_add(1);
                    // A starved machine or server is too slow for a moment only.
                    let is_refused = self.refusals > SLOW_FOR_A_MOMENT;
                    (
                        reason,
                        if is_refused {
                            AFTER_REFUSAL
                        } else {
                            AFTER_LOSS
                        },
                    )
                }
            },
            Phase::Listening(messages) => match messages.poll_next_unpin(cx) {
                Poll::Pending => return None,
                Poll::Ready(Some(gift)) => return Some(SubscriptionEvent::Gift(gift)),
                Poll::Ready(None) => ("the connection for messages was lost".into(), AFTER_LOSS),
            },
        };
        self.phase = Phase::Pausing(clock.now() + pause);
        Some(SubscriptionEvent::Ends(ended))
    }
}

/// How long it waits before it subscribes again, after its connection was lost, or could not be made so often.
const AFTER_LOSS: Duration = Duration::from_secs(1);
const SLOW_FOR_A_MOMENT: u32 = 3;
/// The same where the node has refused more often: its user may lack the right, or has no connection left.
const AFTER_REFUSAL: Duration = Duration::from_secs(30);
