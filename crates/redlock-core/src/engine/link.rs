//! The link to one node: the protocol's link decides, and this carries it out in the driver's task.
//!
//! Nothing here waits: a node that is slow, or hangs, keeps no other waiting.

use std::{
    collections::VecDeque,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

use futures_util::{FutureExt, future::BoxFuture, task::AtomicWaker};
use redlock_proto::{
    Answer, Backlog, Call, HELLO, Instant, Keyspace, LinkEvent, Request, RequestError,
};
use tokio::sync::watch;

use super::{
    call_metrics::watched,
    log::Origin,
    subscription::{Subscription, SubscriptionEvent},
};
use crate::names::NodeName;
use crate::{
    clock::Clock,
    meter::NodeMeter,
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

/// A node, the connection to it, and what is on its way.
pub(super) struct NodeLink {
    node: Arc<dyn Node>,
    name: Arc<NodeName>,
    link: redlock_proto::Link,
    origin: Origin,
    meter: NodeMeter,
    keyspace: Arc<Keyspace>,
    clock: Clock,
    state: watch::Sender<LinkState>,
    /// The server of which the log has told last, if others name it.
    logged: Option<Arc<str>>,
    connecting: Option<Connecting>,
    session: Option<Box<dyn Session>>,
    subscription: Subscription,
    /// What was heard of its messages, in order.
    messages: VecDeque<SubscriptionEvent>,
    /// The calls without an answer, in order.
    calls: Vec<(u64, BoxFuture<'static, CallResult>)>,
    /// The answers of one look at the calls.
    answered: Vec<(u64, CallResult)>,
    /// What the node's code wakes.
    waker: Arc<LinkWaker>,
}

/// Tells the driver that a node has something to say, so that it need not ask all of them.
struct LinkWaker {
    has_rung: AtomicBool,
    driver: Arc<AtomicWaker>,
}

impl Wake for LinkWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.has_rung.store(true, Ordering::Release);
        self.driver.wake();
    }
}

type Connecting = BoxFuture<'static, Result<Connected, Arc<str>>>;

/// A connection, what the node said when it was made, and when it was asked.
type Connected = (Box<dyn Session>, Answer, Instant);

impl NodeLink {
    pub(super) fn new(
        (node, name): (Arc<dyn Node>, Arc<NodeName>),
        link: redlock_proto::Link,
        origin: Origin,
        meter: NodeMeter,
        keyspace: Arc<Keyspace>,
        clock: Clock,
        (state, driver): (watch::Sender<LinkState>, &Arc<AtomicWaker>),
    ) -> Self {
        Self {
            node,
            name,
            link,
            origin,
            meter,
            keyspace,
            clock,
            state,
            logged: None,
            connecting: None,
            session: None,
            subscription: Subscription::default(),
            messages: VecDeque::new(),
            calls: Vec::new(),
            answered: Vec::new(),
            waker: Arc::new(LinkWaker {
                has_rung: AtomicBool::new(false),
                driver: Arc::clone(driver),
            }),
        }
    }

    /// Takes a request, to be sent behind the waiting requests.
    pub(super) fn push(&mut self, round: u64, request: Request, connection: u64, now: Instant) {
        self.link.push(round, request, connection, now);
    }

    /// Returns whether there is something to hear.
    pub(super) fn has_rung(&self) -> bool {
        self.waker.has_rung.load(Ordering::Relaxed)
    }

    /// Hears what the node has answered, or whether there is a connection; the driver is woken when there is more.
    ///
    /// Returns whether a call is over: then there may be something to send, even if the client hears nothing of it.
    pub(super) fn hear(&mut self) -> bool {
        // Before the look, so that no ring is missed.
        self.waker.has_rung.swap(false, Ordering::AcqRel);
        let waker = Waker::from(Arc::clone(&self.waker));
        let cx = &mut Context::from_waker(&waker);
        if let Some(connecting) = &mut self.connecting {
            let polled = guarded(|| connecting.poll_unpin(cx));
            if let Poll::Ready(connected) = polled.unwrap_or_else(|reason| Poll::Ready(Err(reason)))
            {
                self.on_connected(connected);
            }
        }
        let has_messages = self.hear_messages(cx);
        let (calls, answered) = (&mut self.calls, &mut self.answered);
        // Calls that are over are dropped in it, too.
        let looked = guarded(|| {
            calls.retain_mut(|(id, call)| {
                let polled = guarded(|| call.poll_unpin(cx));
                match polled.unwrap_or_else(|reason| Poll::Ready(Err(CallError::lost(reason)))) {
                    Poll::Ready(result) => {
                        answered.push((*id, result));
                        false
                    }
                    Poll::Pending => true,
                }
            });
        });
        if let Err(reason) = looked {
            self.link.on_lost(reason, self.clock.now());
        }
        if self.answered.is_empty() {
            return has_messages;
        }
        // Read after the answers are there: what a node's clock showed in them was no later.
        let now = self.clock.now();
        let mut answered = std::mem::take(&mut self.answered);
        for (id, result) in answered.drain(..) {
            self.on_answer(id, result, now);
        }
        self.answered = answered;
        true
    }

    /// Has the node's messages to the client of this number heard from now on; `None` if they are not to be heard.
    pub(super) fn listen(&mut self, client: Option<u64>) {
        self.subscription.listen(client);
        if client.is_none() {
            let_go(self.subscription.end());
            self.messages.clear();
        }
    }

    /// Returns what was heard next of its messages.
    pub(super) fn poll_message(&mut self) -> Option<SubscriptionEvent> {
        self.messages.pop_front()
    }

    fn hear_messages(&mut self, cx: &mut Context<'_>) -> bool {
        let (subscription, messages, clock) =
            (&mut self.subscription, &mut self.messages, self.clock);
        let polled = guarded(|| {
            while let Some(next) = subscription.poll(cx, clock) {
                messages.push_back(next);
            }
        });
        if let Err(reason) = polled {
            let_go(self.subscription.fail(clock));
            self.messages.push_back(SubscriptionEvent::Ends(reason));
        }
        if let Some(SubscriptionEvent::Ends(reason)) = self.messages.back() {
            let_go(guarded(|| {
                self.origin.cannot_listen(&self.node.name(), reason);
            }));
        }
        !self.messages.is_empty()
    }

    /// Does what the link wants done: what is due goes on its way, in order.
    pub(super) fn carry_out(&mut self) {
        // The clock is read before the first byte of each call is sent.
        let mut has_sent = false;
        while let Some(call) = self.link.next_call(self.clock.now()) {
            self.send(call);
            has_sent = true;
        }
        if has_sent {
            // Read after the calls were written: the node has its time from then.
            self.link.on_written(self.clock.now());
        }
        if !self.link.is_connecting() {
            let_go(self.connecting.take());
        }
        if !self.link.is_up() {
            let_go(self.subscription.end());
            self.messages.clear();
            let_go(self.session.take());
            self.name.set_server(None);
            let_go(std::mem::take(&mut self.calls));
        }
        if let Some(session) = &mut self.session {
            let (subscription, keyspace) = (&mut self.subscription, &self.keyspace);
            if guarded(|| subscription.begin(&mut **session, keyspace, self.clock)).unwrap_or(false)
            {
                self.waker.wake_by_ref();
            }
        }
        if self.link.begin_connect(self.clock.now()) {
            let connecting = introduce(
                Arc::clone(&self.node),
                Arc::clone(&self.keyspace),
                self.clock,
                self.origin.clone(),
                self.meter.clone(),
            );
            self.connecting = Some(connecting.boxed());
            // It begins when it is first looked at.
            self.waker.wake_by_ref();
        }
    }

    /// Returns the next event for the client, and logs changes of the connection.
    pub(super) fn poll_event(&mut self) -> Option<LinkEvent> {
        let event = self.link.poll_event()?;
        if let LinkEvent::Connected { .. } = &event {
            let before = self.state.send_replace(LinkState::Up);
            let server = self.name.server();
            let is_news = server.is_some() && server != self.logged;
            if before == LinkState::Down || is_news {
                let is_back = before == LinkState::Down;
                let server = server.as_deref();
                let_go(guarded(|| {
                    self.origin.node_up(&self.node.name(), server, is_back);
                }));
            }
            self.logged = server;
        }
        if let LinkEvent::Disconnected { reason } = &event {
            let before = self.state.send_replace(LinkState::Down);
            if before != LinkState::Down {
                let_go(guarded(|| self.origin.node_down(&self.node.name(), reason)));
            }
        }
        Some(event)
    }

    pub(super) fn state(&self) -> LinkState {
        *self.state.borrow()
    }

    /// Says when there is something to do if nothing is heard before.
    pub(super) fn next_timer(&self) -> Instant {
        let link = self.link.next_timer();
        let subscription = self.subscription.next_timer();
        subscription.map_or(link, |subscription| subscription.min(link))
    }

    /// Returns whether it does nothing that only the client's thread does: it makes no connection.
    pub(super) fn is_settled(&self) -> bool {
        self.connecting.is_none() && !self.subscription.is_subscribing()
    }

    /// Has the connection woken by the runtime of this task; `false` if it cannot be.
    pub(super) fn move_here(&mut self) -> bool {
        let Some(session) = &mut self.session else {
            return true;
        };
        let moved = guarded(|| session.move_here()).unwrap_or(false);
        // The new runtime wakes a call once it was polled there.
        self.waker.wake_by_ref();
        moved
    }

    /// Returns what it has before it.
    pub(super) fn backlog(&self) -> Backlog {
        self.link.backlog()
    }

    /// Gives up what was silent for too long; what the node has answered must have been heard before.
    pub(super) fn on_timer(&mut self, now: Instant) {
        self.link.on_timer(now);
    }

    /// Sends a call.
    ///
    /// It is polled as it is made, so that calls are on their way in the order in which they were made.
    fn send(&mut self, call: Call) {
        let Call {
            id,
            requests,
            is_transaction,
        } = call;
        let Some(session) = &mut self.session else {
            // invariant: the link makes calls only while there is a session
            let error = CallError::lost("there is no connection");
            return self.on_answer(id, Err(error), self.clock.now());
        };
        let waker = Waker::from(Arc::clone(&self.waker));
        let cx = &mut Context::from_waker(&waker);
        let begun = guarded(|| {
            let call = if is_transaction {
                session.transact(&self.keyspace, &requests)
            } else {
                session.call(&self.keyspace, &requests)
            };
            let mut call = watched(call, &*self.node, &requests, &self.origin, &self.meter);
            let polled = call.poll_unpin(cx);
            (call, polled)
        });
        let result = match begun {
            Ok((call, Poll::Pending)) => return self.calls.push((id, call)),
            Ok((_, Poll::Ready(result))) => result,
            Err(reason) => Err(CallError::lost(reason)),
        };
        self.on_answer(id, result, self.clock.now());
    }

    fn on_connected(&mut self, connected: Result<Connected, Arc<str>>) {
        let_go(self.connecting.take());
        let now = self.clock.now();
        match connected {
            Ok((session, answer, sent)) => {
                self.link.on_connected(answer, sent, now);
                let server = guarded(|| session.server()).unwrap_or_default();
                self.name.set_server(server);
                self.session = Some(session);
            }
            Err(reason) => self.link.on_lost(reason, now),
        }
    }

    fn on_answer(&mut self, id: u64, answer: CallResult, now: Instant) {
        match answer {
            Ok(answer) => self.link.on_answer(id, answer, now),
            Err(error) => {
                let failed = RequestError {
                    may_have_run: error.may_have_run,
                    refuses_writes: error.refuses_writes,
                    reason: error.reason,
                };
                self.link
                    .on_call_failed(id, &failed, error.session_lost, now);
                if error.wrong_server {
                    self.link.on_wrong_server(failed.reason, now);
                }
            }
        }
    }
}

/// Runs the code of a node, which may be a user's: a mistake in it costs a connection, and not the driver.
fn guarded<T>(work: impl FnOnce() -> T) -> Result<T, Arc<str>> {
    // What it leaves half done is dropped with the connection.
    catch_unwind(AssertUnwindSafe(work)).map_err(|_| "the node's code panicked".into())
}

/// Drops what is a node's.
fn let_go<T>(value: T) {
    let _: Result<_, _> = guarded(|| drop(value));
}

/// Connects to a node and asks it what it is.
async fn introduce(
    node: Arc<dyn Node>,
    keyspace: Arc<Keyspace>,
    clock: Clock,
    origin: Origin,
    meter: NodeMeter,
) -> Result<Connected, Arc<str>> {
    let mut session = node.connect().await?;
    let sent = clock.now();
    let call = session.call(&keyspace, &HELLO);
    let answer = watched(call, &*node, &HELLO, &origin, &meter).await;
    let answer = answer.map_err(|error| error.reason)?;
    Ok((session, answer, sent))
}
