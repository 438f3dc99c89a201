//! What clients do.

use crate::{
    Breach, Mutation,
    rules::Rules,
    state::{Client, Exchange, NodeSet, Phase, State},
    step::Step,
};

impl Rules {
    pub(crate) fn steps_of_client(
        &self,
        state: &State,
        client: usize,
        tell: &mut impl FnMut(Step),
    ) {
        let what = &state.clients[client];
        for (node, exchange) in what.at[..self.scope.nodes()].iter().enumerate() {
            match exchange {
                Exchange::Asked => tell(Step::Acquire { client, node }),
                Exchange::Writing => tell(Step::WriteBack { client, node }),
                Exchange::Vote(_) | Exchange::Stored if !self.pruned => {
                    tell(Step::Lose { client, node });
                }
                _ => {}
            }
        }
        match what.phase {
            Phase::Idle => {
                for proposal in 1..=self.scope.proposals() {
                    tell(Step::Start { client, proposal });
                }
            }
            Phase::Acquiring => self.settlements(client, what, tell),
            Phase::WritingBack => {
                if self.protocol.is_won(what.nodes(Exchange::is_stored)) {
                    tell(Step::Finish { client });
                }
            }
            Phase::Done | Phase::Failed => {}
        }
        if what.is_undecided() && !self.pruned {
            tell(Step::Fail { client });
        }
    }

    /// What the client can conclude from the votes it has.
    fn settlements(&self, client: usize, what: &Client, tell: &mut impl FnMut(Step)) {
        let votes = what.nodes(Exchange::is_vote);
        // Where losing a reply is a step of its own, all that are left are counted.
        let choices = if self.pruned { NodeSet::COUNT } else { 1 };
        for counted in votes.subsets().take(choices) {
            if !self.protocol.is_won(counted) {
                continue;
            }
            self.protocol
                .settle(counted, &what.at, |token, write_back| {
                    tell(Step::Settle {
                        client,
                        counted,
                        token,
                        write_back,
                    });
                });
        }
    }

    /// A client whose token a majority has confirmed.
    pub(crate) fn first_that_can_finish(&self, state: &State) -> Option<usize> {
        (0..self.scope.clients()).find(|client| {
            let client = &state.clients[*client];
            client.phase == Phase::WritingBack
                && self.protocol.is_won(client.nodes(Exchange::is_stored))
        })
    }

    /// The client sends its acquires.
    pub(crate) fn start(&self, state: &mut State, client: usize, proposal: u8) {
        let before = self.done(state).map(|(_, token)| token).max();
        let client = &mut state.clients[client];
        client.phase = Phase::Acquiring;
        client.proposal = proposal;
        client.before = before.unwrap_or_default();
        client.at[..self.scope.nodes()].fill(Exchange::Asked);
    }

    /// The client knows its token, and writes it back if it must.
    pub(crate) fn settle(
        &self,
        state: &mut State,
        client: usize,
        counted: NodeSet,
        token: u64,
        write_back: Option<NodeSet>,
    ) -> Result<(), Breach> {
        let token = self.number(token)?;
        let what = &mut state.clients[client];
        what.phase = Phase::WritingBack;
        what.token = token;
        let nodes = write_back.unwrap_or_default();
        for (node, exchange) in what.at.iter_mut().enumerate() {
            let confirmed = self.protocol.breaks(Mutation::VoteConfirms)
                && counted.contains(node)
                && *exchange == Exchange::Vote(token);
            *exchange = match *exchange {
                Exchange::Asked => Exchange::Asked,
                _ if nodes.contains(node) && confirmed => Exchange::Stored,
                _ if nodes.contains(node) => Exchange::Writing,
                // It has come, and is heard of later than the others.
                Exchange::Vote(counter) if self.protocol.joins(counter, token) => Exchange::Writing,
                _ => Exchange::Over,
            };
        }
        match write_back {
            None => self.finish(state, client),
            Some(_) => Ok(()),
        }
    }

    /// The client has its token; is that one in order?
    pub(crate) fn finish(&self, state: &mut State, client: usize) -> Result<(), Breach> {
        let Client { token, before, .. } = state.clients[client];
        let same = self.done(state).find(|(_, other)| *other == token);
        let what = &mut state.clients[client];
        what.phase = Phase::Done;
        what.before = 0;
        for node in 0..self.scope.nodes() {
            what.lose(node);
        }
        if token <= before {
            return Err(Breach::NotGreater {
                client,
                token,
                before,
            });
        }
        match same {
            Some((first, token)) => Err(Breach::Repeated {
                first,
                second: client,
                token,
            }),
            None => Ok(()),
        }
    }

    /// The clients that have a token, with it.
    fn done<'a>(&self, state: &'a State) -> impl Iterator<Item = (usize, u8)> + use<'a> {
        let clients = state.clients[..self.scope.clients()].iter().enumerate();
        clients
            .filter(|(_, client)| client.phase == Phase::Done)
            .map(|(number, client)| (number, client.token))
    }
}

impl Client {
    /// Whether it counts, or may still come to count, what the node has answered.
    pub(crate) fn counts(&self, node: usize) -> bool {
        matches!(self.at[node], Exchange::Vote(_) | Exchange::Stored)
    }

    /// Whatever the node has answered, it does not count.
    pub(crate) fn lose(&mut self, node: usize) {
        if self.counts(node) {
            self.at[node] = Exchange::Over;
        }
    }

    /// It will never have a token; what it has sent may still arrive.
    pub(crate) fn give_up(&mut self) {
        self.phase = Phase::Failed;
        self.before = 0;
        for node in 0..self.at.len() {
            self.lose(node);
        }
    }
}
