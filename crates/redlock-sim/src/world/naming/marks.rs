use super::{
    super::World,
    messages::{MarkAnswer, MarkVerb, Message, Recipient},
};

impl World {
    /// A client asks a server about its mark, beside its calls.
    pub(super) fn ask_for_mark(&mut self, link: usize, server: usize, verb: MarkVerb) {
        let at = self.now + self.delay();
        let this = &mut self.links[link];
        let (conn, hole) = (this.conn, this.hole_out);
        let Some(session) = &mut this.session else {
            return;
        };
        session.marks += 1;
        let question = Message::Mark {
            to: Recipient { link, conn },
            number: session.marks,
            server,
            verb,
        };
        self.send(at.max(hole), question);
    }

    /// A question about its mark reaches a server, also if its connection is gone by then.
    pub(super) fn on_mark_call(
        &mut self,
        to: Recipient,
        number: u32,
        server: usize,
        verb: MarkVerb,
    ) {
        let Recipient { link, conn } = to;
        let frozen_until = self.servers[server].frozen_until;
        if frozen_until > self.now {
            let question = Message::Mark {
                to,
                number,
                server,
                verb,
            };
            return self.send(frozen_until, question);
        }
        let (client, _) = self.ends(link);
        let answer = if !self.servers[server].is_up || self.is_replica(server) {
            MarkAnswer::Refused
        } else {
            let keyspace = self.setup.space_of(client);
            let store = &mut self.servers[server].store;
            match verb {
                MarkVerb::Read => MarkAnswer::Text(store.mark(keyspace)),
                MarkVerb::Swap { expected, roll } => {
                    MarkAnswer::Swapped(store.swap_mark(keyspace, &expected, roll.as_ref()))
                }
            }
        };
        let at = self.now + self.delay();
        let at = at.max(self.links[link].hole_back);
        let marked = Message::Marked {
            conn,
            number,
            answer,
        };
        self.send_to_client(at, link, marked);
    }

    /// A client hears of a mark.
    pub(super) fn on_marked(&mut self, link: usize, number: u32, answer: MarkAnswer) {
        let Some(session) = &self.links[link].session else {
            return;
        };
        if session.marks != number {
            return;
        }
        if session.tenure.is_some() {
            self.on_later_mark(link, answer);
        } else {
            self.on_first_mark(link, answer);
        }
    }
}
