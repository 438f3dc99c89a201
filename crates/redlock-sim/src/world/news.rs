//! The news of links for their client, at once or a little later: each tells in order, but a client may hear of one link
//! before another, so that it does not know yet what has become of a connection.

use redlock_proto::LinkEvent;

use super::{World, agenda::Due, said::Said};
use crate::setup::MS;

/// Something that a link tells its client.
#[derive(Clone, Debug)]
pub(super) struct News {
    event: LinkEvent,
    heard: Vec<Heard>,
    /// The answer comes twice.
    pub(super) twice: bool,
}

/// What a node said in a round of extension.
#[derive(Clone, Copy, Debug)]
struct Heard {
    round: u64,
    said: Said,
}

impl News {
    /// Makes an event; of a call that was answered, `said` is what it says of each request.
    pub(super) fn of(event: LinkEvent, said: Vec<Option<Said>>) -> Self {
        let heard = if let LinkEvent::Answered { results, .. } = &event {
            let rounds = results.iter().map(|(round, _)| *round);
            let heard = rounds
                .zip(said)
                .filter_map(|(round, said)| Some(Heard { round, said: said? }));
            heard.collect()
        } else {
            Vec::new()
        };
        Self {
            event,
            heard,
            twice: false,
        }
    }
}

impl World {
    /// A link tells its client something, behind everything that it told before.
    pub(super) fn deliver(&mut self, link: usize, mut news: News) {
        if matches!(news.event, LinkEvent::Answered { .. }) {
            news.twice = self.phase.is_faulty() && self.random.chance(self.setup.net.twice);
            self.counters.duplicates += u64::from(news.twice);
        }
        self.counters.delayed += u64::from(matches!(news.event, LinkEvent::Delayed { .. }));
        self.counters.needless += u64::from(matches!(news.event, LinkEvent::Needless { .. }));
        if self.links[link].news.is_empty() {
            let matters = matches!(
                news.event,
                LinkEvent::Disconnected { .. } | LinkEvent::Connected { .. }
            );
            let lag = self.setup.lag * if matters { 10 } else { 1 };
            if !self.phase.is_faulty() || !self.random.chance(lag) {
                return self.hand(link, news);
            }
            let at = self.now + self.random.between(1, 10 * MS);
            let (client, _) = self.ends(link);
            let life = self.processes[client].life;
            self.agenda.add(at, Due::News { link, life });
        }
        self.links[link].news.push_back(news);
    }

    /// A client hears what a link has told it.
    pub(super) fn on_news(&mut self, link: usize, life: u32) {
        let (client, _) = self.ends(link);
        if self.processes[client].life != life {
            return;
        }
        while let Some(news) = self.links[link].news.pop_front() {
            self.hand(link, news);
        }
        self.settle(client);
    }

    fn hand(&mut self, link: usize, news: News) {
        let (client, node) = self.ends(link);
        let News {
            event,
            heard,
            twice,
        } = news;
        for Heard { round, said } in heard {
            let owner = self.owners.get_mut(said.owner);
            let confirmed = said.confirmed.then_some(self.setup.node_of(said.server));
            owner.heard(round, confirmed, said.missing.then_some(node));
            if said.is_there && owner.over.is_none() {
                self.servers[said.server].shadow.be_known(said.owner);
            }
        }
        let process = &mut self.processes[client];
        process.has_news = true;
        let now = process.now(self.now);
        if twice {
            event.clone().tell(&mut process.client, node, now);
        }
        let is_up = matches!(event, LinkEvent::Connected { .. });
        event.tell(&mut process.client, node, now);
        if is_up {
            self.listens_soon(client, node);
        }
    }
}
