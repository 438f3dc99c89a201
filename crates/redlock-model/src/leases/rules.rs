//! What can happen in a world of leases, and what follows from it.

use redlock_proto::{LockMode, Quorum, RunId, Settled, settle};

use super::{
    LeaseCheck, LeaseMutation,
    check::Role,
    node::{Ask, Nodes, What},
    state::{Client, Node, Phase, Request, State},
    step::{Breach, Step},
};
use crate::{
    explore::World,
    protocol::runs,
    report::counted,
    three_nodes::{BySet, NODES, floor, members, number, quorum, sets, won},
};

#[derive(Debug)]
pub(super) struct Rules {
    check: LeaseCheck,
    nodes: Nodes,
    quorum: Quorum,
    runs: Vec<RunId>,
    /// By the bits of nodes, whether they are enough.
    won: BySet<bool>,
}

impl Rules {
    pub(super) fn new(check: LeaseCheck) -> Self {
        Self {
            check,
            nodes: Nodes::default(),
            quorum: quorum(),
            runs: runs(quorum()),
            won: won(),
        }
    }

    fn steps_of(&self, state: &State, by: usize, role: Role, tell: &mut impl FnMut(Step)) {
        let client = &state.clients[by];
        let acquired = role.mode(by);
        if client.phase == Phase::Idle {
            let upgraded = upgraded(role, by).map(|by| state.clients[by].phase);
            if upgraded.is_some_and(|phase| phase != Phase::Holding) {
                return;
            }
            // Those that are alike begin in order.
            let before = by.checked_sub(1);
            let is_next = before.is_none_or(|before| {
                self.check.roles[before] != Some(role) || state.clients[before].phase != Phase::Idle
            });
            if is_next {
                tell(Step::Start { by });
            }
            return;
        }
        for (node, at) in client.at.iter().enumerate() {
            if *at == Request::Underway {
                tell(Step::Acquire { by, node });
                // What it leaves unclear is asked again.
                if acquired == LockMode::Exclusive {
                    tell(Step::Transact { by, node });
                }
            }
        }
        match client.phase {
            Phase::Acquiring => {
                let votes = client.votes();
                let sets = sets().filter(|set| set & !votes == 0);
                sets.filter(|set| self.won[usize::from(*set)])
                    .for_each(|counted| tell(Step::Settle { by, counted }));
                tell(Step::End { by });
            }
            Phase::Confirming => {
                members(client.votes()).for_each(|node| tell(Step::Join { by, node }));
                tell(Step::End { by });
            }
            Phase::Holding => {
                if role == Role::WriterThenReader && !client.is_downgraded {
                    tell(Step::Downgrade { by });
                }
                tell(Step::End { by });
            }
            Phase::Idle | Phase::Over | Phase::Failed => {}
        }
        // What was sent before a downgrade may still arrive.
        let shared = client.is_downgraded.then_some(LockMode::Shared);
        for mode in [Some(acquired), shared].into_iter().flatten() {
            for node in 0..NODES {
                requests_of(client, |what| {
                    let ask = Ask { by, mode, what };
                    tell(Step::Ask { node, ask });
                });
                let is_asked = match client.phase {
                    Phase::Confirming => client.counted >> node & 1 == 1,
                    Phase::Holding => true,
                    _ => false,
                };
                if is_asked && client.confirmed >> node & 1 == 0 {
                    tell(Step::Confirm { by, node, mode });
                }
            }
        }
    }

    /// An acquire reaches a node, by the script or as a transaction.
    fn acquire(&self, state: &mut State, by: usize, node: usize, what: What) {
        let Some(role) = self.check.roles[by] else {
            return;
        };
        let mode = role.mode(by);
        let mut granted = self.ask(state, node, Ask { by, mode, what });
        let is_vote = self.votes(state.nodes[node]);
        if what == What::Transact {
            let has_it = state.nodes[node].key.alone == number(by);
            if has_it && self.check.breaks(LeaseMutation::TransactionOvertaken) {
                granted = granted.or(Some(1));
            }
            granted = granted.filter(|_| is_vote);
        }
        let Some(counter) = granted else {
            return;
        };
        let client = &mut state.clients[by];
        client.at[node] = match client.phase {
            Phase::Acquiring if is_vote => Request::Vote(counter),
            Phase::Confirming if is_vote && counter <= client.token => Request::Vote(counter),
            _ => Request::Void,
        };
    }

    /// A client knows its token, and has its lease if enough nodes have stored it.
    fn settle(&self, state: &mut State, by: usize, counted: u8) -> Option<Breach> {
        let client = &mut state.clients[by];
        let votes: Vec<(usize, u64)> = members(counted)
            .filter_map(|node| match client.at[node] {
                Request::Vote(counter) => Some((node, counter.into())),
                _ => None,
            })
            .collect();
        let (token, is_stored) = match settle(votes.into_iter(), self.quorum.majority()) {
            Settled::Agreed(token) => (token, true),
            Settled::WriteBack { counter, .. } => (
                counter,
                self.check.breaks(LeaseMutation::NoWriteBackOfReaders),
            ),
        };
        client.token = u8::try_from(token).unwrap_or(u8::MAX);
        client.phase = Phase::Confirming;
        client.counted = counted;
        let token = client.token;
        for (node, at) in client.at.iter_mut().enumerate() {
            if let Request::Vote(counter) = *at
                && (counted >> node & 1 == 1 || counter > token)
            {
                *at = Request::Void;
            }
        }
        is_stored.then(|| self.finish(state, by)).flatten()
    }

    /// A node is asked to confirm a token or an extension, and the client hears of it.
    fn confirm(&self, state: &mut State, by: usize, node: usize, mode: LockMode) -> Option<Breach> {
        let is_confirming = state.clients[by].phase == Phase::Confirming;
        let token = if is_confirming {
            state.clients[by].token
        } else {
            0
        };
        let what = What::Extend(token);
        let done = self.ask(state, node, Ask { by, mode, what }).is_some();
        if !done || !self.votes(state.nodes[node]) {
            return None;
        }
        let client = &mut state.clients[by];
        client.confirmed |= 1 << node;
        if !self.won[usize::from(client.confirmed)] {
            return None;
        }
        if is_confirming {
            return self.finish(state, by);
        }
        // The next round begins.
        client.counted = client.confirmed;
        client.confirmed = 0;
        None
    }

    /// A client has its lease: is it alone if it must be, and is its token in order?
    fn finish(&self, state: &mut State, by: usize) -> Option<Breach> {
        let upgraded = self.check.roles[by].and_then(|role| upgraded(role, by));
        if let Some(shared) = upgraded {
            if state.clients[shared].phase == Phase::Holding {
                state.clients[shared].end();
            } else if !self.check.breaks(LeaseMutation::UpgradeOfWhatIsOver) {
                // Another may have had the key since.
                state.clients[by].end();
                return None;
            }
        }
        let client = &mut state.clients[by];
        let before = client.before;
        client.phase = Phase::Holding;
        client.before = 0;
        client.confirmed = 0;
        client.forget_votes();
        let token = client.token;
        let is_writer = |by: usize| self.check.roles[by] != Some(Role::Reader);
        let others = || state.finished().filter(|(other, _)| *other != by);
        let beside = others().find(|(other, client)| {
            client.phase == Phase::Holding && (is_writer(by) || self.has_alone(*other, client))
        });
        if let Some((other, _)) = beside {
            return Some(Breach::NotAlone { by, other });
        }
        let since = upgraded.map(|shared| state.clients[shared].token);
        let between = others()
            .filter(|(other, _)| is_writer(*other))
            .find(|(_, client)| since.is_some_and(|since| (since..token).contains(&client.token)));
        if let Some((other, _)) = between {
            return Some(Breach::Between { by, other });
        }
        // Whatever was had alone was had before or after.
        let greater = others()
            .filter(|(other, _)| is_writer(by) || is_writer(*other))
            .map(|(_, client)| client.token);
        let before = greater.max().max(Some(before)).unwrap_or(0);
        (token <= before).then_some(Breach::NotGreater { by, token, before })
    }

    /// Returns whether a client that holds has the key alone, as it sees it.
    fn has_alone(&self, by: usize, client: &Client) -> bool {
        let is_shared =
            client.is_downgraded && !self.check.breaks(LeaseMutation::AloneAfterADowngrade);
        self.check.roles[by] != Some(Role::Reader) && !is_shared
    }

    /// A node does what it is asked, after the keys in the way have ended that may; returns what it did unless it
    /// refused.
    fn ask(&self, state: &mut State, node: usize, ask: Ask) -> Option<u8> {
        let place = state.nodes[node];
        let (mut after, mut done) = self.nodes.ask(place.key, place.counter, ask);
        if done.is_none() && matches!(ask.what, What::Acquire | What::Transact | What::Heal(_)) {
            let mut left = place.key;
            let upgrades = matches!(ask.mode, LockMode::Upgrade { .. });
            if upgrades && self.check.breaks(LeaseMutation::UpgradeBesideReaders) {
                left.shared = 0;
            }
            for (by, client) in state.clients.iter().enumerate() {
                let breaks = self.check.breaks(LeaseMutation::KeyEndsBeforeItsLease);
                if !client.counts(node) || breaks {
                    left.shared &= !(1 << by);
                    if left.alone == number(by) {
                        left.alone = 0;
                    }
                }
            }
            let (later, granted) = self.nodes.ask(left, place.counter, ask);
            // A transaction takes what is free, whatever it says.
            if granted.is_some() || ask.what == What::Transact {
                (after, done) = (later, granted);
            }
        }
        let (key, counter) = after;
        state.nodes[node] = Node {
            key,
            counter,
            ..place
        };
        done
    }

    /// Returns whether what a node grants and confirms counts.
    fn votes(&self, node: Node) -> bool {
        !node.is_quarantined || self.check.breaks(LeaseMutation::QuarantinedGrants)
    }

    /// Returns the floor with which a node may vote again, by what all nodes know.
    fn floor(&self, state: &State, node: usize) -> Option<u8> {
        if self.check.breaks(LeaseMutation::NoFloorForReaders) {
            return Some(0);
        }
        let places = state.nodes.map(|node| (node.is_quarantined, node.counter));
        floor(&self.runs, node, places)
    }

    /// Returns whether no client is left that could still get a lease.
    fn is_over(&self, state: &State) -> bool {
        self.roles().all(|(by, role)| {
            let ended = |by: usize| matches!(state.clients[by].phase, Phase::Over | Phase::Failed);
            match state.clients[by].phase {
                Phase::Idle => upgraded(role, by).is_some_and(ended),
                Phase::Holding => true,
                _ => ended(by),
            }
        })
    }

    fn roles(&self) -> impl Iterator<Item = (usize, Role)> {
        let roles = self.check.roles.into_iter().enumerate();
        roles.filter_map(|(by, role)| Some((by, role?)))
    }
}

impl World for Rules {
    type State = State;
    type Step = Step;
    type Breach = Breach;

    fn number(&self, state: &State) -> u128 {
        state.number()
    }

    fn state(&self, number: u128) -> State {
        State::of(number)
    }

    fn steps(&self, state: &State, mut tell: impl FnMut(Step)) {
        if self.is_over(state) {
            return;
        }
        for (by, role) in self.roles() {
            self.steps_of(state, by, role, &mut tell);
        }
        for (node, what) in state.nodes.iter().enumerate() {
            if state.crashes < self.check.crashes {
                tell(Step::Crash { node });
            }
            let is_counted = state.clients.iter().any(|client| client.counts(node));
            let may_end = !is_counted || self.check.breaks(LeaseMutation::QuarantineTooShort);
            if what.is_quarantined
                && may_end
                && let Some(floor) = self.floor(state, node)
            {
                tell(Step::Open { node, floor });
            }
        }
    }

    fn apply(&self, state: &State, step: Step) -> (State, Option<Breach>) {
        let mut next = *state;
        let mut breach = None;
        match step {
            Step::Start { by } => {
                next.clients[by].phase = Phase::Acquiring;
                let tokens = state.finished().map(|(_, client)| client.token);
                next.clients[by].before = tokens.max().unwrap_or(0);
            }
            Step::Acquire { by, node } => self.acquire(&mut next, by, node, What::Acquire),
            Step::Transact { by, node } => self.acquire(&mut next, by, node, What::Transact),
            Step::Settle { by, counted } => breach = self.settle(&mut next, by, counted),
            Step::Join { by, node } => {
                next.clients[by].counted |= 1 << node;
                next.clients[by].at[node] = Request::Void;
            }
            Step::Confirm { by, node, mode } => {
                breach = self.confirm(&mut next, by, node, mode);
            }
            Step::Downgrade { by } => next.clients[by].is_downgraded = true,
            Step::Ask { node, ask } => {
                self.ask(&mut next, node, ask);
            }
            Step::End { by } => next.clients[by].end(),
            Step::Crash { node } => {
                next.crashes += 1;
                next.nodes[node] = Node {
                    is_quarantined: true,
                    ..Node::default()
                };
            }
            Step::Open { node, floor } => {
                let place = &mut next.nodes[node];
                place.is_quarantined = false;
                place.counter = place.counter.max(floor);
            }
        }
        (next, breach)
    }
}

/// Returns the client whose lease is upgraded by client `by` in this role.
const fn upgraded(role: Role, by: usize) -> Option<usize> {
    match role {
        Role::Upgrade => by.checked_sub(1),
        _ => None,
    }
}

/// Tells what a client may have sent to a node besides its acquire.
fn requests_of(client: &Client, mut tell: impl FnMut(What)) {
    if client.token > 0 {
        tell(What::Extend(client.token));
    }
    if matches!(client.phase, Phase::Holding | Phase::Over) {
        tell(What::Extend(0));
        tell(What::Heal(client.token));
    }
    if matches!(client.phase, Phase::Over | Phase::Failed) {
        tell(What::Release);
    }
}

counted! {
    LeaseCheck by of;
    pub struct LeaseCounts {
        /// How many of the steps gave a client its token.
        settled: Step::Settle { .. },
        /// How many of the steps made a writer a reader.
        downgraded: Step::Downgrade { .. },
        /// How many of the steps let a node vote again.
        opened: Step::Open { .. },
    }
}
