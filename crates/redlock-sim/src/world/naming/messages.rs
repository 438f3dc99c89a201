use std::collections::HashMap;

use redlock_proto::{InformantId, Pair, Roll, Statement};

use super::super::{World, agenda::Due};
use crate::{fault::Failover, setup::Micros};

/// What is on its way to informants, servers and clients.
#[derive(Debug, Default)]
pub(super) struct Messages {
    sent: HashMap<u32, Message>,
    next: u32,
}

/// Something that is due.
#[derive(Debug)]
pub(super) enum Message {
    /// An informant tells the others of its pair.
    Hello { node: usize, informant: usize },
    /// The leader of a failover promotes the other server.
    Promotes {
        node: usize,
        leader: usize,
        id: InformantId,
        epoch: u64,
        failover: Failover,
    },
    /// The leader of a failover names the server that it has promoted.
    Ends {
        node: usize,
        leader: usize,
        pair: Pair<usize>,
    },
    /// An informant makes the server that it does not name a replica.
    Demotes { node: usize, informant: usize },
    /// A client's question reaches an informant.
    Question {
        to: Recipient,
        inquiry: u32,
        informant: usize,
    },
    /// A client's question about a mark reaches the server.
    Mark {
        to: Recipient,
        number: u32,
        server: usize,
        verb: MarkVerb,
    },
    /// A client hears an informant.
    Statement {
        conn: u32,
        inquiry: u32,
        statement: Statement<usize>,
    },
    /// A client hears of a mark.
    Marked {
        conn: u32,
        number: u32,
        answer: MarkAnswer,
    },
    /// An inquiry has had its time.
    Over { conn: u32, inquiry: u32 },
    /// A client begins the inquiry after this one.
    Inquire { conn: u32, after: u32 },
}

/// Where an answer goes: a link of a client, if it still has this connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Recipient {
    pub(super) link: usize,
    pub(super) conn: u32,
}

/// What a client asks a server about its mark.
#[derive(Debug)]
pub(super) enum MarkVerb {
    Read,
    /// Replaces the roll if the mark is still this text, or deletes the mark if there is no roll.
    Swap {
        expected: String,
        roll: Option<Roll>,
    },
}

/// What a server answers about its mark.
#[derive(Debug)]
pub(super) enum MarkAnswer {
    Text(Option<String>),
    Swapped(bool),
    /// It is down, or a replica.
    Refused,
}

impl Messages {
    fn add(&mut self, message: Message) -> u32 {
        let number = self.next;
        self.next += 1;
        self.sent.insert(number, message);
        number
    }

    fn take(&mut self, number: u32) -> Option<Message> {
        self.sent.remove(&number)
    }
}

impl World {
    /// Makes something due that does not wait for a client.
    pub(super) fn send(&mut self, at: Micros, message: Message) {
        let message = self.naming.messages.add(message);
        self.agenda.add(at, Due::Naming { message });
    }

    /// Makes something due that a client hears.
    pub(super) fn send_to_client(&mut self, at: Micros, link: usize, message: Message) {
        let message = self.naming.messages.add(message);
        self.agenda.add(at, Due::Told { link, message });
    }

    /// Makes something due that a client does by its own timer.
    pub(super) fn have_client_do(&mut self, at: Micros, link: usize, message: Message) {
        let message = self.naming.messages.add(message);
        self.agenda.add(at, Due::Watch { link, message });
    }

    pub(in super::super) fn on_naming(&mut self, message: u32) {
        match self.naming.messages.take(message) {
            Some(Message::Hello { node, informant }) => self.on_hello(node, informant),
            Some(Message::Promotes {
                node,
                leader,
                id,
                epoch,
                failover,
            }) => self.on_promotion((node, leader), (id, epoch), failover),
            Some(Message::Ends { node, leader, pair }) => self.on_failover_end(node, leader, pair),
            Some(Message::Demotes { node, informant }) => self.demote(node, informant),
            Some(Message::Question {
                to,
                inquiry,
                informant,
            }) => self.on_question(to, inquiry, informant),
            Some(Message::Mark {
                to,
                number,
                server,
                verb,
            }) => self.on_mark_call(to, number, server, verb),
            _ => {}
        }
    }

    pub(in super::super) fn on_told(&mut self, link: usize, message: u32) {
        let Some(message) = self.naming.messages.take(message) else {
            return;
        };
        let (client, _) = self.ends(link);
        let (Message::Statement { conn, .. }
        | Message::Marked { conn, .. }
        | Message::Over { conn, .. }
        | Message::Inquire { conn, .. }) = message
        else {
            return;
        };
        if self.links[link].conn != conn || self.links[link].session.is_none() {
            return;
        }
        match message {
            Message::Statement {
                inquiry, statement, ..
            } => self.on_statement(link, inquiry, statement),
            Message::Marked { number, answer, .. } => self.on_marked(link, number, answer),
            Message::Over { inquiry, .. } => self.on_inquiry_over(link, inquiry),
            Message::Inquire { after, .. } => self.inquire_again(link, after),
            _ => {}
        }
        self.settle(client);
    }
}
