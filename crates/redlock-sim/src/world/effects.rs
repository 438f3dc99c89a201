//! The effects of a client, and what follows from them.

use std::time::Duration;

use redlock_proto::{
    Effect, Failure, FailureKind, LockMode, Loss, NodeAnswer, NotAVote, Notice, TokenBlock,
};

use super::{
    World,
    link::Degraded,
    process::{Holding, State},
    status::has_reason,
    waiter::waiter_of,
};
use crate::{
    Event, Moment, Violation,
    setup::{MS, Micros},
};

impl World {
    /// Does what a client wants done, until it wants nothing more, and sends what has gathered.
    pub(super) fn settle(&mut self, client: usize) {
        loop {
            let process = &mut self.processes[client];
            process.has_news = false;
            while let Some(effect) = self.processes[client].client.poll_effect() {
                self.on_effect(client, effect);
            }
            for node in 0..self.setup.nodes {
                let link = self.link(client, node);
                if self.links[link].has_requests {
                    self.carry_out(link);
                }
            }
            if !self.processes[client].has_news && !self.goes_on(client) {
                break;
            }
        }
        self.set_timer(client);
        self.look_for_forgotten(client);
        let process = &mut self.processes[client];
        if std::mem::take(&mut process.has_asked)
            && self.phase.is_faulty()
            && let Some(length) = process.stumbles.take()
        {
            self.pause(client, length);
        }
    }

    /// Tells a client of the links' backlogs, and has it send what waits for room; returns whether there is anything.
    fn goes_on(&mut self, client: usize) -> bool {
        self.tell_backlogs(client);
        let process = &mut self.processes[client];
        let now = process.now(self.now);
        process.client.admit(now);
        let effect = process.client.poll_effect();
        let goes_on = effect.is_some();
        if let Some(effect) = effect {
            self.counters.queued += 1;
            self.on_effect(client, effect);
        }
        goes_on
    }

    /// Tells a client what its links have before them.
    pub(super) fn tell_backlogs(&mut self, client: usize) {
        for node in 0..self.setup.nodes {
            let backlog = self.links[self.link(client, node)].machine.backlog();
            self.processes[client].client.on_backlog(node, backlog);
        }
    }

    fn on_effect(&mut self, client: usize, effect: Effect) {
        match effect {
            Effect::Send {
                node,
                round,
                request,
                connection,
            } => self.on_send(client, node, round, request, connection),
            Effect::Acquired {
                id,
                deadline,
                tokens,
                ..
            } => {
                if self.setup.jobs.is_some() {
                    self.on_claimed(client, id, tokens);
                }
                self.on_acquired(client, id, deadline, tokens);
            }
            Effect::NotAcquired {
                id,
                failure,
                answers,
            } => {
                self.counters.not_acquired += 1;
                let has_reason = has_reason(failure.as_ref(), &answers);
                self.must_not_be_for_itself(client, failure.as_ref());
                self.must_have_a_reason(client, id, has_reason);
                self.must_not_fail(client, id, failure.as_ref());
                self.must_lack_a_majority(client, failure.as_ref(), &answers);
                self.trace.line(self.now, || {
                    let kind: Option<FailureKind> = failure.map(|failure| failure.kind);
                    format!("client {client} has not acquired {id}: {kind:?}")
                });
                self.on_not_acquired(client, id);
            }
            Effect::Extended { lease, deadline } => {
                self.counters.extensions += 1;
                let Some((key, holding)) = self.holding(client, lease) else {
                    return;
                };
                holding.deadline = deadline;
                if holding.is_parked {
                    return;
                }
                let lease = holding.lease;
                let until = self.true_time(client, deadline);
                let promised = self.promised(client, key);
                self.trace.line(self.now, || {
                    format!("client {client} has lease {lease} until {until} now")
                });
                self.observe(&Event::Extended {
                    lease,
                    until,
                    promised: Some(promised),
                });
                self.on_extended(client, key);
            }
            Effect::Listen { .. } => self.on_listen(client, &effect),
            Effect::Lost { lease, loss } => self.on_lost_lease(client, lease, loss),
            Effect::ExtensionOver { ask, .. }
            | Effect::ReleaseOver { ask, .. }
            | Effect::Blessed { ask, .. } => {
                let waiter = waiter_of(client, ask);
                self.observe(&Event::Answered { waiter });
            }
            Effect::JobRead { ask, record, .. } => self.on_job_read(client, ask, record),
            Effect::Notice(notice) => self.on_notice(client, &notice),
            Effect::NotClaimed { id, why, answers } => {
                self.on_not_claimed(client, id, &why, &answers);
            }
        }
    }

    pub(super) fn on_acquired(
        &mut self,
        client: usize,
        id: u64,
        deadline: redlock_proto::Instant,
        block: TokenBlock,
    ) {
        self.counters.acquisitions += 1;
        let is_strange = self.setup.is_stranger(client) && self.phase.is_faulty();
        self.counters.won_by_strangers += u64::from(is_strange);
        let is_upgrade = self.on_upgraded(client, id, block);
        let tokens = (block.first().get(), block.last().get());
        let users = &self.processes[client].users;
        let waits_for =
            |state: State| matches!(state, State::Waiting { id: other, .. } if other == id);
        let Some(key) = users.iter().position(|user| waits_for(user.state)) else {
            // No user waits for it any more.
            let now = self.processes[client].now(self.now);
            self.processes[client].client.release(id, None, now);
            self.processes[client].numbers.remove(id);
            return;
        };
        if let State::Waiting { waiter, .. } = self.processes[client].users[key].state {
            // A user that upgrades a lease was answered before.
            if !is_upgrade {
                self.observe(&Event::Answered { waiter });
            }
        }
        self.counters.won_sets += u64::from(key >= self.setup.keys.len());
        let is_shared = self.processes[client].users[key].mode == LockMode::Shared;
        self.counters.won_shared += u64::from(is_shared);
        self.counters.won_together += u64::from(is_shared && self.is_shared_by_others(client, key));
        let lease = self.next_lease;
        self.next_lease += 1;
        let until = self.true_time(client, deadline);
        let promised = self.promised(client, key);
        let owner = self.processes[client].users[key].owner;
        let started = owner.map_or(0, |owner| self.owners.get(owner).started);
        let majority = self.setup.quorum.majority();
        let is_narrow = owner.is_some_and(|owner| self.owners.get(owner).asked() == majority);
        self.counters.won_narrowly += u64::from(is_narrow && majority < self.setup.nodes);
        self.trace.line(self.now, || {
            format!(
                "client {client} acquires key {key}: lease {lease} of owner {owner:?}, tokens {tokens:?}, until {until}"
            )
        });
        self.trace.mix(tokens.0);
        let rest = self.processes[client].users[key].rest;
        self.observe(&Event::Acquired {
            lease,
            client,
            key,
            is_shared,
            tokens,
            started: Moment::from_micros(started),
            until,
            rest: Duration::from_micros(rest),
            promised: Some(promised),
        });
        let keys = self.setup.keys_of(key);
        let process = &mut self.processes[client];
        let now = process.now(self.now).clock;
        process.callers.won(&keys, now);
        process.users[key].state = State::Holding(Holding {
            id,
            lease,
            is_lost: false,
            is_parked: false,
            won_at: now,
            tokens: block,
            done_at: 0,
            extends_every: 0,
            changes_at: None,
            looks: false,
            deadline,
        });
        self.use_lease(client, key);
    }

    /// Returns whether other clients hold what is locked.
    fn is_shared_by_others(&self, client: usize, key: usize) -> bool {
        let others = self.processes.iter().enumerate();
        let mut others = others.filter(|(other, process)| *other != client && process.is_alive);
        others.any(|(_, process)| {
            let state = process.users[key].state;
            matches!(state, State::Holding(holding) if !holding.is_lost)
        })
    }

    /// An acquire of a client that gets its CPU in slices has failed: another holder is a reason, and so is a wait that
    /// ended before the client came to its requests.
    fn must_not_be_for_itself(&mut self, client: usize, failure: Option<&Failure>) {
        let is_sliced = self.setup.slices.is_some() && self.phase.is_faulty();
        // It may not be connected yet.
        let Some(failure) = failure.filter(|_| is_sliced && self.now > CONNECTED_BY) else {
            return;
        };
        match failure.kind {
            FailureKind::Contended => {}
            FailureKind::Overloaded => self.counters.too_slow += 1,
            _ => self.fails_for_itself(client, "an acquire"),
        }
    }

    fn fails_for_itself(&mut self, client: usize, what: &'static str) {
        let at = Moment::from_micros(self.now);
        self.checker
            .report(at, Violation::OwnSlowness { client, what });
    }

    pub(super) fn on_not_acquired(&mut self, client: usize, id: u64) {
        self.processes[client].numbers.remove(id);
        self.on_not_upgraded(client, id);
        let users = &self.processes[client].users;
        let waits_for =
            |state: State| matches!(state, State::Waiting { id: other, .. } if other == id);
        let Some(key) = users.iter().position(|user| waits_for(user.state)) else {
            return;
        };
        if let State::Waiting { waiter, .. } = self.processes[client].users[key].state {
            self.observe(&Event::Answered { waiter });
        }
        self.did_not_start(client, key);
        self.give_up(client, key);
        self.processes[client].users[key].state = State::Idle;
        self.leave_turn(client, key);
    }

    fn on_lost_lease(&mut self, client: usize, lease: u64, loss: Loss) {
        match loss {
            Loss::Expired => self.counters.expired += 1,
            Loss::Revoked => self.counters.revoked += 1,
            _ => self.counters.held_longest += 1,
        }
        let Some((key, holding)) = self.holding(client, lease) else {
            return;
        };
        holding.is_lost = true;
        let (lease, is_parked) = (holding.lease, holding.is_parked);
        let deadline = holding.deadline;
        if !is_parked {
            self.must_not_be_lost(client, (lease, deadline), loss);
        }
        let is_own = self.setup.slices.is_some() && self.phase.is_faulty();
        if is_own && !is_parked && loss != Loss::MaxHold {
            self.fails_for_itself(client, "a lease");
        }
        self.trace.line(self.now, || {
            format!("client {client} has lost lease {lease}: {loss:?}")
        });
        self.observe(&Event::Ended { lease });
        // Of a lease that is parked, the next caller hears.
        if !is_parked {
            self.on_loss(client, key);
        }
    }

    fn on_notice(&mut self, client: usize, notice: &Notice) {
        self.trace
            .line(self.now, || format!("client {client} notices: {notice:?}"));
        match notice {
            Notice::FencingDegraded { node, .. } => {
                let process = &mut self.processes[client];
                let answers = process.client.standing(process.now(self.now));
                let duplicates = answers.iter().filter(|answer| is_duplicate(answer));
                process.degrades = Some(Degraded {
                    node: *node,
                    duplicates: duplicates.count(),
                });
            }
            Notice::DoesNotVote {
                reason: NotAVote::Clock,
                ..
            } => self.counters.disagreed += 1,
            Notice::ExtensionFailed { .. } => self.counters.extensions_failed += 1,
            _ => {}
        }
    }

    /// Returns the lease that a client knows by this number, and its key.
    fn holding(&mut self, client: usize, lease: u64) -> Option<(usize, &mut Holding)> {
        let users = self.processes[client].users.iter_mut().enumerate();
        users
            .into_iter()
            .find_map(|(key, user)| match &mut user.state {
                State::Holding(holding) if holding.id == lease => Some((key, holding)),
                _ => None,
            })
    }

    /// Forgets the holder that had taken a key for this client before.
    pub(super) fn give_up(&mut self, client: usize, key: usize) {
        let owner = self.processes[client].users[key].owner.take();
        self.give_up_owner(client, owner);
    }

    /// Forgets a holder, if there is one.
    pub(super) fn give_up_owner(&mut self, client: usize, owner: Option<u32>) {
        if let Some(owner) = owner {
            self.owners.get_mut(owner).over.get_or_insert(self.now);
            self.processes[client].given_up.push(owner);
        }
    }

    /// Returns up to when a majority keeps the key of a client's lease.
    fn promised(&self, client: usize, key: usize) -> Moment {
        let majority = self.setup.quorum.majority();
        let owner = self.processes[client].users[key].owner;
        let promised = owner.map_or(0, |owner| {
            let owner = self.owners.get(owner);
            owner.promised_by(majority, self.setup.nodes)
        });
        Moment::from_micros(promised)
    }

    pub(super) fn true_time(&self, client: usize, instant: redlock_proto::Instant) -> Moment {
        Moment::from_micros(self.processes[client].when(instant))
    }

    /// Returns when an answer to what a client asks for now is due, if it takes so many rounds.
    pub(super) fn answer_due(&self, rounds: u64) -> Micros {
        let limit = self.setup.node_timeout + self.setup.node_timeout / 50;
        // A node that answers others has more time, until its connection is given up.
        let silence = self.setup.link.give_up_after;
        let most = u64::try_from(silence.as_micros()).unwrap_or(Micros::MAX);
        self.now + (rounds + 1) * limit + most + 5 * MS
    }
}

/// By when the clients of a world are connected whose nodes are well.
const CONNECTED_BY: Micros = 500 * MS;

/// Returns whether a node is the same server as another one, which votes for both.
const fn is_duplicate(answer: &NodeAnswer) -> bool {
    matches!(
        answer,
        NodeAnswer::NotAVote {
            reason: NotAVote::SameServer { .. }
        }
    )
}
