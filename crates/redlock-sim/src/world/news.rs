//! What links tell their client, at once or a little later: each tells in order, but a client may hear of one link
//! before another, so that it does not know yet what has become of a connection.

use std::sync::Arc;

use redlock_proto::{Answer, RequestError, Standing};

use super::{World, agenda::Due, wire::Told};
use crate::setup::{MS, Micros};

/// Something that a link tells its client.
#[derive(Clone, Debug)]
pub(super) enum News {
    /// A connection was made at `sent`, and the node has said what it is.
    Connected { answer: Answer, sent: Micros },
    /// A connection is gone, and so is what was under way on it; either may be told first.
    Lost {
        reason: Arc<str>,
        told: Vec<Told>,
        told_first: bool,
    },
    /// What was sent at `sent` is answered, or has failed.
    Answered {
        standing: Option<Standing>,
        told: Vec<Told>,
        heard: Vec<Heard>,
        sent: Micros,
        twice: bool,
    },
    /// A release has failed and will be made again.
    Delayed { round: u64, error: RequestError },
}

/// What a node said in a round of extension.
#[derive(Clone, Copy, Debug)]
pub(super) struct Heard {
    pub(super) owner: u32,
    /// The server that said so.
    pub(super) server: usize,
    pub(super) round: u64,
    pub(super) confirmed: bool,
    pub(super) missing: bool,
    pub(super) is_there: bool,
}

impl World {
    /// A link tells its client something, behind everything that it told before.
    pub(super) fn deliver(&mut self, link: usize, news: News) {
        if self.links[link].news.is_empty() {
            let matters = matches!(news, News::Lost { .. } | News::Connected { .. });
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
        let process = &mut self.processes[client];
        process.has_news = true;
        let now = process.now(self.now);
        match news {
            News::Connected { answer, sent } => {
                let sent = process.now(sent).clock;
                process.client.on_connected(node, answer, sent, now);
            }
            News::Lost {
                reason,
                told,
                told_first,
            } => {
                if !told_first {
                    process
                        .client
                        .on_disconnected(node, Arc::clone(&reason), now);
                }
                process.client.on_answer(node, None, told, now.clock, now);
                if told_first {
                    process.client.on_disconnected(node, reason, now);
                }
            }
            News::Answered {
                standing,
                told,
                heard,
                sent,
                twice,
            } => {
                for heard in heard {
                    let owner = self.owners.get_mut(heard.owner);
                    let confirmed = heard.confirmed.then_some(heard.server);
                    owner.heard(heard.round, confirmed, heard.missing.then_some(node));
                    if heard.is_there && owner.over.is_none() {
                        self.servers[heard.server].shadow.be_known(heard.owner);
                    }
                }
                let sent = process.now(sent).clock;
                if twice {
                    let (standing, told) = (standing.clone(), told.clone());
                    process.client.on_answer(node, standing, told, sent, now);
                }
                process.client.on_answer(node, standing, told, sent, now);
            }
            News::Delayed { round, error } => process.client.on_delayed(node, round, &error),
        }
    }
}
