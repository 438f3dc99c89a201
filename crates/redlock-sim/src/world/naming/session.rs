use std::sync::Arc;

use redlock_proto::{Hearing, Instant, Keyspace, Mark, NamedMark, Pair, Quarantine, Roll};

use super::super::World;
use crate::setup::INFORMANTS;

/// What a client knows of the server to which it connects, or has a connection.
#[derive(Debug)]
pub(in super::super) struct Session {
    pub(super) stage: Stage,
    /// The present inquiry.
    pub(super) inquiry: Inquiry,
    /// How many questions about the mark there were.
    pub(super) marks: u32,
    /// There is one once the server is counted on.
    pub(super) tenure: Option<Tenure>,
    /// The answers of the inquiry before.
    pub(super) earlier: Option<Hearing<usize>>,
}

/// The answers that a client has heard since it asked last.
#[derive(Clone, Debug)]
pub(super) struct Inquiry {
    pub(super) number: u32,
    /// On the client's clock, before the first question was sent.
    pub(super) asked_at: Instant,
    pub(super) hearing: Hearing<usize>,
    /// Each informant has answered, or had its time.
    pub(super) is_complete: bool,
}

/// How far a session is.
#[derive(Debug)]
pub(super) enum Stage {
    /// It waits for a pair.
    Asks,
    /// It reads the mark of the server.
    Reads { pair: Pair<usize> },
    /// It has read the mark, and waits for all answers.
    Hears {
        pair: Pair<usize>,
        text: Option<String>,
    },
    /// It asks all informants once more, because a roll must begin.
    AsksAgain {
        pair: Pair<usize>,
        earlier: Hearing<usize>,
    },
    /// It reads the mark once more, and has these answers.
    ReadsAgain {
        pair: Pair<usize>,
        steady: Hearing<usize>,
    },
    /// It deletes the mark, so that this roll begins.
    Deletes { pair: Pair<usize>, roll: Roll },
    /// It has a tenure.
    Open,
    /// It has a tenure, and reads the mark because its own roll does not confirm it.
    Rereads { of: Inquiry },
    /// It has a tenure, and reads the mark to put informants on its roll.
    Joins { of: Inquiry, steady: Hearing<usize> },
    /// It has a tenure, and writes the mark with this roll.
    Writes { of: Inquiry, roll: Roll },
}

/// Under which pair a client sends to a server, and whether it may.
#[derive(Debug)]
pub(super) struct Tenure {
    pub(super) pair: Pair<usize>,
    pub(super) roll: Roll,
    /// With the term.
    keyspace: Arc<Keyspace>,
    pub(super) confirmed: Confirmed,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Confirmed {
    /// A majority named the pair in answer to a question of this moment.
    At(Instant),
    /// A majority names another pair.
    Replaced,
}

impl Session {
    pub(super) fn new() -> Self {
        Self {
            stage: Stage::Asks,
            inquiry: Inquiry::new(0, Instant::ORIGIN),
            marks: 0,
            tenure: None,
            earlier: None,
        }
    }
}

impl Inquiry {
    pub(super) const fn new(number: u32, asked_at: Instant) -> Self {
        Self {
            number,
            asked_at,
            hearing: Hearing::of_all(INFORMANTS),
            is_complete: false,
        }
    }
}

impl Tenure {
    pub(super) fn new(
        of_client: &Keyspace,
        pair: Pair<usize>,
        roll: Roll,
        asked_at: Instant,
    ) -> Self {
        Self {
            keyspace: in_term(of_client, pair, &roll),
            pair,
            roll,
            confirmed: Confirmed::At(asked_at),
        }
    }

    pub(super) fn set_roll(&mut self, of_client: &Keyspace, roll: Roll) {
        self.keyspace = in_term(of_client, self.pair, &roll);
        self.roll = roll;
    }

    /// Returns the roll of a mark, if that is of this tenure's epoch.
    pub(super) fn roll_of(&self, of_client: &Keyspace, text: Option<&str>) -> Option<Roll> {
        let mark = Mark::read(text?)?;
        let term = mark.term()?;
        let is_its = term.epoch == self.pair.epoch && mark.has_policy_of(of_client);
        is_its.then(|| term.roll.clone())
    }

    /// Returns why nothing may be sent at `now`, if nothing may be.
    fn refusal(&self, now: Instant) -> Option<&'static str> {
        match self.confirmed {
            Confirmed::At(asked_at) => {
                let age = now.saturating_since(asked_at);
                (age > Quarantine::FOLLOWED_WITHIN).then_some("no majority has confirmed it")
            }
            Confirmed::Replaced => Some("a majority names another pair"),
        }
    }
}

fn in_term(of_client: &Keyspace, pair: Pair<usize>, roll: &Roll) -> Arc<Keyspace> {
    let (epoch, roll) = (pair.epoch, roll.clone());
    Arc::new(of_client.in_term(NamedMark { epoch, roll }))
}

impl World {
    /// Returns why a call must not be sent over a link, if others name its server and it must not.
    pub(in super::super) fn refusal(&self, link: usize) -> Option<Arc<str>> {
        let tenure = self.links[link].session.as_ref()?.tenure.as_ref()?;
        tenure.refusal(self.instant(link)).map(Arc::from)
    }

    /// A call is not sent because its session is not confirmed.
    pub(in super::super) fn refuse_call(&mut self, link: usize, call: u64, reason: &Arc<str>) {
        self.counters.unconfirmed += 1;
        let (client, node) = self.ends(link);
        self.trace.line(self.now, || {
            format!("client {client} sends nothing to node {node}: {reason}")
        });
        let now = self.instant(link);
        let error = redlock_proto::RequestError::not_executed(Arc::clone(reason));
        let machine = &mut self.links[link].machine;
        machine.on_call_failed(call, &error, false, now);
        machine.on_wrong_server(Arc::clone(reason), now);
    }

    /// Returns the keyspace of calls over a link, with the term of its session if it has one.
    pub(in super::super) fn keyspace_of(&self, link: usize) -> Option<Arc<Keyspace>> {
        let tenure = self.links[link].session.as_ref()?.tenure.as_ref()?;
        Some(Arc::clone(&tenure.keyspace))
    }
}
