//! Shorter ways to the same breaches.
//!
//! The plain search takes each step on its own and keeps all that is true.
//! Much of that cannot help to break anything: whatever goes wrong after it goes wrong without it too.
//! The pruned search leaves it out, which makes it smaller by orders of magnitude:
//!
//! - *Keys expire when another client asks.* Until then an expired key does nothing that a key does not,
//!   and a key can do more. So there is no step for it, and a grant ends the key that was there.
//! - *No request is refused.* A refusal changes nothing on the node and ends what could have come of the
//!   request, which is on its way for as long as it takes.
//! - *No client fails, and no reply is lost on its own.* A client that settles chooses which votes have
//!   reached it; the end of a quarantine takes with it what still counted from before. A client that fails
//!   is one that never settles: its requests arrive all the same.
//! - *A client finishes with the last confirmation it needs.* Later, it would be followed by fewer that
//!   must get a greater token.
//! - *What can no longer matter is forgotten*: the key of a client that cannot use it any more, the
//!   votes of a client that can get no majority, and all of a world whose clients have finished.
//!
//! `tests/reduction.rs` compares the verdicts of both searches.

use crate::{
    Mutation,
    rules::Rules,
    state::{Client, Exchange, Phase, State},
};

impl Rules {
    /// Makes one state of those that differ only in what cannot matter any more.
    pub(crate) fn forget(&self, state: &mut State) {
        let State { nodes, clients, .. } = state;
        for (number, client) in clients[..self.scope.clients()].iter_mut().enumerate() {
            if !self.writes_without_key() {
                for (exchange, node) in client.at.iter_mut().zip(&*nodes) {
                    if *exchange == Exchange::Writing && !node.is_held_by(number) {
                        *exchange = Exchange::Over;
                    }
                }
            }
            self.forget_hopeless(client);
            client.forget_numbers();
        }
        for (number, node) in nodes[..self.scope.nodes()].iter_mut().enumerate() {
            let used = |client: &u8| self.uses_key(&clients[usize::from(*client)], number);
            node.key = node.key.filter(used);
        }
        if self.is_over(state) {
            *state = State::default();
            for client in &mut state.clients[..self.scope.clients()] {
                client.phase = Phase::Failed;
            }
        }
    }

    /// Whether a write-back does something where the attempt has no key.
    fn writes_without_key(&self) -> bool {
        self.protocol.breaks(Mutation::WriteBackWithoutKey)
            || self.protocol.breaks(Mutation::RaiseWithoutKey)
    }

    /// A client that can get no majority has failed.
    fn forget_hopeless(&self, client: &mut Client) {
        let hope = match client.phase {
            Phase::Acquiring => client.nodes(|at| at.is_vote() || at == Exchange::Asked),
            Phase::WritingBack => client
                .nodes(|at| at.is_stored() || matches!(at, Exchange::Writing | Exchange::Asked)),
            Phase::Idle | Phase::Done | Phase::Failed => return,
        };
        if !self.protocol.is_won(hope) {
            client.give_up();
        }
    }

    /// Whether it can still matter to this client that it has the key of this node.
    fn uses_key(&self, client: &Client, node: usize) -> bool {
        match client.at[node] {
            Exchange::Vote(_) | Exchange::Writing => true,
            Exchange::Over => {
                self.protocol.breaks(Mutation::WriteBackUncounted)
                    && client.phase == Phase::Acquiring
            }
            Exchange::Asked | Exchange::Stored => false,
        }
    }
}

impl Client {
    /// Numbers that it will not send any more.
    fn forget_numbers(&mut self) {
        if self.phase != Phase::Idle && !self.at.contains(&Exchange::Asked) {
            self.proposal = 0;
        }
        if self.phase == Phase::Failed && !self.at.contains(&Exchange::Writing) {
            self.token = 0;
        }
    }
}
