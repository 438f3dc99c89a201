//! Connections: they are made and lost, and keep the order of what is sent over them.

use std::sync::Arc;

use redlock_proto::{HELLO, Instant, JobVerb, LinkEvent, Request};

use super::{World, agenda::Due, link::Call, news::News};
use crate::{
    fault::Fate,
    setup::{MS, Micros},
};

impl World {
    /// A link looks at its clock.
    pub(super) fn on_link_timer(&mut self, link: usize, life: u32) {
        let (client, _) = self.ends(link);
        if self.processes[client].life != life || self.links[link].timer_at > self.now {
            return;
        }
        self.links[link].timer_at = Micros::MAX;
        let now = self.instant(link);
        self.links[link].machine.on_timer(now);
        self.carry_out(link);
        self.settle(client);
    }

    /// A client notices that a connection is gone: nothing that is under way on it has an answer.
    pub(super) fn on_lost(&mut self, link: usize, conn: u32) {
        if self.links[link].conn != conn || !self.links[link].has_connection() {
            return;
        }
        let now = self.instant(link);
        let reason: Arc<str> = "the connection was lost".into();
        self.links[link].machine.on_lost(reason, now);
        self.carry_out(link);
        let (client, _) = self.ends(link);
        self.settle(client);
    }

    /// Does what a link wants done.
    pub(super) fn carry_out(&mut self, link: usize) {
        self.links[link].has_requests = false;
        let now = self.instant(link);
        while let Some(call) = self.links[link].machine.next_call(now) {
            if let Some(reason) = self.refusal(link) {
                self.refuse_call(link, call.id, &reason);
                continue;
            }
            self.send_call(link, Some(call.id), call.requests, call.is_transaction);
        }
        self.links[link].machine.on_written(now);
        self.tell(link, Vec::new());
        let this = &mut self.links[link];
        self.counters.shed += this.machine.requests_shed() - this.shed;
        this.shed = this.machine.requests_shed();
        if !this.has_connection() {
            self.drop_connection(link);
        }
        if self.links[link].machine.begin_connect(now) {
            self.connect(link);
        }
        self.set_link_timer(link);
    }

    /// A client tries to connect to a node.
    fn connect(&mut self, link: usize) {
        let this = &mut self.links[link];
        this.conn += 1;
        this.is_severed = false;
        this.last_out = self.now;
        this.last_back = self.now;
        let conn = this.conn;
        if self.setup.named.is_some() {
            self.begin_session(link);
        } else if self.servers[this.server].is_up {
            self.send_call(link, None, HELLO.to_vec(), false);
        } else {
            self.links[link].is_severed = true;
            self.agenda.add(self.now + MS, Due::Lost { link, conn });
        }
    }

    /// Drops a connection that its client no longer needs, or has noticed to be gone.
    fn drop_connection(&mut self, link: usize) {
        if !self.links[link].is_severed {
            let fate = if self.random.chance(500) {
                Fate::Late(self.random.between(MS, self.setup.max_ttl))
            } else {
                Fate::Dropped
            };
            self.sever(link, fate);
        }
        self.links[link].session = None;
        self.forget_calls(link);
    }

    /// Forgets the calls that are under way over a connection.
    pub(super) fn forget_calls(&mut self, link: usize) {
        let this = &mut self.links[link];
        let mut calls = std::mem::take(&mut this.back);
        calls.append(&mut this.out);
        for number in calls {
            let call = self.calls.get_mut(number);
            if call.is_late {
                call.is_over = true;
            } else {
                self.calls.take(number);
            }
        }
    }

    /// Has a link look at its clock when it wants to.
    fn set_link_timer(&mut self, link: usize) {
        let (client, _) = self.ends(link);
        let process = &self.processes[client];
        let next = self.links[link].machine.next_timer();
        let at = process.when(next).max(self.now + 1);
        self.wake_link(link, at);
    }

    /// Has a link look at its clock at a moment, or before.
    pub(super) fn wake_link(&mut self, link: usize, at: Micros) {
        let (client, _) = self.ends(link);
        let this = &mut self.links[link];
        if at < this.timer_at {
            this.timer_at = at;
            let life = self.processes[client].life;
            self.agenda.add(at, Due::Link { link, life });
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

    /// Sends a call over the present connection.
    pub(super) fn send_call(
        &mut self,
        link: usize,
        id: Option<u64>,
        requests: Vec<Request>,
        is_transaction: bool,
    ) {
        let owners = requests.iter().map(|request| self.owner_of(request));
        let owners = owners.collect();
        let call = self.calls.add(Call {
            serial: 0,
            id,
            link,
            server: self.links[link].server,
            sent: self.now,
            requests,
            owners,
            is_transaction,
            keyspace: self.keyspace_of(link),
            is_by_replica: false,
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

    /// Returns the number of the owner on whose behalf a request is made, if it is about a key.
    pub(super) fn owner_of(&self, request: &Request) -> Option<u32> {
        match request {
            Request::Lock { lock, .. } => self.owners.number(&lock.owner),
            Request::Job {
                verb: JobVerb::Claim { owner, .. } | JobVerb::Commit { owner, .. },
                ..
            } => self.owners.number(owner),
            Request::Job { .. } | Request::Node(_) => None,
        }
    }

    /// Returns how long a message takes.
    pub(super) fn delay(&mut self) -> Micros {
        let net = self.setup.net;
        if self.phase.is_faulty() && net.slow > 0 && self.random.chance(net.slow) {
            return self.random.between(MS, net.slowest);
        }
        self.random.between(100, 1_500)
    }

    /// Tells a client what its link has to say; of a call that was answered, `said` is what it says of each request.
    pub(super) fn tell(&mut self, link: usize, said: Vec<Option<super::said::Said>>) {
        let mut events = Vec::new();
        while let Some(event) = self.links[link].machine.poll_event() {
            events.push(event);
        }
        if let Some(lost) = events
            .iter()
            .position(|event| matches!(event, LinkEvent::Disconnected { .. }))
        {
            self.counters.cuts += 1;
            let (client, node) = self.ends(link);
            self.trace.line(self.now, || {
                format!("client {client} has lost its connection to node {node}")
            });
            // What became of requests, and that the connection is gone: either may be told first.
            if self.random.chance(500) {
                events[..=lost].rotate_right(1);
            }
        }
        let mut said = Some(said);
        for event in events {
            let is_answer = matches!(event, LinkEvent::Answered { .. });
            let said = said.take_if(|_| is_answer).unwrap_or_default();
            self.deliver(link, News::of(event, said));
        }
    }

    /// Returns what a link's client reads on its clock.
    pub(super) fn instant(&self, link: usize) -> Instant {
        let (client, _) = self.ends(link);
        self.processes[client].now(self.now).clock
    }

    /// Returns the client and the address of a link, which is the number of the node to which it leads unless a proxy
    /// is wrong.
    pub(super) const fn ends(&self, link: usize) -> (usize, usize) {
        (link / self.setup.nodes, link % self.setup.nodes)
    }
}
