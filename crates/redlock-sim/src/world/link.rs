//! A client's link to a node: the protocol's own decides, and this is the network under it.

use std::{collections::VecDeque, sync::Arc};

use redlock_proto::{Answer, Keyspace, Request, Roll};

use super::{naming::Session, news::News};
use crate::setup::Micros;

/// Requests that are sent together, and what the node said.
#[derive(Debug)]
pub(super) struct Call {
    /// Tells it from others that had its number before.
    pub(super) serial: u32,
    /// The number by which its link knows it; `None` if it is the first over a connection.
    pub(super) id: Option<u64>,
    pub(super) link: usize,
    /// The server that does it, or is to do it.
    pub(super) server: usize,
    pub(super) sent: Micros,
    pub(super) requests: Vec<Request>,
    /// The number of the owner on whose behalf each request is made, if it is about a key.
    pub(super) owners: Vec<Option<u32>>,
    /// Whether the node may carry it out as a transaction.
    pub(super) is_transaction: bool,
    /// With the term of its session, if others name the server.
    pub(super) keyspace: Option<Arc<Keyspace>>,
    /// The server was a replica, and did nothing.
    pub(super) is_by_replica: bool,
    /// What the node said; nothing if it refused the call.
    pub(super) answer: Option<Answer>,
    /// It arrives although its connection is gone, and no client waits for its answer.
    pub(super) is_late: bool,
    /// The node has done what it wants to do of it, or it never will.
    pub(super) is_executed: bool,
    /// How often its node had crashed when its connection broke.
    pub(super) crashes: u32,
    /// Its client knows that it failed.
    pub(super) is_over: bool,
}

/// All calls, by number; numbers are used again.
#[derive(Debug, Default)]
pub(super) struct Calls {
    calls: Vec<Option<Call>>,
    unused: Vec<u32>,
    added: u32,
    /// How many of them arrive late.
    late: u32,
}

#[derive(Debug)]
pub(super) struct Connection {
    /// What decides; the rest is the network.
    pub(super) machine: redlock_proto::Link,
    /// The client wants something sent that the link has not been asked for yet.
    pub(super) has_requests: bool,
    /// When it looks at its clock next.
    pub(super) timer_at: Micros,
    /// How many of the requests that it has shed were counted.
    pub(super) shed: u64,
    /// The server to which its address leads: another than its own behind a proxy that is wrong.
    pub(super) server: usize,
    /// When that changed last.
    pub(super) rerouted: Option<Micros>,
    /// The number of the present connection, or of the last one.
    pub(super) conn: u32,
    /// The connection is gone, whether or not the client knows.
    pub(super) is_severed: bool,
    /// Calls that have not reached the node.
    pub(super) out: VecDeque<u32>,
    /// Calls whose answer has not reached the client.
    pub(super) back: VecDeque<u32>,
    pub(super) last_out: Micros,
    pub(super) last_back: Micros,
    /// Nothing gets through before these.
    pub(super) hole_out: Micros,
    pub(super) hole_back: Micros,
    /// What its client was told and does not know yet.
    pub(super) news: VecDeque<News>,
    /// Its node is to be told to vote, and a wall clock stands in for the node's counters.
    pub(super) degrades: Option<Degraded>,
    /// Under which term the server of the present connection is named, if others name it.
    pub(super) session: Option<Box<Session>>,
    /// The roll by which its client has gone last, if others name the server.
    pub(super) last_roll: Option<Roll>,
}

/// A node whose counters a wall clock stands in for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Degraded {
    pub(super) node: usize,
    /// How many nodes are the same server as another, as its client knows them.
    pub(super) duplicates: usize,
}

impl Connection {
    pub(super) fn new(machine: redlock_proto::Link, server: usize) -> Self {
        Self {
            machine,
            has_requests: false,
            timer_at: Micros::MAX,
            shed: 0,
            server,
            rerouted: None,
            conn: 0,
            is_severed: true,
            out: VecDeque::new(),
            back: VecDeque::new(),
            last_out: 0,
            last_back: 0,
            hole_out: 0,
            hole_back: 0,
            news: VecDeque::new(),
            degrades: None,
            session: None,
            last_roll: None,
        }
    }

    /// Returns whether its client takes it to have a connection, or to be about to.
    pub(super) const fn has_connection(&self) -> bool {
        self.machine.is_up() || self.machine.is_connecting()
    }

    /// Another process has the link, on the same network.
    pub(super) fn succeed(&mut self, machine: redlock_proto::Link) {
        self.machine = machine;
        self.has_requests = false;
        self.timer_at = Micros::MAX;
        self.shed = 0;
        self.news.clear();
        self.degrades = None;
        self.session = None;
        self.last_roll = None;
        // Nothing that is due for the connection concerns the next process.
        self.conn += 1;
    }
}

impl Calls {
    pub(super) fn add(&mut self, mut call: Call) -> u32 {
        self.added += 1;
        call.serial = self.added;
        let number = self.unused.pop().unwrap_or_else(|| {
            self.calls.push(None);
            u32::try_from(self.calls.len() - 1).unwrap_or(u32::MAX)
        });
        self.calls[number as usize] = Some(call);
        number
    }

    pub(super) fn get_mut(&mut self, number: u32) -> &mut Call {
        self.calls[number as usize]
            .as_mut()
            .expect("a call is there until it is taken")
    }

    /// Returns the call of this number, if it is still the one with this serial number.
    pub(super) fn find(&mut self, number: u32, serial: u32) -> Option<&mut Call> {
        let call = self.calls.get_mut(number as usize)?.as_mut();
        call.filter(|call| call.serial == serial)
    }

    /// Returns the calls that arrive late, in the order in which they were made.
    pub(super) fn late(&self) -> Vec<(u32, u32)> {
        let numbered = self.calls.iter().zip(0..);
        let mut late: Vec<(u32, u32)> = numbered
            .filter_map(|(call, number)| Some((call.as_ref()?, number)))
            .filter(|(call, _)| call.is_late)
            .map(|(call, number)| (call.serial, number))
            .collect();
        late.sort_unstable();
        late
    }

    /// Returns whether any call arrives late.
    pub(super) const fn has_late(&self) -> bool {
        self.late > 0
    }

    /// A call will arrive although its connection is gone, or has arrived now.
    pub(super) fn set_late(&mut self, number: u32, is_late: bool) {
        let call = self.get_mut(number);
        let was_late = std::mem::replace(&mut call.is_late, is_late);
        self.late = self.late + u32::from(is_late) - u32::from(was_late);
    }

    /// Returns the calls of a link that no node has executed, and one may execute.
    pub(super) fn unexecuted(&self, link: usize) -> impl Iterator<Item = &Call> {
        let calls = self.calls.iter().flatten();
        calls.filter(move |call| call.link == link && !call.is_executed)
    }

    pub(super) fn take(&mut self, number: u32) -> Call {
        self.unused.push(number);
        self.calls[number as usize]
            .take()
            .expect("a call is there until it is taken")
    }
}
