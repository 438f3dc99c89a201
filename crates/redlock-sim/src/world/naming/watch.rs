use redlock_proto::{Confirms, Hearing, Pair, Roll};

use super::{
    super::World,
    informants::{of_node, told},
    messages::{MarkAnswer, MarkVerb},
    session::{Confirmed, Inquiry, Stage},
};

impl World {
    /// A client with a tenure takes in a complete inquiry.
    pub(super) fn on_round(&mut self, link: usize) {
        let Some(session) = &mut self.links[link].session else {
            return;
        };
        let Some(tenure) = &session.tenure else {
            return;
        };
        // The watch over a session ends when another pair is named.
        if !matches!(session.stage, Stage::Open) || matches!(tenure.confirmed, Confirmed::Replaced)
        {
            return;
        }
        let of = session.inquiry.clone();
        let (pair, roll) = (tenure.pair, &tenure.roll);
        let confirms = of.hearing.confirms(&pair, roll);
        if confirms == Confirms::Unknown && of.hearing.support(&pair) >= roll.majority() {
            // Another client may have changed the roll.
            session.stage = Stage::Rereads { of };
            return self.ask_for_mark(link, pair.server, MarkVerb::Read);
        }
        self.take_in(link, of, confirms);
    }

    /// A client with a tenure hears of the server's mark.
    pub(super) fn on_later_mark(&mut self, link: usize, answer: MarkAnswer) {
        let (client, _) = self.ends(link);
        let of_client = self.setup.space_of(client);
        let Some(session) = &mut self.links[link].session else {
            return;
        };
        let Some(tenure) = &mut session.tenure else {
            return;
        };
        let stage = std::mem::replace(&mut session.stage, Stage::Open);
        match (stage, answer) {
            (Stage::Rereads { of }, MarkAnswer::Text(text)) => {
                let stored = tenure.roll_of(of_client, text.as_deref());
                let stored = stored.filter(|stored| *stored != tenure.roll);
                let (mut confirms, mut adopted) = (Confirms::Unknown, None);
                if let Some(stored) = stored {
                    confirms = of.hearing.confirms(&tenure.pair, &stored);
                    tenure.set_roll(of_client, stored.clone());
                    adopted = Some(stored);
                    self.counters.rolls_adopted += 1;
                }
                if adopted.is_some() {
                    self.links[link].last_roll = adopted;
                }
                self.take_in(link, of, confirms);
            }
            (Stage::Joins { of, steady }, MarkAnswer::Text(Some(text))) => {
                let stored = tenure.roll_of(of_client, Some(&text));
                let pair = tenure.pair;
                let extended = stored.and_then(|roll| steady.extended(&pair, &roll));
                let Some(roll) = extended else {
                    return self.end_inquiry(link, &of);
                };
                session.stage = Stage::Writes {
                    of,
                    roll: roll.clone(),
                };
                let verb = MarkVerb::Swap {
                    expected: text,
                    roll: Some(roll),
                };
                self.ask_for_mark(link, pair.server, verb);
            }
            (Stage::Writes { of, roll }, MarkAnswer::Swapped(true)) => {
                tenure.set_roll(of_client, roll.clone());
                self.links[link].last_roll = Some(roll.clone());
                self.counters.rolls_joined += 1;
                self.tell_of_roll(link, &roll);
                self.end_inquiry(link, &of);
            }
            (Stage::Rereads { of } | Stage::Joins { of, .. } | Stage::Writes { of, .. }, _) => {
                self.end_inquiry(link, &of);
            }
            _ => {}
        }
    }

    /// A client takes in what an inquiry says of its pair.
    fn take_in(&mut self, link: usize, of: Inquiry, confirms: Confirms) {
        let Some(session) = &mut self.links[link].session else {
            return;
        };
        let Some(tenure) = &mut session.tenure else {
            return;
        };
        let pair = tenure.pair;
        match confirms {
            Confirms::Same => {
                tenure.confirmed = Confirmed::At(of.asked_at);
                let earlier = session.earlier.as_ref();
                let steady = earlier.map(|earlier| of.hearing.steady(earlier));
                let joins =
                    |steady: &Hearing<usize>| steady.extended(&pair, &tenure.roll).is_some();
                if let Some(steady) = steady.filter(joins) {
                    session.stage = Stage::Joins { of, steady };
                    return self.ask_for_mark(link, pair.server, MarkVerb::Read);
                }
            }
            Confirms::Another => {
                tenure.confirmed = Confirmed::Replaced;
                let other = of.hearing.candidate();
                self.replace(link, pair, other);
            }
            Confirms::Moving | Confirms::Unknown => {}
        }
        self.end_inquiry(link, &of);
    }

    /// A client has done what it does about an inquiry.
    fn end_inquiry(&mut self, link: usize, of: &Inquiry) {
        if let Some(session) = &mut self.links[link].session {
            session.earlier = Some(of.hearing.clone());
        }
    }

    fn replace(&mut self, link: usize, pair: Pair<usize>, other: Option<Pair<usize>>) {
        let (client, node) = self.ends(link);
        self.counters.sessions_replaced += 1;
        let is_same_server = other.is_some_and(|other| other.server == pair.server);
        self.counters.epochs_replaced += u64::from(is_same_server);
        self.trace.line(self.now, || {
            let other = other.map_or_else(
                || "another pair".to_owned(),
                |it| told(of_node(it, self.setup.nodes)),
            );
            format!("client {client} hears of node {node} that a majority names {other}")
        });
    }

    fn tell_of_roll(&mut self, link: usize, roll: &Roll) {
        let (client, node) = self.ends(link);
        self.trace.line(self.now, || {
            format!("client {client} writes to the mark of node {node} the roll {roll}")
        });
    }
}
