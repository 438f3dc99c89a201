use std::sync::Arc;

use redlock_proto::{HELLO, Hearing, Judgement, Mark, Pair, Roll};

use super::{
    super::{World, agenda::Due},
    informants::{of_node, told},
    messages::{MarkAnswer, MarkVerb},
    session::{Session, Stage, Tenure},
};
use crate::setup::MS;

impl World {
    /// A client asks the informants of a node before it connects to a server.
    pub(in super::super) fn begin_session(&mut self, link: usize) {
        self.links[link].session = Some(Box::new(Session::new()));
        self.inquire(link);
    }

    /// A client that waits for a pair takes one that a majority names, or the best of all answers.
    pub(super) fn look_for_pair(&mut self, link: usize) {
        let Some(session) = &mut self.links[link].session else {
            return;
        };
        if !matches!(session.stage, Stage::Asks) {
            return;
        }
        let hearing = &session.inquiry.hearing;
        let is_complete = session.inquiry.is_complete;
        let is_enough = |pair: &Pair<usize>| hearing.support(pair) > hearing.count() / 2;
        let pair = hearing
            .candidate()
            .filter(|pair| is_complete || is_enough(pair));
        match pair {
            Some(pair) => {
                session.stage = Stage::Reads { pair };
                self.ask_for_mark(link, pair.server, MarkVerb::Read);
            }
            None if is_complete => {
                self.counters.no_majorities += 1;
                self.give_up_session(link, "the informants name no server");
            }
            None => {}
        }
    }

    /// A client that does not have its tenure yet hears of the server's mark.
    pub(super) fn on_first_mark(&mut self, link: usize, answer: MarkAnswer) {
        let Some(session) = &mut self.links[link].session else {
            return;
        };
        let stage = std::mem::replace(&mut session.stage, Stage::Asks);
        match (stage, answer) {
            (Stage::Reads { pair }, MarkAnswer::Text(text)) => {
                session.stage = Stage::Hears { pair, text };
                self.judge(link);
            }
            (Stage::ReadsAgain { pair, steady }, MarkAnswer::Text(text)) => {
                let judgement = self.judge_by(link, &steady, pair, text.as_deref());
                self.follow(link, pair, judgement, text);
            }
            (Stage::Deletes { pair, roll }, MarkAnswer::Swapped(true)) => {
                self.counters.rolls_replaced += 1;
                self.open(link, pair, roll);
            }
            _ => self.give_up_session(link, "the server does not say what its mark is"),
        }
    }

    /// A client that has read the mark, and waited for all answers, has them.
    pub(super) fn judge_by_all(&mut self, link: usize) {
        let session = self.links[link].session.as_ref();
        if session.is_some_and(|session| matches!(session.stage, Stage::Hears { .. })) {
            self.judge(link);
        }
    }

    /// A client that had to ask again has all answers; returns whether it did.
    pub(super) fn ask_again_later(&mut self, link: usize) -> bool {
        let Some(session) = &mut self.links[link].session else {
            return false;
        };
        let Stage::AsksAgain { pair, earlier } = &session.stage else {
            return false;
        };
        let (pair, steady) = (*pair, session.inquiry.hearing.steady(earlier));
        // A mark that another client has begun meanwhile may list fewer than have answered by now.
        session.stage = Stage::ReadsAgain { pair, steady };
        self.ask_for_mark(link, pair.server, MarkVerb::Read);
        true
    }

    /// A client that has read the mark decides whether it counts on the server.
    fn judge(&mut self, link: usize) {
        let Some(session) = &self.links[link].session else {
            return;
        };
        let Stage::Hears { pair, text } = &session.stage else {
            return;
        };
        let (pair, text) = (*pair, text.clone());
        let hearing = session.inquiry.hearing.clone();
        let is_complete = session.inquiry.is_complete;
        let judgement = self.judge_by(link, &hearing, pair, text.as_deref());
        match judgement {
            Judgement::Counts(_) => {}
            _ if !is_complete => return,
            Judgement::AsksAgain => {
                if let Some(session) = &mut self.links[link].session {
                    let earlier = hearing;
                    session.stage = Stage::AsksAgain { pair, earlier };
                    self.counters.asked_again += 1;
                }
                return self.inquire(link);
            }
            _ => {}
        }
        self.follow(link, pair, judgement, text);
    }

    /// Judges the server by its mark; without one, by the roll that the client has gone by last, if that is enough.
    fn judge_by(
        &self,
        link: usize,
        hearing: &Hearing<usize>,
        pair: Pair<usize>,
        text: Option<&str>,
    ) -> Judgement {
        let (client, _) = self.ends(link);
        let of_client = self.setup.space_of(client);
        if let (None, Some(known)) = (text, &self.links[link].last_roll)
            && let Judgement::Counts(roll) = hearing.judge(&pair, Some(known))
        {
            return Judgement::Counts(roll);
        }
        let mark = text.and_then(Mark::read);
        let mark = mark.filter(|mark| mark.has_policy_of(of_client));
        let stored = mark.and_then(|mark| mark.term().map(|term| term.roll.clone()));
        hearing.judge(&pair, stored.as_ref())
    }

    /// A client does what it has decided.
    fn follow(
        &mut self,
        link: usize,
        pair: Pair<usize>,
        judgement: Judgement,
        text: Option<String>,
    ) {
        match judgement {
            Judgement::Counts(roll) => {
                self.counters.rolls_kept += u64::from(text.is_none());
                self.open(link, pair, roll);
            }
            Judgement::Lists(roll) => {
                self.counters.rolls_begun += 1;
                self.open(link, pair, roll);
            }
            Judgement::Relists(roll) => {
                if let Some(session) = &mut self.links[link].session {
                    session.stage = Stage::Deletes { pair, roll };
                }
                let expected = text.unwrap_or_default();
                let roll = None;
                self.ask_for_mark(link, pair.server, MarkVerb::Swap { expected, roll });
            }
            Judgement::AsksAgain => self.give_up_session(link, "the informants do not agree yet"),
            Judgement::Refused(_) => {
                self.counters.not_counted_on += 1;
                self.give_up_session(link, "the server is not counted on");
            }
        }
    }

    /// A client has a session with a server under a pair, and makes its first call.
    fn open(&mut self, link: usize, pair: Pair<usize>, roll: Roll) {
        let (client, node) = self.ends(link);
        self.trace.line(self.now, || {
            let pair = told(of_node(pair, self.setup.nodes));
            format!("client {client} has a session with node {node}: {pair}, roll {roll}")
        });
        let of_client = self.setup.space_of(client);
        let this = &mut self.links[link];
        let Some(session) = &mut this.session else {
            return;
        };
        let asked_at = session.inquiry.asked_at;
        this.last_roll = Some(roll.clone());
        session.tenure = Some(Tenure::new(of_client, pair, roll, asked_at));
        session.stage = Stage::Open;
        if this.server != pair.server {
            this.server = pair.server;
            this.rerouted = Some(self.now);
        }
        if let Some(reason) = self.refusal(link) {
            return self.give_up_session(link, &reason);
        }
        if self.servers[pair.server].is_up {
            self.send_call(link, None, HELLO.to_vec(), false);
        } else {
            let conn = self.links[link].conn;
            self.links[link].is_severed = true;
            self.agenda.add(self.now + MS, Due::Lost { link, conn });
        }
    }

    /// A client does not connect.
    fn give_up_session(&mut self, link: usize, why: &str) {
        let (client, node) = self.ends(link);
        self.trace.line(self.now, || {
            format!("client {client} does not connect to node {node}: {why}")
        });
        let now = self.instant(link);
        self.links[link].machine.on_lost(Arc::from(why), now);
        self.carry_out(link);
    }
}
