//! What can happen in a world of lines, and what follows from it.

use redlock_proto::{Quorum, RunId, Settled, settle};

use super::{
    LineCheck, LineMutation,
    node::{Ask, Nodes, What},
    state::{Caller, Entries, Entry, Node, Owner, Phase, Request, State},
    step::{Breach, Step},
};
use crate::{
    explore::World,
    protocol::runs,
    report::counted,
    three_nodes::{BySet, NODES, floor, members, quorum, set, sets, won},
};

#[derive(Debug)]
pub(super) struct Rules {
    pub(super) check: LineCheck,
    nodes: Nodes,
    quorum: Quorum,
    runs: Vec<RunId>,
    /// By the bits of nodes, whether they are enough.
    won: BySet<bool>,
}

impl Rules {
    pub(super) fn new(check: LineCheck) -> Self {
        Self {
            check,
            nodes: Nodes::new(check),
            quorum: quorum(),
            runs: runs(quorum()),
            won: won(),
        }
    }

    fn steps_of(&self, state: &State, by: usize, tell: &mut impl FnMut(Step)) {
        let caller = &state.callers[by];
        match caller.phase {
            Phase::Idle => tell(Step::Start { by }),
            Phase::Waiting => {
                let votes = caller.votes();
                self.majorities(votes)
                    .for_each(|counted| tell(Step::Settle { by, counted }));
            }
            Phase::Confirming => {
                members(caller.votes()).for_each(|node| tell(Step::Join { by, node }));
            }
            Phase::Holding => {
                let own = now(by);
                let keeps = |node: &usize| {
                    let place = state.nodes[*node];
                    place.key == Some(own) && votes(place)
                };
                self.majorities(set((0..NODES).filter(keeps)))
                    .for_each(|confirmed| tell(Step::Extend { by, confirmed }));
                for (node, place) in state.nodes.iter().enumerate() {
                    let is_asked = place.key == Some(own) || place.entry(own) == Entry::First;
                    if !self.check.is_plain
                        && !is_asked
                        && self.has_beat(state)
                        && caller.at[node] != Request::Underway
                    {
                        tell(Step::AskLate { by, node });
                    }
                }
            }
            Phase::Over => {}
        }
        if !matches!(caller.phase, Phase::Idle | Phase::Over) {
            tell(Step::End { by });
        }
        if matches!(caller.phase, Phase::Waiting | Phase::Confirming) && self.may_ask(state, by) {
            tell(Step::AskAgain { by });
        }
        for (node, place) in state.nodes.iter().enumerate() {
            let at = caller.at[node];
            if caller.phase != Phase::Idle && at == Request::Underway {
                tell(Step::Acquire { by, node });
            }
            if matches!(at, Request::Given(_)) {
                tell(Step::Hear { by, node });
            }
            let is_asked = (caller.counted & !caller.confirmed) >> node & 1 == 1;
            if is_asked && caller.phase == Phase::Confirming {
                tell(Step::Confirm { by, node });
            }
            // A release comes behind the acquires of its caller.
            let is_behind =
                at != Request::Underway || self.check.breaks(LineMutation::FirstGivesBack);
            let owner = old(by);
            if place.has(owner) && is_behind {
                tell(Step::Release { owner, node });
            }
            let owner = now(by);
            if place.has(owner) && is_behind && caller.phase == Phase::Over {
                tell(Step::Release { owner, node });
            }
            let Entries { now, old } = place.line[by];
            let waits = |entry| matches!(entry, Entry::Waits | Entry::First);
            // Neither tokens nor broken rules need a caller that lives on without its sign.
            let may_lapse = match caller.phase {
                Phase::Over => true,
                Phase::Waiting => !self.check.has_tokens() && self.check.mutation.is_none(),
                _ => false,
            };
            if !self.check.is_plain && may_lapse && (waits(now) || waits(old)) {
                tell(Step::SignEnds { by, node });
            }
        }
    }

    /// Returns the majorities of these nodes.
    ///
    /// Without tokens, the least do: what rests on more nodes keeps more keys from ending.
    fn majorities(&self, nodes: u8) -> impl Iterator<Item = u8> {
        let least = self.quorum.majority();
        let is_enough = move |set: &u8| {
            let is_least = set.count_ones() as usize == least;
            self.won[usize::from(*set)] && (is_least || self.check.has_tokens())
        };
        sets().filter(move |set| set & !nodes == 0 && is_enough(set))
    }

    /// Returns whether a caller asks again, or may.
    fn may_ask(&self, state: &State, by: usize) -> bool {
        let is_kept =
            self.check.breaks(LineMutation::FirstGivesBack) && state.first_waiting() != Some(by);
        self.has_beat(state) && !is_kept && !state.has_old(by)
    }

    /// Returns whether callers may ask again as often as they have, and once more.
    fn has_beat(&self, state: &State) -> bool {
        self.check.beats.is_none_or(|beats| state.beats < beats)
    }

    /// A caller asks again: what it has had is the owner's before.
    fn ask_again(&self, state: &mut State, by: usize) {
        for node in &mut state.nodes {
            if node.key == Some(now(by)) {
                node.key = Some(old(by));
            }
            let entries = &mut node.line[by];
            entries.old = std::mem::take(&mut entries.now);
        }
        state.beats += u8::from(self.check.has_tokens());
        let caller = &mut state.callers[by];
        let revived = self.check.breaks(LineMutation::OldOwnerRevived);
        let at = caller.at.map(|at| match at {
            Request::Given(_) if revived => at,
            _ => Request::Underway,
        });
        *caller = Caller {
            phase: Phase::Waiting,
            at,
            ..Caller::default()
        };
    }

    /// An acquire reaches a node.
    fn acquire(&self, state: &mut State, by: usize, node: usize) {
        state.callers[by].at[node] = Request::Done;
        let granted = self.ask(state, node, by, What::Acquire);
        if let Some(counter) = granted
            && votes(state.nodes[node])
        {
            vote(&mut state.callers[by], node, counter);
        }
        if self.check.is_plain && state.nodes[node].has(old(by)) {
            self.ask_as(state, node, old(by), What::Release);
        }
    }

    /// A caller knows its token, and has its lease if enough nodes have stored it.
    fn settle(&self, state: &mut State, by: usize, counted: u8) -> Option<Breach> {
        let caller = &mut state.callers[by];
        let votes: Vec<(usize, u64)> = members(counted)
            .filter_map(|node| match caller.at[node] {
                Request::Vote(counter) => Some((node, counter.into())),
                _ => None,
            })
            .collect();
        let (token, is_stored) = match settle(votes.into_iter(), self.quorum.majority()) {
            Settled::Agreed(token) => (token, true),
            Settled::WriteBack { counter, .. } => (counter, false),
        };
        let token = u8::try_from(token).unwrap_or(u8::MAX);
        caller.token = token;
        caller.phase = Phase::Confirming;
        caller.counted = counted;
        for (node, at) in caller.at.iter_mut().enumerate() {
            if let Request::Vote(counter) = *at
                && (counted >> node & 1 == 1 || counter > token)
            {
                *at = Request::Done;
            }
        }
        is_stored.then(|| self.finish(state, by)).flatten()
    }

    /// A node is asked to confirm a token, and the caller hears of it.
    fn confirm(&self, state: &mut State, by: usize, node: usize) -> Option<Breach> {
        let token = state.callers[by].token;
        let done = self.ask(state, node, by, What::Extend(token)).is_some();
        if !done || !votes(state.nodes[node]) {
            return None;
        }
        let caller = &mut state.callers[by];
        caller.confirmed |= 1 << node;
        let is_stored = self.won[usize::from(caller.confirmed)];
        is_stored.then(|| self.finish(state, by)).flatten()
    }

    /// A caller has its lease: is it alone, and is its token in order?
    fn finish(&self, state: &mut State, by: usize) -> Option<Breach> {
        let caller = &mut state.callers[by];
        caller.phase = Phase::Holding;
        caller.confirmed = 0;
        caller.forget_votes();
        let token = std::mem::take(&mut caller.token);
        let before = state.last;
        let mut callers = state.callers.iter().enumerate();
        let is_other =
            |(other, caller): &(usize, &Caller)| *other != by && caller.phase == Phase::Holding;
        if let Some((other, _)) = callers.find(is_other) {
            return Some(Breach::NotAlone { by, other });
        }
        if !self.check.has_tokens() {
            return None;
        }
        state.last = token;
        (token <= before).then_some(Breach::NotGreater { by, token, before })
    }

    /// A node does what the present owner of a caller asks; returns what it did unless it refused.
    fn ask(&self, state: &mut State, node: usize, by: usize, what: What) -> Option<u8> {
        self.ask_as(state, node, now(by), what)
    }

    fn ask_as(&self, state: &mut State, node: usize, owner: Owner, what: What) -> Option<u8> {
        let done = self.nodes.ask(state.nodes[node], Ask { owner, what });
        state.nodes[node] = done.node;
        if let Some((given, counter)) = done.gift {
            let caller = &mut state.callers[given.by];
            let is_meant = !given.is_old || self.check.breaks(LineMutation::OldOwnerRevived);
            let counts = matches!(caller.phase, Phase::Waiting | Phase::Confirming);
            if is_meant && counts {
                caller.at[node] = Request::Given(counter);
            }
        }
        done.granted
    }

    /// Returns whether the window of a caller rests on what a node has told it, or given to it.
    fn rests(&self, caller: &Caller, node: usize) -> bool {
        // The window of a gift began before the gift, so it lasts until the message is of no use.
        let is_given = matches!(caller.at[node], Request::Given(_));
        caller.counts(node) || is_given && !self.check.breaks(LineMutation::WindowFromTheMessage)
    }

    /// Returns whether no caller is left that could still get a lease.
    fn is_over(&self, state: &State) -> bool {
        state.callers[..self.check.callers]
            .iter()
            .all(|caller| matches!(caller.phase, Phase::Holding | Phase::Over))
    }
}

impl World for Rules {
    type State = State;
    type Step = Step;
    type Breach = Breach;

    fn number(&self, state: &State) -> u128 {
        state.number(self.check.has_tokens())
    }

    fn state(&self, number: u128) -> State {
        State::of(number, self.check.has_tokens())
    }

    fn steps(&self, state: &State, mut tell: impl FnMut(Step)) {
        if self.is_over(state) {
            return;
        }
        for by in 0..self.check.callers {
            self.steps_of(state, by, &mut tell);
        }
        for (node, place) in state.nodes.iter().enumerate() {
            let rests = |owner: Owner| !owner.is_old && self.rests(&state.callers[owner.by], node);
            if place.key.is_some_and(|owner| !rests(owner)) {
                tell(Step::Expire { node });
            }
            if state.crashes < self.check.crashes {
                tell(Step::Crash { node });
            }
            let mut callers = state.callers.iter();
            if place.is_quarantined && !callers.any(|caller| self.rests(caller, node)) {
                let places = state.nodes.map(|node| (node.is_quarantined, node.counter));
                if let Some(floor) = floor(&self.runs, node, places) {
                    tell(Step::Open { node, floor });
                }
            }
        }
    }

    fn apply(&self, state: &State, step: Step) -> (State, Option<Breach>) {
        let mut next = *state;
        let mut breach = None;
        match step {
            Step::Start { by } => next.callers[by].phase = Phase::Waiting,
            Step::Acquire { by, node } => self.acquire(&mut next, by, node),
            Step::Hear { by, node } => {
                if let Request::Given(counter) = next.callers[by].at[node] {
                    next.callers[by].at[node] = Request::Done;
                    vote(&mut next.callers[by], node, counter);
                }
            }
            Step::AskAgain { by } => self.ask_again(&mut next, by),
            Step::Release { owner, node } => {
                self.ask_as(&mut next, node, owner, What::Release);
            }
            Step::Settle { by, counted } => breach = self.settle(&mut next, by, counted),
            Step::Join { by, node } => {
                next.callers[by].counted |= 1 << node;
                next.callers[by].at[node] = Request::Done;
            }
            Step::Confirm { by, node } => breach = self.confirm(&mut next, by, node),
            Step::AskLate { by, node } => {
                next.beats += u8::from(self.check.has_tokens());
                let token = next.last;
                self.ask(&mut next, node, by, What::Late(token));
            }
            Step::Extend { by, confirmed } => next.callers[by].counted = confirmed,
            Step::End { by } => {
                next.callers[by] = Caller {
                    phase: Phase::Over,
                    at: [Request::Done; NODES],
                    ..Caller::default()
                }
            }
            Step::SignEnds { by, node } => {
                let Entries { now, old } = &mut next.nodes[node].line[by];
                for entry in [now, old] {
                    if *entry != Entry::None {
                        *entry = Entry::Ended;
                    }
                }
            }
            Step::Expire { node } => next.nodes[node].key = None,
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
        (
            next,
            breach.or_else(|| Breach::of_order(state, step, &next)),
        )
    }
}

/// Returns whether what a node grants and confirms counts.
const fn votes(node: Node) -> bool {
    !node.is_quarantined
}

/// Counts a vote that a caller hears of, if it counts at that time.
fn vote(caller: &mut Caller, node: usize, counter: u8) {
    let counts = match caller.phase {
        Phase::Waiting => true,
        Phase::Confirming => counter <= caller.token,
        _ => false,
    };
    if counts {
        caller.at[node] = Request::Vote(counter);
    }
}

const fn now(by: usize) -> Owner {
    Owner { by, is_old: false }
}

const fn old(by: usize) -> Owner {
    Owner { by, is_old: true }
}

counted! {
    LineCheck by of_live;
    pub struct LineCounts {
        /// How many of the steps gave a caller its token.
        settled: Step::Settle { .. },
        /// How many of the steps told a caller that a node had given it the key.
        heard: Step::Hear { .. },
        /// How many of the steps let a node vote again.
        opened: Step::Open { .. },
    }
}
