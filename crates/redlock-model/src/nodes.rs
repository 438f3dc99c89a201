//! What nodes do, and what is done on their behalf.

use crate::{
    Breach, Mutation,
    rules::Rules,
    state::{Exchange, Node, Phase, Reading, Standing, State},
    step::Step,
};

impl Rules {
    pub(crate) fn steps_of_node(&self, state: &State, node: usize, tell: &mut impl FnMut(Step)) {
        let what = &state.nodes[node];
        if what.key.is_some() && !self.pruned {
            tell(Step::Expire { node });
        }
        if state.crashes < self.scope.crashes() {
            tell(Step::Crash { node });
        }
        let quarantined = what.standing == Standing::Quarantined;
        if quarantined && (self.pruned || !self.is_counted_from_before(state, node)) {
            tell(Step::EndQuarantine { node });
        }
        let early = quarantined && self.protocol.breaks(Mutation::SeedEarly);
        if what.standing == Standing::Aged || early {
            for of in 0..self.scope.nodes() {
                if what.readings[of].is_none() {
                    tell(Step::Read { node, of });
                }
            }
        }
        if what.standing == Standing::Aged {
            self.protocol
                .floor(node, what, |floor| tell(Step::Open { node, floor }));
        }
    }

    /// The timing assumption: whether a client that is undecided counts what this node said before it
    /// lost its memory.
    ///
    /// What the node has said since then does not count, so all that counts is from before.
    fn is_counted_from_before(&self, state: &State, node: usize) -> bool {
        state.clients[..self.scope.clients()]
            .iter()
            .any(|client| client.is_undecided() && client.counts(node))
    }

    /// An acquire arrives.
    pub(crate) fn acquire(
        &self,
        state: &mut State,
        client: usize,
        node: usize,
    ) -> Result<(), Breach> {
        let (place, asking) = (&mut state.nodes[node], &mut state.clients[client]);
        asking.at[node] = Exchange::Over;
        if place.key.is_some() && !self.pruned {
            return Ok(());
        }
        let counter = self.number(self.protocol.grant(place, asking.proposal))?;
        place.key = u8::try_from(client).ok();
        place.counter = counter;
        if self.protocol.counts(place) {
            asking.at[node] = match asking.phase {
                Phase::Acquiring => Exchange::Vote(counter),
                // It is asked to confirm with the others.
                Phase::WritingBack if self.protocol.joins(counter, asking.token) => {
                    Exchange::Writing
                }
                _ => Exchange::Over,
            };
        }
        Ok(())
    }

    /// A write-back arrives.
    pub(crate) fn write_back(&self, state: &mut State, client: usize, node: usize) {
        let (place, asking) = (&mut state.nodes[node], &mut state.clients[client]);
        let stores =
            place.is_held_by(client) || self.protocol.breaks(Mutation::WriteBackWithoutKey);
        if stores || self.protocol.breaks(Mutation::RaiseWithoutKey) {
            place.counter = place.counter.max(asking.token);
        }
        let confirms = stores && self.protocol.counts(place);
        asking.at[node] = if confirms && asking.phase == Phase::WritingBack {
            Exchange::Stored
        } else {
            Exchange::Over
        };
    }

    /// Attempts from before the loss are decided, so the node's floor can be looked for.
    pub(crate) fn end_quarantine(&self, state: &mut State, node: usize) {
        if self.pruned {
            for client in &mut state.clients[..self.scope.clients()] {
                client.lose(node);
            }
        }
        state.nodes[node].standing = if self.protocol.breaks(Mutation::NoSeed) {
            Standing::Voting
        } else {
            Standing::Aged
        };
    }

    /// A survey on behalf of `node` reads another, or the node itself.
    pub(crate) fn read(&self, state: &mut State, node: usize, of: usize) {
        let source = &state.nodes[of];
        let known = if self.protocol.breaks(Mutation::FloorUnread) {
            source.counter
        } else {
            source.known()
        };
        state.nodes[node].readings[of] = Some(Reading {
            voting: source.standing == Standing::Voting,
            known,
        });
    }

    /// The node is given its floor, and votes again.
    pub(crate) fn open(&self, state: &mut State, node: usize, floor: u64) -> Result<(), Breach> {
        let floor = self.number(floor)?;
        let node = &mut state.nodes[node];
        node.floor = floor;
        node.standing = Standing::Voting;
        node.readings = Node::default().readings;
        Ok(())
    }
}

impl Node {
    pub(crate) fn is_held_by(&self, client: usize) -> bool {
        self.key.map(usize::from) == Some(client)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scope;

    fn rules() -> Rules {
        Rules::new(Scope::new(3, 2, 1, 3).unwrap(), None, false)
    }

    /// After these steps.
    fn after(steps: &[Step]) -> State {
        let rules = rules();
        steps.iter().fold(State::default(), |state, step| {
            let mut offered = false;
            rules.steps(&state, |other| offered |= other == *step);
            assert!(offered, "{step:?}");
            let (next, breach) = rules.apply(&state, *step);
            assert_eq!(breach, None, "{step:?}");
            next
        })
    }

    const START: Step = Step::Start {
        client: 0,
        proposal: 2,
    };

    fn acquire(node: usize) -> Step {
        Step::Acquire { client: 0, node }
    }

    #[test]
    fn an_acquire_that_arrives_late_raises_the_counter_but_is_no_vote() {
        let state = after(&[START, Step::Fail { client: 0 }, acquire(1)]);
        assert_eq!(state.nodes[1].counter, 2);
        assert_eq!(state.nodes[1].key, Some(0));
        assert_eq!(state.clients[0].at[1], Exchange::Over);
    }

    #[test]
    fn a_grant_in_quarantine_raises_the_counter_but_is_no_vote() {
        let state = after(&[START, Step::Crash { node: 1 }, acquire(1)]);
        assert_eq!(state.nodes[1].counter, 2);
        assert_eq!(state.clients[0].at[1], Exchange::Over);
    }

    #[test]
    fn a_quarantine_ends_once_nothing_counts_from_before() {
        let crash = Step::Crash { node: 1 };
        let state = after(&[START, acquire(1), crash]);
        let mut ends = false;
        rules().steps(&state, |step| {
            ends |= step == Step::EndQuarantine { node: 1 };
        });
        assert!(!ends, "a vote from before still counts");

        let lose = Step::Lose { client: 0, node: 1 };
        after(&[
            START,
            acquire(1),
            crash,
            lose,
            Step::EndQuarantine { node: 1 },
        ]);
        let fail = Step::Fail { client: 0 };
        after(&[
            START,
            acquire(1),
            crash,
            fail,
            Step::EndQuarantine { node: 1 },
        ]);
    }
}
