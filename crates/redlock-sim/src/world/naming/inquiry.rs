use redlock_proto::Statement;

use super::{
    super::World,
    informants::{of_node, told},
    messages::{Message, Recipient},
    session::{Inquiry, Stage},
};
use crate::setup::{INFORMANTS, Micros, SECOND, micros};

impl World {
    /// A client asks all informants of a node at once.
    pub(super) fn inquire(&mut self, link: usize) {
        let asked_at = self.instant(link);
        let conn = self.links[link].conn;
        let Some(session) = &mut self.links[link].session else {
            return;
        };
        let inquiry = session.inquiry.number + 1;
        session.inquiry = Inquiry::new(inquiry, asked_at);
        if let Stage::Rereads { .. } | Stage::Joins { .. } | Stage::Writes { .. } = session.stage {
            // The server has not answered in time.
            session.stage = Stage::Open;
        }
        let to = Recipient { link, conn };
        for informant in 0..INFORMANTS {
            if !self.loses_message() {
                let at = self.now + self.delay();
                let question = Message::Question {
                    to,
                    inquiry,
                    informant,
                };
                self.send(at, question);
            }
        }
        let at = self.now + self.time_to_answer();
        self.have_client_do(at, link, Message::Over { conn, inquiry });
    }

    /// A client asks again a second after its last inquiry, unless it has done so before.
    pub(super) fn inquire_again(&mut self, link: usize, after: u32) {
        let session = self.links[link].session.as_ref();
        if session.is_some_and(|session| session.inquiry.number == after) {
            self.inquire(link);
        }
    }

    /// A question reaches an informant, which answers what it names at that moment.
    pub(super) fn on_question(&mut self, to: Recipient, inquiry: u32, informant: usize) {
        let Recipient { link, conn } = to;
        let (client, node) = self.ends(link);
        let informants = &self.naming.nodes[node];
        let is_still = informants.all[informant].still_until > self.now;
        let is_deaf = informants.deaf[client][informant] > self.now;
        if is_still || is_deaf || self.loses_message() {
            return;
        }
        let statement = self.statement(node, informant);
        let at = self.now + self.delay();
        let names = statement.names;
        self.trace.line(self.now, || {
            let pair = names.map(|pair| told(of_node(pair, self.setup.nodes)));
            let pair = pair.unwrap_or_else(|| "none, because it leads a failover".to_owned());
            format!("informant {informant} of node {node} answers client {client}: {pair}")
        });
        let statement = Message::Statement {
            conn,
            inquiry,
            statement,
        };
        self.send_to_client(at, link, statement);
    }

    /// A client hears an informant.
    pub(super) fn on_statement(&mut self, link: usize, inquiry: u32, statement: Statement<usize>) {
        let Some(session) = &mut self.links[link].session else {
            return;
        };
        let present = &mut session.inquiry;
        if present.number != inquiry || present.is_complete {
            return;
        }
        present.hearing.hear(statement);
        if present.hearing.ids().count() == INFORMANTS {
            self.complete(link);
        } else {
            self.look_for_pair(link);
        }
    }

    /// The informants that have not answered have had their time.
    pub(super) fn on_inquiry_over(&mut self, link: usize, inquiry: u32) {
        let session = self.links[link].session.as_ref();
        let is_present = |present: &Inquiry| present.number == inquiry && !present.is_complete;
        if session.is_some_and(|session| is_present(&session.inquiry)) {
            self.complete(link);
        }
    }

    /// An inquiry is complete: the next one begins a second later.
    fn complete(&mut self, link: usize) {
        let conn = self.links[link].conn;
        let Some(session) = &mut self.links[link].session else {
            return;
        };
        session.inquiry.is_complete = true;
        let at = self.now + SECOND;
        let is_open = session.tenure.is_some();
        let after = session.inquiry.number;
        self.have_client_do(at, link, Message::Inquire { conn, after });
        if is_open {
            self.on_round(link);
        } else if !self.ask_again_later(link) {
            self.look_for_pair(link);
            self.judge_by_all(link);
        }
    }

    /// Returns whether a question or an answer is lost on its way.
    fn loses_message(&mut self) -> bool {
        let lost = self.setup.named.map_or(0, |named| named.lost);
        self.phase.is_faulty() && self.random.chance(lost)
    }

    /// Returns how long an informant may take to answer.
    fn time_to_answer(&self) -> Micros {
        micros(self.setup.link.connect_timeout) / 2
    }
}
