//! What can happen in a state, and what is true afterwards.

use crate::{
    Breach, Mutation, Scope,
    protocol::Protocol,
    state::{Phase, State},
    step::Step,
};

/// The rules of the world.
#[derive(Debug)]
pub(crate) struct Rules {
    pub(crate) scope: Scope,
    pub(crate) protocol: Protocol,
    /// Whether the search takes the shorter ways that the module `pruning` describes.
    pub(crate) pruned: bool,
}

impl Rules {
    pub(crate) fn new(scope: Scope, mutation: Option<Mutation>, pruned: bool) -> Self {
        Self {
            scope,
            protocol: Protocol::new(scope, mutation),
            pruned,
        }
    }

    /// Tells all that can happen next; the same step may be told more than once.
    pub(crate) fn steps(&self, state: &State, mut tell: impl FnMut(Step)) {
        if self.pruned {
            if self.is_over(state) {
                return;
            }
            if let Some(client) = self.first_that_can_finish(state) {
                return tell(Step::Finish { client });
            }
        }
        for client in 0..self.scope.clients() {
            self.steps_of_client(state, client, &mut tell);
        }
        for node in 0..self.scope.nodes() {
            self.steps_of_node(state, node, &mut tell);
        }
    }

    /// What is true after a step, and whether that must never be.
    pub(crate) fn apply(&self, state: &State, step: Step) -> (State, Option<Breach>) {
        let mut next = *state;
        match self.take(&mut next, step) {
            Err(breach) => (next, Some(breach)),
            Ok(()) => {
                if self.pruned {
                    self.forget(&mut next);
                }
                (next, None)
            }
        }
    }

    fn take(&self, state: &mut State, step: Step) -> Result<(), Breach> {
        match step {
            Step::Start { client, proposal } => self.start(state, client, proposal),
            Step::Acquire { client, node } => self.acquire(state, client, node)?,
            Step::Lose { client, node } => state.clients[client].lose(node),
            Step::Settle {
                client,
                counted,
                token,
                write_back,
            } => self.settle(state, client, counted, token, write_back)?,
            Step::WriteBack { client, node } => self.write_back(state, client, node),
            Step::Finish { client } => self.finish(state, client)?,
            Step::Fail { client } => state.clients[client].give_up(),
            Step::Expire { node } => state.nodes[node].key = None,
            Step::Crash { node } => state.crash(node),
            Step::EndQuarantine { node } => self.end_quarantine(state, node),
            Step::Read { node, of } => self.read(state, node, of),
            Step::Open { node, floor } => self.open(state, node, floor)?,
        }
        Ok(())
    }

    /// The number as it is kept in a state.
    pub(crate) fn number(&self, number: u64) -> Result<u8, Breach> {
        u8::try_from(number)
            .ok()
            .filter(|number| *number <= self.scope.greatest())
            .ok_or(Breach::OutOfBounds { number })
    }

    /// Whether no client is left that could get a token.
    pub(crate) fn is_over(&self, state: &State) -> bool {
        state.clients[..self.scope.clients()]
            .iter()
            .all(|client| matches!(client.phase, Phase::Done | Phase::Failed))
    }
}
