//! A client's link to a node: one ordered connection at a time, what waits for it, and what is owed to the
//! node when it fails.
//!
//! It keeps the promises that the protocol asks of whoever drives it, as the real client's links do.

use std::collections::VecDeque;

use redlock_proto::{Answer, Request};

use super::news::News;
use crate::setup::{MS, Micros, SECOND, micros};

/// A request on its way.
#[derive(Clone, Debug)]
pub(super) struct Op {
    pub(super) round: u64,
    pub(super) request: Request,
    /// The number of the owner, if it is about a key.
    pub(super) owner: Option<u32>,
    /// For a release: up to when it is worth making, by the client's clock.
    pub(super) owed_until: Micros,
    /// It has failed before.
    pub(super) is_repeated: bool,
    /// It tells a node to vote, and a wall clock stands in for the node's counters.
    pub(super) is_degraded: bool,
    pub(super) queued_at: Micros,
}

/// Requests that are sent together, and what the node said.
#[derive(Debug)]
pub(super) struct Call {
    /// Tells it from others that had its number before.
    pub(super) serial: u32,
    pub(super) link: usize,
    /// The server that does it, or is to do it.
    pub(super) server: usize,
    pub(super) sent: Micros,
    pub(super) requests: Vec<Request>,
    /// One for each request; the request itself is in `requests`.
    pub(super) tags: Vec<Tag>,
    /// What the node said; nothing if it refused the call.
    pub(super) answer: Option<Answer>,
    /// It arrives although its connection is gone, and nobody waits for its answer.
    pub(super) is_late: bool,
    /// The node has done what it wants to do of it, or it never will.
    pub(super) is_executed: bool,
    /// How often its node had crashed when its connection broke.
    pub(super) crashes: u32,
    /// Its client knows that it failed.
    pub(super) is_over: bool,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Tag {
    pub(super) round: u64,
    pub(super) owner: Option<u32>,
    pub(super) owed_until: Micros,
    pub(super) is_repeated: bool,
    pub(super) is_degraded: bool,
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

/// How far a connection is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum State {
    Down,
    Connecting,
    Up,
}

#[derive(Debug)]
pub(super) struct Link {
    pub(super) state: State,
    /// The server to which its address leads: another than its own behind a proxy that is wrong.
    pub(super) server: usize,
    /// When that changed last.
    pub(super) rerouted: Option<Micros>,
    /// The number of the present connection, or of the last one.
    pub(super) conn: u32,
    /// How many connections were made, as its client counts them.
    pub(super) meetings: u64,
    /// The connection is gone, whether or not the client knows.
    pub(super) is_severed: bool,
    pub(super) queue: VecDeque<Op>,
    /// Calls that have not reached the node.
    pub(super) out: VecDeque<u32>,
    /// Calls whose answer has not reached the client.
    pub(super) back: VecDeque<u32>,
    pub(super) last_out: Micros,
    pub(super) last_back: Micros,
    /// Nothing gets through before these.
    pub(super) hole_out: Micros,
    pub(super) hole_back: Micros,
    pub(super) owed: Vec<(Op, Micros)>,
    /// What its client was told and does not know yet.
    pub(super) news: VecDeque<News>,
    pub(super) idle_since: Micros,
    pub(super) up_since: Micros,
    pub(super) check_at: Micros,
    pub(super) failures: u32,
}

impl Link {
    pub(super) fn new(server: usize) -> Self {
        Self {
            state: State::Down,
            server,
            rerouted: None,
            conn: 0,
            meetings: 0,
            is_severed: true,
            queue: VecDeque::new(),
            out: VecDeque::new(),
            back: VecDeque::new(),
            last_out: 0,
            last_back: 0,
            hole_out: 0,
            hole_back: 0,
            owed: Vec::new(),
            news: VecDeque::new(),
            idle_since: 0,
            up_since: 0,
            check_at: Micros::MAX,
            failures: 0,
        }
    }

    /// How many calls wait for their answer.
    pub(super) fn in_flight(&self) -> usize {
        self.out.len() + self.back.len()
    }

    /// The call that has waited for its answer for longest.
    pub(super) fn oldest(&self) -> Option<u32> {
        self.back.front().or_else(|| self.out.front()).copied()
    }

    /// Keeps a release that failed, to make it again; `false` if it is not worth keeping.
    pub(super) fn owe(&mut self, mut op: Op, clock: Micros, now: Micros) -> bool {
        if op.owed_until <= clock {
            return false;
        }
        let due = if op.is_repeated {
            now + LONGEST_PAUSE
        } else {
            now
        };
        op.is_repeated = true;
        self.owed.push((op, due));
        true
    }

    /// A connection was made: whatever is owed is due, in the form that another connection needs.
    pub(super) fn meet(&mut self, now: Micros) {
        self.state = State::Up;
        self.up_since = now;
        self.meetings += 1;
        let owed = std::mem::take(&mut self.owed);
        self.owed.extend(owed.into_iter().map(|(op, _)| {
            let request = op.request.over_another_connection();
            (Op { request, ..op }, now)
        }));
    }

    /// Puts what is owed and due before everything that waits; each is its owner's last request.
    pub(super) fn take_owed(&mut self, clock: Micros, now: Micros) -> Vec<Op> {
        let mut over = Vec::new();
        let mut place = 0;
        while place < self.owed.len() {
            if self.owed[place].1 > now {
                place += 1;
                continue;
            }
            let (op, _) = self.owed.remove(place);
            match op.owed_until > clock {
                true => self.queue.push_front(op),
                false => over.push(op),
            }
        }
        over
    }

    /// When something owed is due.
    pub(super) fn owed_due(&self) -> Micros {
        let due = self.owed.iter().map(|(_, due)| *due);
        due.min().unwrap_or(Micros::MAX)
    }

    /// How long it waits before it connects again, between half of that and all.
    pub(super) fn pause(&self, part: u64) -> Micros {
        if self.failures == 0 {
            return MS / 2;
        }
        let longest = (SHORTEST_PAUSE << self.failures.min(8)).min(LONGEST_PAUSE);
        longest / 2 + longest * (part % 512) / 1_024
    }
}

impl Op {
    /// What a release is worth making for: as long as the key can stay.
    pub(super) fn ttl(request: &Request) -> Option<Micros> {
        request.worth_repeating_for().map(micros)
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

    /// The call of this number, if it is still the one with this serial number.
    pub(super) fn find(&mut self, number: u32, serial: u32) -> Option<&mut Call> {
        let call = self.calls.get_mut(number as usize)?.as_mut();
        call.filter(|call| call.serial == serial)
    }

    /// The calls that arrive late, in the order in which they were made.
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

    /// Whether any call arrives late.
    pub(super) const fn has_late(&self) -> bool {
        self.late > 0
    }

    /// A call will arrive although its connection is gone, or has arrived now.
    pub(super) fn set_late(&mut self, number: u32, is_late: bool) {
        let call = self.get_mut(number);
        let was_late = std::mem::replace(&mut call.is_late, is_late);
        self.late = self.late + u32::from(is_late) - u32::from(was_late);
    }

    /// The calls of a link that no node has executed, and one may execute.
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

/// A connection on which nothing happened for this long is tried.
pub(super) const BEAT: Micros = SECOND;

/// How many requests are sent together at most.
pub(super) const MOST_OPS: usize = 16;

const SHORTEST_PAUSE: Micros = 10 * MS;

/// The longest pause between two attempts to connect, and before a release that failed twice is made again;
/// shorter than the real client's, as everything here is.
pub(super) const LONGEST_PAUSE: Micros = 200 * MS;
