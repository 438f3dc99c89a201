//! What can happen in a world of claims, and what follows from it.

use std::{fmt, num::NonZeroUsize, time::Duration};

use redlock_proto::{Extension, ExtensionVerdict, Instant, NodeOutcome, Quorum, Timing, Votes};

use super::{
    TickCheck, TickMutation,
    node::{Ask, Nodes},
    state::{NODES, Node, Phase, Request, State},
};

/// Something that happens.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Step {
    /// A claimant begins to claim a tick.
    Claim {
        by: usize,
        tick: u8,
    },
    /// A claim reaches a node.
    ArriveClaim {
        by: usize,
        node: usize,
    },
    /// A claimant counts the votes of these nodes, and asks them to remember the tick.
    Settle {
        by: usize,
        voters: u8,
    },
    /// A commit reaches a node.
    ArriveCommit {
        by: usize,
        node: usize,
    },
    /// The vote of this node has come after a claimant had counted others; it is asked to remember the tick too.
    Join {
        by: usize,
        node: usize,
    },
    /// A claimant will never start its tick.
    GiveUp {
        by: usize,
    },
    /// A withdrawal reaches a node.
    ArriveWithdrawal {
        by: usize,
        node: usize,
    },
    /// A claimant starts its tick.
    Start {
        by: usize,
    },
    Expire {
        node: usize,
    },
    GoOn {
        node: usize,
    },
    SetBack {
        node: usize,
    },
    Stray {
        node: usize,
    },
    Crash {
        node: usize,
    },
    Read {
        node: usize,
    },
    Open {
        node: usize,
    },
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Claim { by, tick } => write!(f, "{} claims tick {tick}", name(by)),
            Self::ArriveClaim { by, node } => {
                write!(f, "the claim of {} reaches node {node}", name(by))
            }
            Self::Settle { by, voters } => {
                write!(f, "{} counts the votes of nodes {voters:03b}", name(by))
            }
            Self::ArriveCommit { by, node } => {
                write!(f, "the commit of {} reaches node {node}", name(by))
            }
            Self::Join { by, node } => {
                write!(f, "{} counts the late vote of node {node} too", name(by))
            }
            Self::GiveUp { by } => write!(f, "{} gives up", name(by)),
            Self::ArriveWithdrawal { by, node } => {
                write!(f, "the withdrawal of {} reaches node {node}", name(by))
            }
            Self::Start { by } => write!(f, "{} starts", name(by)),
            Self::Expire { node } => write!(f, "the lock on node {node} expires"),
            Self::GoOn { node } => write!(f, "the clock of node {node} goes on"),
            Self::SetBack { node } => write!(f, "the clock of node {node} is set back"),
            Self::Stray { node } => {
                write!(f, "the clock of node {node} goes astray, or is right again")
            }
            Self::Crash { node } => write!(f, "node {node} loses its data"),
            Self::Read { node } => write!(f, "the clock of node {node} is read"),
            Self::Open { node } => write!(f, "node {node} hears that it votes"),
        }
    }
}

fn name(claimant: usize) -> char {
    ['A', 'B', 'C'].get(claimant).copied().unwrap_or('?')
}

#[derive(Debug)]
pub(super) struct Rules {
    check: TickCheck,
    nodes: Nodes,
    /// By the bits of nodes that granted, whether a claim has won.
    won: [bool; 1 << NODES],
    /// By the bits of voters, and of those that confirmed, whether a commit is confirmed.
    confirmed: [[bool; 1 << NODES]; 1 << NODES],
}

impl Rules {
    pub(super) fn new(check: TickCheck) -> Self {
        let quorum = Quorum::of(NonZeroUsize::new(NODES).expect("there are nodes"));
        let sets = || 0..1u8 << NODES;
        let mut won = [false; 1 << NODES];
        let mut confirmed = [[false; 1 << NODES]; 1 << NODES];
        for set in sets() {
            let mut votes = Votes::new(quorum);
            for node in members(set) {
                votes.cast(node, NodeOutcome::Granted { counter: 1 });
            }
            won[usize::from(set)] = votes.is_won();
            for voters in sets() {
                confirmed[usize::from(voters)][usize::from(set)] = confirms(quorum, voters, set);
            }
        }
        Self {
            check,
            nodes: Nodes::new(),
            won,
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

    /// Everything that can happen.
    pub(super) fn steps(&self, state: &State, mut tell: impl FnMut(Step)) {
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
                    let sets = (0..1u8 << NODES).filter(|voters| voters & !votes == 0);
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

    /// What follows from a step, and the tick that is started twice by it.
    pub(super) fn apply(&self, state: &State, step: Step) -> (State, Option<u8>) {
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
                return (next, again.then_some(tick));
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

fn members(set: u8) -> impl Iterator<Item = usize> {
    (0..NODES).filter(move |node| set >> node & 1 == 1)
}

fn set(members: impl Iterator<Item = usize>) -> u8 {
    members.fold(0, |set, node| set | 1 << node)
}

/// The last tick: it can be claimed from the first step of the clocks on.
const LAST: u8 = 2;

/// Claimants as nodes know them, from 1.
fn number(by: usize) -> u8 {
    u8::try_from(by + 1).unwrap_or(u8::MAX)
}
