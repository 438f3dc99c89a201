//! Connections: they are made and lost, and keep the order of what is sent over them.

use std::sync::Arc;

use redlock_proto::{JobVerb, NodeVerb, Reply, Request, RequestError, Verb};

use super::{
    World,
    agenda::Due,
    link::{BEAT, Call, LONGEST_PAUSE, MOST_OPS, Op, State, Tag},
    news::News,
};
use crate::{
    fault::Fate,
    setup::{MS, Micros},
};

/// What became of a request, by the number of its round.
pub(super) type Told = (u64, Result<Reply, RequestError>);

impl World {
    /// A client tries to connect to a node.
    pub(super) fn on_connect(&mut self, link: usize, conn: u32) {
        let this = &mut self.links[link];
        if this.conn != conn || this.state != State::Down {
            return;
        }
        this.conn += 1;
        this.state = State::Connecting;
        // The checks of the connection before are none of this one.
        this.check_at = Micros::MAX;
        this.is_severed = false;
        this.idle_since = self.now;
        this.last_out = self.now;
        this.last_back = self.now;
        let conn = this.conn;
        if self.servers[this.server].is_up {
            let hello = Request::Node(NodeVerb::Inspect);
            self.send_call(link, vec![hello], Vec::new());
            self.check_by(link, self.now + self.setup.link.connect_timeout);
        } else {
            self.links[link].is_severed = true;
            self.agenda.add(self.now + MS, Due::Lost { link, conn });
        }
    }

    /// A client notices that a connection is gone: nothing that is under way on it has an answer.
    pub(super) fn on_lost(&mut self, link: usize, conn: u32) {
        let this = &mut self.links[link];
        if this.conn != conn || this.state == State::Down {
            return;
        }
        self.counters.cuts += 1;
        let was_up = this.state == State::Up;
        if was_up && self.now - this.up_since >= LONGEST_PAUSE {
            this.failures = 0;
        }
        let part = self.random.bits64();
        let this = &mut self.links[link];
        this.is_severed = true;
        this.state = State::Down;
        let at = self.now + this.pause(part);
        this.failures += 1;
        self.agenda.add(at, Due::Connect { link, conn });

        let (client, node) = self.ends(link);
        self.trace.line(self.now, || {
            format!("client {client} has lost its connection to node {node}")
        });
        let reason: Arc<str> = "the connection was lost".into();
        let told = self.fail_all(link, &reason);
        let told_first = part & 1 == 0;
        self.deliver(
            link,
            News::Lost {
                reason,
                told,
                told_first,
            },
        );
        self.settle(client);
    }

    /// A client looks after a connection that has been quiet.
    pub(super) fn on_check(&mut self, link: usize, conn: u32) {
        let this = &mut self.links[link];
        if this.conn != conn || this.check_at > self.now || this.state == State::Down {
            return;
        }
        this.check_at = Micros::MAX;
        let limits = self.setup.link;
        let oldest = this.oldest().map(|call| self.calls.get_mut(call).sent);
        let patience = match this.state {
            State::Connecting => limits.connect_timeout,
            _ => limits.give_up_after,
        };
        match oldest {
            Some(sent) if self.now >= sent + patience => {
                let fate = match self.random.chance(500) {
                    true => Fate::Late(self.random.between(MS, self.setup.max_ttl)),
                    false => Fate::Dropped,
                };
                self.sever(link, fate);
                self.on_lost(link, conn);
                return;
            }
            Some(sent) => self.check_by(link, sent + patience),
            None if self.now >= this.idle_since + BEAT => {
                self.send_call(link, Vec::new(), Vec::new());
                self.check_by(link, self.now + patience);
            }
            None => {
                let at = this.idle_since + BEAT;
                self.check_by(link, at);
            }
        }
        let (client, _) = self.ends(link);
        self.flush(link);
        self.settle(client);
    }

    /// Has a client look after a connection at a moment, or before.
    pub(super) fn check_by(&mut self, link: usize, at: Micros) {
        let at = at.max(self.now + 1);
        let this = &mut self.links[link];
        if at < this.check_at {
            this.check_at = at;
            let conn = this.conn;
            self.agenda.add(at, Due::Check { link, conn });
        }
    }

    /// A connection breaks; its client does not know yet.
    pub(super) fn sever(&mut self, link: usize, fate: Fate) {
        let this = &mut self.links[link];
        let server = this.server;
        let crashes = self.servers[server].crashes;
        if this.is_severed {
            return;
        }
        this.is_severed = true;
        if let Fate::Late(after) = fate {
            for place in 0..this.out.len() {
                let call = this.out[place];
                let late = self.calls.get_mut(call);
                late.crashes = crashes;
                late.server = server;
                let serial = late.serial;
                self.calls.set_late(call, true);
                self.agenda
                    .add(self.now + after, Due::ArriveLate { call, serial });
            }
        }
    }

    /// Sends what waits for a connection, as far as there is room.
    pub(super) fn flush(&mut self, link: usize) {
        let (client, _) = self.ends(link);
        let clock = self.processes[client].clock(self.now);
        let this = &mut self.links[link];
        if this.state != State::Up {
            return;
        }
        if !this.owed.is_empty() {
            let over = this.take_owed(clock, self.now);
            let reason: Arc<str> = "the key has ended by itself".into();
            self.tell_failed(link, over, &reason);
            let due = self.links[link].owed_due();
            if due < Micros::MAX {
                self.check_by(link, due);
            }
        }
        if self.links[link].queue.is_empty() {
            return;
        }
        self.leave_behind(link);
        loop {
            let this = &mut self.links[link];
            if this.queue.is_empty() {
                return;
            }
            if this.in_flight() >= self.setup.link.most_calls {
                break;
            }
            let count = this.queue.len().min(MOST_OPS);
            let mut requests = Vec::with_capacity(count);
            let mut tags = Vec::with_capacity(count);
            for op in this.queue.drain(..count) {
                requests.push(op.request);
                tags.push(Tag {
                    round: op.round,
                    owner: op.owner,
                    owed_until: op.owed_until,
                    is_repeated: op.is_repeated,
                    is_degraded: op.is_degraded,
                });
            }
            self.send_call(link, requests, tags);
        }
        self.check_by(link, self.now + self.setup.link.lag_after);
    }

    /// Requests that a node which cannot keep up will not get, and releases of what was never sent.
    fn leave_behind(&mut self, link: usize) {
        let this = &mut self.links[link];
        let is_request = |op: &&Op| !op.request.is_release();
        let Some(waits_since) = this.queue.iter().find(is_request).map(|op| op.queued_at) else {
            return;
        };
        let sent = this.oldest().map(|call| self.calls.get_mut(call).sent);
        let since = sent.map_or(waits_since, |sent| sent.min(waits_since));
        if self.now < since + self.setup.link.lag_after {
            return;
        }
        let mut unsent = Vec::new();
        let mut told = Vec::new();
        let reason: Arc<str> = "no answer for long".into();
        for _ in 0..this.queue.len() {
            let Some(op) = this.queue.pop_front() else {
                break;
            };
            let is_needless = op.request.is_release() && unsent.contains(&op.owner);
            if is_needless {
                told.push((op.round, Ok(Reply::Missing)));
            } else if op.request.is_release() {
                this.queue.push_back(op);
            } else {
                if matches!(
                    op.request,
                    Request::Lock {
                        verb: Verb::Acquire { .. },
                        ..
                    } | Request::Job {
                        verb: JobVerb::Claim { .. },
                        ..
                    }
                ) {
                    unsent.push(op.owner);
                }
                self.counters.left_behind += 1;
                told.push((op.round, failed(false, &reason)));
            }
        }
        self.tell(link, told);
    }

    /// Sends a call over the present connection.
    fn send_call(&mut self, link: usize, requests: Vec<Request>, tags: Vec<Tag>) {
        let call = self.calls.add(Call {
            serial: 0,
            link,
            server: self.links[link].server,
            sent: self.now,
            requests,
            tags,
            answer: None,
            is_late: false,
            is_executed: false,
            crashes: 0,
            is_over: false,
        });
        let delay = self.delay();
        let this = &mut self.links[link];
        this.out.push_back(call);
        if !this.is_severed {
            this.last_out = this.last_out.max(self.now + delay);
            let conn = this.conn;
            self.agenda.add(this.last_out, Due::Arrive { link, conn });
        }
    }

    /// How long a message takes.
    pub(super) fn delay(&mut self) -> Micros {
        let net = self.setup.net;
        if self.phase.is_faulty() && net.slow > 0 && self.random.chance(net.slow) {
            return self.random.between(MS, net.slowest);
        }
        self.random.between(100, 1_500)
    }

    /// Everything that waits for an answer, or to be sent, has failed; releases are owed instead.
    fn fail_all(&mut self, link: usize, reason: &Arc<str>) -> Vec<Told> {
        let this = &mut self.links[link];
        let mut calls = std::mem::take(&mut this.back);
        calls.append(&mut this.out);
        let unsent = std::mem::take(&mut this.queue);
        let mut told = Vec::new();
        for number in calls {
            let call = self.calls.get_mut(number);
            let mut sent = Vec::with_capacity(call.tags.len());
            for (request, tag) in call.requests.iter().zip(&call.tags) {
                sent.push(tag.op(request.clone(), self.now));
            }
            match call.is_late {
                true => call.is_over = true,
                false => {
                    self.calls.take(number);
                }
            }
            for op in sent {
                told.extend(self.fail(link, op, true, reason));
            }
        }
        for op in unsent {
            told.extend(self.fail(link, op, false, reason));
        }
        told
    }

    /// What to tell of a request that failed; nothing yet of a release, which is made again.
    pub(super) fn fail(
        &mut self,
        link: usize,
        op: Op,
        may_have_run: bool,
        reason: &Arc<str>,
    ) -> Option<Told> {
        let (client, _) = self.ends(link);
        let round = op.round;
        let error = RequestError {
            may_have_run,
            reason: Arc::clone(reason),
        };
        if op.request.is_release() {
            let clock = self.processes[client].clock(self.now);
            if self.links[link].owe(op, clock, self.now) {
                self.deliver(link, News::Delayed { round, error });
                return None;
            }
        }
        Some((round, Err(error)))
    }

    fn tell_failed(&mut self, link: usize, ops: Vec<Op>, reason: &Arc<str>) {
        let told = ops.into_iter().map(|op| (op.round, failed(true, reason)));
        self.tell(link, told.collect());
    }

    /// Tells a client what became of requests that no node answered.
    pub(super) fn tell(&mut self, link: usize, told: Vec<Told>) {
        if told.is_empty() {
            return;
        }
        self.deliver(
            link,
            News::Answered {
                standing: None,
                told,
                heard: Vec::new(),
                sent: self.now,
                twice: false,
            },
        );
    }

    /// The client and the address of a link, which is the number of the node to which it leads unless a proxy is wrong.
    pub(super) const fn ends(&self, link: usize) -> (usize, usize) {
        (link / self.setup.nodes, link % self.setup.nodes)
    }
}

impl Tag {
    pub(super) const fn op(&self, request: Request, now: Micros) -> Op {
        Op {
            round: self.round,
            request,
            owner: self.owner,
            owed_until: self.owed_until,
            is_repeated: self.is_repeated,
            is_degraded: self.is_degraded,
            queued_at: now,
        }
    }
}

/// A request that has no reply.
pub(super) fn failed(may_have_run: bool, reason: &Arc<str>) -> Result<Reply, RequestError> {
    Err(RequestError {
        may_have_run,
        reason: Arc::clone(reason),
    })
}
