//! The task that owns the connection to one node: the protocol's link decides, and this carries it out.

use std::{sync::Arc, time::Duration};

use futures_util::{FutureExt, StreamExt, future::BoxFuture, poll, stream::FuturesUnordered};
use redlock_proto::{Answer, Call, HELLO, Instant, Keyspace, LinkEvent, Op, RequestError};
use tokio::{
    select,
    sync::{mpsc, watch},
    task::unconstrained,
};

use super::{alarm::Alarm, entropy::Source, log};
use crate::{
    clock::Clock,
    node::{CallError, CallResult, Node, Session},
};

/// Whether a node can be reached.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum LinkState {
    /// The first connection is being made.
    Connecting,
    Up,
    Down,
}

/// The task that owns the connection to one node.
pub(super) struct LinkTask {
    pub(super) index: usize,
    pub(super) node: Arc<dyn Node>,
    pub(super) link: redlock_proto::Link<Source>,
    pub(super) ops: mpsc::UnboundedReceiver<Vec<Op>>,
    /// What the driver hears: the node, and what happened.
    pub(super) events: mpsc::UnboundedSender<(usize, LinkEvent)>,
    pub(super) keyspace: Arc<Keyspace>,
    pub(super) clock: Clock,
    pub(super) state: watch::Sender<LinkState>,
}

/// The socket.
#[derive(Default)]
struct Wire {
    connecting: Option<Connecting>,
    session: Option<Box<dyn Session>>,
    calls: FuturesUnordered<BoxFuture<'static, Answered>>,
}

type Connecting = BoxFuture<'static, Result<Connected, Arc<str>>>;

/// A call's answer, by the number of the call.
type Answered = (u64, CallResult);

/// A connection, and what the node said when it was made.
struct Connected {
    session: Box<dyn Session>,
    answer: Answer,
    sent: Instant,
}

impl LinkTask {
    /// Keeps the node connected and passes requests to it until the driver is gone.
    pub(super) async fn run(mut self) {
        let mut wire = Wire::default();
        let mut alarm = Alarm::new(Duration::ZERO);
        loop {
            self.carry_out(&mut wire).await;
            let now = self.clock.now();
            let idle_for = self.link.next_timer(now).saturating_since(now);
            select! {
                biased;
                connected = finished(&mut wire.connecting) => {
                    self.on_connected(&mut wire, connected);
                }
                Some((id, answer)) = wire.calls.next() => self.on_answer(id, answer),
                ops = self.ops.recv() => match ops {
                    Some(ops) => self.link.push(ops, self.clock.now()),
                    None => return,
                },
                // Last, so that a node is not taken to be silent whose answer is there.
                () = alarm.at_most(idle_for) => self.link.on_timer(self.clock.now()),
            }
        }
    }

    /// Does what the link wants done.
    async fn carry_out(&mut self, wire: &mut Wire) {
        // The clock is read before the first byte of each call is sent.
        while let Some(call) = self.link.next_call(self.clock.now()) {
            if let Some((id, answer)) = wire.send(call, &self.keyspace).await {
                self.on_answer(id, answer);
            }
        }
        while let Some(event) = self.link.poll_event() {
            self.tell(event);
        }
        if !self.link.is_connecting() {
            wire.connecting = None;
        }
        if !self.link.is_up() {
            wire.session = None;
            wire.calls.clear();
        }
        if self.link.begin_connect(self.clock.now()) {
            let connecting = introduce(
                Arc::clone(&self.node),
                Arc::clone(&self.keyspace),
                self.clock,
            );
            wire.connecting = Some(connecting.boxed());
        }
    }

    fn on_connected(&mut self, wire: &mut Wire, connected: Result<Connected, Arc<str>>) {
        wire.connecting = None;
        let now = self.clock.now();
        match connected {
            Ok(connected) => {
                let Connected {
                    session,
                    answer,
                    sent,
                } = connected;
                self.link.on_connected(answer, sent, now);
                wire.session = Some(session);
            }
            Err(reason) => self.link.on_lost(reason, now),
        }
    }

    fn on_answer(&mut self, id: u64, answer: CallResult) {
        let now = self.clock.now();
        match answer {
            Ok(answer) => self.link.on_answer(id, answer, now),
            Err(error) => {
                let CallError {
                    may_have_run,
                    session_lost,
                    reason,
                } = error;
                let error = RequestError {
                    may_have_run,
                    reason,
                };
                self.link.on_call_failed(id, error, session_lost, now);
            }
        }
    }

    /// Passes an event to the driver, and changes of the connection to the log.
    fn tell(&mut self, event: LinkEvent) {
        if let LinkEvent::Connected { .. } = &event {
            let before = self.state.send_replace(LinkState::Up);
            if before == LinkState::Down {
                log::is_back(&self.node.name());
            }
        }
        if let LinkEvent::Disconnected { reason } = &event {
            let before = self.state.send_replace(LinkState::Down);
            if before != LinkState::Down {
                log::is_down(&self.node.name(), reason);
            }
        }
        // The driver outlives its links.
        let _ = self.events.send((self.index, event));
    }
}

impl Wire {
    /// Sends a call; returns its answer if that is there already.
    ///
    /// The call is polled as it is made, so that calls are on their way in the order in which they were made.
    async fn send(&mut self, call: Call, keyspace: &Arc<Keyspace>) -> Option<Answered> {
        let Call { id, requests } = call;
        let Some(session) = &mut self.session else {
            // invariant: the link makes calls only while there is a session
            return Some((id, Err(CallError::lost("there is no connection"))));
        };
        let call = session.call(keyspace, &requests);
        // Unconstrained: a runtime that is out of budget would answer "pending" before the request
        // was passed on, and the next call would overtake this one.
        let mut call = unconstrained(async move { (id, call.await) }).boxed();
        match poll!(&mut call) {
            std::task::Poll::Ready(answered) => Some(answered),
            std::task::Poll::Pending => {
                self.calls.push(call);
                None
            }
        }
    }
}

/// Waits until an attempt to connect is over; for ever if there is none.
async fn finished(connecting: &mut Option<Connecting>) -> Result<Connected, Arc<str>> {
    match connecting {
        Some(connecting) => connecting.await,
        None => std::future::pending().await,
    }
}

/// Connects to a node and asks it what it is.
async fn introduce(
    node: Arc<dyn Node>,
    keyspace: Arc<Keyspace>,
    clock: Clock,
) -> Result<Connected, Arc<str>> {
    let mut session = node.connect().await?;
    let sent = clock.now();
    let answer = session.call(&keyspace, &HELLO).await;
    let answer = answer.map_err(|error| error.reason)?;
    Ok(Connected {
        session,
        answer,
        sent,
    })
}
