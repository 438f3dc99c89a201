//! What can happen in a world of claims, and what follows from it.

use std::time::Duration;

use redlock_proto::{Extension, ExtensionVerdict, Instant, NodeOutcome, Quorum, Timing};

use super::{
    TickCheck, TickMutation,
    node::{Ask, Nodes},
    state::{Node, Phase, Request, State},
    step::{StartedTwice, Step},
};
use crate::{
    explore::World,
    report::counted,
    three_nodes::{BySet, NODES, members, number, quorum, set, sets, won},
};

#[derive(Debug)]
pub(super) struct Rules {
    check: TickCheck,
    nodes: Nodes,
    /// By the bits of nodes that granted, whether a claim has won.
    won: BySet<bool>,
    /// By the bits of voters, and of those that confirmed, whether a commit is confirmed.
    confirmed: BySet<BySet<bool>>,
}

impl Rules {
    pub(super) fn new(check: TickCheck) -> Self {
        let mut confirmed: BySet<BySet<bool>> = BySet::default();
        for voters in sets() {
            for set in sets() {
                confirmed[usize::from(voters)][usize::from(set)] = confirms(quorum(), voters, set);
            }
        }
        Self {
            check,
            nodes: Nodes::default(),
            won: won(),
            confirmed,
        }
    }

    fn breaks(&self, mutation: TickMutation) -> bool {
        self.check.mutation == Some(mutation)
    }

    /// Whether what a node grants now is a vote, and what it confirms.
    fn votes(&self, node: Node) -> bool {
        !node.is_astray && (!node.is_quarantined || self.breaks(TickMutation::QuarantinedVotes))
    }
}

impl World for Rules {
    type State = State;
    type Step = Step;
    type Breach = StartedTwice;

    fn number(&self, state: &State) -> u128 {
        state.number()
    }

    fn state(&self, number: u128) -> State {
        State::of(number)
    }

    fn steps(&self, state: &State, mut tell: impl FnMut(Step)) {
        for by in 0..self.check.claimants {
            let claimant = &state.claimants[by];
            if claimant.tick == 0 {
                // They are alike, so they begin in order.
                if by == 0 || state.claimants[by - 1].tick > 0 {
                    (self.check.first..=LAST).for_each(|tick| tell(Step::Claim { by, tick }));
                }
                continue;
            }
            let at = |wanted: Request| (0..NODES).filter(move |node| claimant.at[*node] == wanted);
            at(Request::Underway).for_each(|node| tell(Step::ArriveClaim { by, node }));
            match claimant.phase {
                Phase::Claiming => {
                    let votes = set(at(Request::Vote));
                    let sets = sets().filter(|voters| voters & !votes == 0);
                    sets.filter(|voters| self.won[usize::from(*voters)])
                        .for_each(|voters| tell(Step::Settle { by, voters }));
                }
                Phase::Committing => {
                    let asked = if self.breaks(TickMutation::CommitUncounted) {
                        (1 << NODES) - 1
                    } else {
                        claimant.voters
                    };
                    members(asked)
                        .filter(|node| claimant.at[*node] != Request::Confirmed)
                        .for_each(|node| tell(Step::ArriveCommit { by, node }));
                    let confirmed = set(at(Request::Confirmed));
                    let is_enough = match self.check.mutation {
                        Some(TickMutation::WatermarkNotCommitted) => true,
                        Some(TickMutation::CommitBeforeMajority) => confirmed > 0,
                        Some(TickMutation::CommitUncounted) => self.won[usize::from(confirmed)],
                        _ => self.confirmed[usize::from(claimant.voters)][usize::from(confirmed)],
                    };
                    if is_enough {
                        tell(Step::Start { by });
                    }
                    at(Request::Vote)
                        .filter(|node| claimant.voters >> node & 1 == 0)
                        .for_each(|node| tell(Step::Join { by, node }));
                    tell(Step::GiveUp { by });
                }
                Phase::Started if self.breaks(TickMutation::StartedAndWithdrawn) => {
                    (0..NODES).for_each(|node| tell(Step::ArriveWithdrawal { by, node }));
                }
                Phase::Started => {}
                Phase::GivenUp => {
                    // What was sent before may still arrive.
                    let asked = members(claimant.voters);
                    asked.for_each(|node| tell(Step::ArriveCommit { by, node }));
                    (0..NODES).for_each(|node| tell(Step::ArriveWithdrawal { by, node }));
                }
            }
        }
        let least = state.nodes.iter().map(|node| node.clock).min().unwrap_or(0);
        let anybody_strays = state.nodes.iter().any(|node| node.is_astray);
        for (number, node) in state.nodes.iter().enumerate() {
            let number = || number;
            if node.lock > 0 {
                tell(Step::Expire { node: number() });
            }
            if node.clock < self.check.clock && node.clock <= least {
                tell(Step::GoOn { node: number() });
            }
            if node.clock > 0 && node.is_quarantined && self.breaks(TickMutation::ClockSetBack) {
                tell(Step::SetBack { node: number() });
            }
            if self.check.strays && (node.is_astray || !anybody_strays) {
                tell(Step::Stray { node: number() });
            }
            if state.crashes < self.check.crashes {
                tell(Step::Crash { node: number() });
            }
            if node.is_quarantined {
                if !node.is_astray {
                    tell(Step::Read { node: number() });
                }
                if node.read > 0 {
                    tell(Step::Open { node: number() });
                }
            }
        }
    }

    fn apply(&self, state: &State, step: Step) -> (State, Option<StartedTwice>) {
        let mut next = *state;
        match step {
            Step::Claim { by, tick } => next.claimants[by].tick = tick,
            Step::ArriveClaim { by, node } => {
                let ask = Ask::Claim {
                    by: number(by),
                    tick: state.claimants[by].tick,
                    early: if self.breaks(TickMutation::EarlyDiffers) {
                        u8::from(by == 0)
                    } else {
                        1
                    },
                };
                let before = state.nodes[node];
                let (after, granted) = self.nodes.ask(before, ask);
                next.nodes[node] = after;
                let is_vote = granted && self.votes(before);
                next.claimants[by].at[node] = if is_vote {
                    Request::Vote
                } else {
                    Request::Void
                };
            }
            Step::Settle { by, voters } => {
                next.claimants[by].phase = Phase::Committing;
                next.claimants[by].voters = voters;
            }
            Step::ArriveCommit { by, node } => {
                let ask = Ask::Commit {
                    by: number(by),
                    tick: state.claimants[by].tick,
                };
                let before = state.nodes[node];
                let (after, done) = self.nodes.ask(before, ask);
                next.nodes[node] = after;
                if done && self.votes(before) {
                    next.claimants[by].at[node] = Request::Confirmed;
                }
            }
            Step::Join { by, node } => next.claimants[by].voters |= 1 << node,
            Step::GiveUp { by } => next.claimants[by].phase = Phase::GivenUp,
            Step::ArriveWithdrawal { by, node } => {
                let before = state.nodes[node];
                let (by, tick) = if self.breaks(TickMutation::NewestWithdrawn) {
                    before.runs[0]
                } else {
                    (number(by), state.claimants[by].tick)
                };
                (next.nodes[node], _) = self.nodes.ask(before, Ask::Withdraw { by, tick });
            }
            Step::Start { by } => {
                let tick = state.claimants[by].tick;
                next.claimants[by].phase = Phase::Started;
                let mut started = state.claimants.iter();
                let again =
                    started.any(|other| other.phase == Phase::Started && other.tick == tick);
                return (next, again.then_some(StartedTwice(tick)));
            }
            Step::Expire { node } => next.nodes[node].lock = 0,
            Step::GoOn { node } => next.nodes[node].clock += 1,
            Step::SetBack { node } => next.nodes[node].clock -= 1,
            Step::Stray { node } => next.nodes[node].is_astray = !state.nodes[node].is_astray,
            Step::Crash { node } => {
                next.crashes += 1;
                let Node {
                    clock, is_astray, ..
                } = state.nodes[node];
                next.nodes[node] = Node {
                    clock,
                    is_astray,
                    is_quarantined: true,
                    ..Node::default()
                };
            }
            Step::Read { node } => next.nodes[node].read = 1 + state.nodes[node].clock,
            Step::Open { node } => {
                let before = state.nodes[node];
                let horizon = match self.check.mutation {
                    Some(TickMutation::HorizonIgnored) => None,
                    Some(TickMutation::HorizonOfTheTelling) => Some(before.shown()),
                    _ => before.read.checked_sub(1),
                };
                let (after, _) = self.nodes.ask(before, Ask::Open { horizon });
                next.nodes[node] = Node { read: 0, ..after };
            }
        }
        (next, None)
    }
}

/// Whether a commit is confirmed that these nodes of the voters confirm, as the protocol counts.
fn confirms(quorum: Quorum, voters: u8, confirm: u8) -> bool {
    let timing = Timing::new(Duration::from_secs(1), 0.0, Duration::from_millis(1));
    let timing = timing.expect("it leaves enough");
    let voters: Vec<usize> = members(voters).collect();
    let mut round = Extension::start(
        quorum,
        timing,
        Instant::ORIGIN + timing.ttl(),
        Instant::ORIGIN,
    )
    .among(&voters);
    for node in members(confirm) {
        round.on_outcome(node, NodeOutcome::Granted { counter: 0 }, Instant::ORIGIN);
    }
    matches!(round.verdict(), Some(ExtensionVerdict::Extended { .. }))
}

/// The last tick: it can be claimed from the first step of the clocks on.
const LAST: u8 = 2;

counted! {
    TickCheck by of;
    pub struct TickCounts {
        /// How many of the steps started a tick.
        started: Step::Start { .. },
        /// How many of the steps let a node vote again.
        opened: Step::Open { .. },
    }
}
