//! Nodes that vote and grant nothing: what their last answers said of it.

use std::{sync::Arc, time::Duration};

use super::{Client, Effect, Entropy, Link, Notice, Now, RequestError, round::RoundKind};
use crate::{Instant, NodeAnswer, Reply, Request, Verb};

/// What the last answers of a node said of its health.
#[derive(Debug, Default)]
pub(super) struct Health {
    trouble: Option<Trouble>,
    /// When it answered last.
    heard: Option<Instant>,
}

#[derive(Debug)]
struct Trouble {
    /// Its error.
    reason: Arc<str>,
    /// Whether it runs what it is asked, and refuses to write.
    ///
    /// Nothing but a write shows the end of that: a node without memory says where it stands all the same.
    refuses_writes: bool,
}

impl Health {
    /// A node has answered: `looked` if it said where it stands, `wrote` if it wrote something for that.
    fn on_reply(&mut self, looked: bool, wrote: bool, at: Instant) {
        let is_over = |trouble: &Trouble| wrote || looked && !trouble.refuses_writes;
        self.trouble.take_if(|trouble| is_over(trouble));
        self.heard = Some(at);
    }

    /// Whether it is to be asked now and then if it writes again.
    pub(super) fn refuses_writes(&self) -> bool {
        self.trouble.as_ref().is_some_and(|t| t.refuses_writes)
    }

    /// How a node stands that votes, as far as its mark and its clock go.
    pub(super) fn standing(&self) -> NodeAnswer {
        match &self.trouble {
            None => NodeAnswer::Reachable,
            Some(Trouble { reason, .. }) => NodeAnswer::Failing {
                reason: Arc::clone(reason),
            },
        }
    }

    /// Whether it answered a short while ago.
    pub(super) fn is_alive(&self, now: Instant) -> bool {
        self.heard.is_some_and(|heard| now < heard + ALIVE)
    }
}

impl<E: Entropy> Client<E> {
    /// Notes what a result says of a node's health; `looked` if the node said where it stands with it.
    pub(super) fn note_health(
        &mut self,
        node: usize,
        round: u64,
        result: &Result<Reply, RequestError>,
        looked: bool,
        now: Now,
    ) {
        let kind = self.rounds.get(&round).map(|round| &round.kind);
        let health = &mut self.watches[node].health;
        let refused = health.refuses_writes();
        let granted = matches!(result, Ok(Reply::Taken { .. } | Reply::Claimed { .. }));
        match (result, kind) {
            (Ok(_), Some(RoundKind::Probe)) => health.on_reply(looked, true, now.clock),
            (Ok(_), _) => health.on_reply(looked, granted, now.clock),
            // A node is let go of in its own time, and asked for a probe because it is in trouble.
            (Err(_), None | Some(RoundKind::Probe | RoundKind::Release { .. })) => {}
            (Err(error), Some(_)) if matches!(self.links[node], Link::Up) => {
                health.trouble = Some(Trouble {
                    reason: Arc::clone(&error.reason),
                    refuses_writes: looked,
                });
            }
            (Err(_), Some(_)) => {}
        }
        let trouble = self.watches[node].health.trouble.as_ref();
        let refuses = trouble.filter(|trouble| trouble.refuses_writes);
        if refused != refuses.is_some() {
            let notice = match refuses {
                Some(Trouble { reason, .. }) => Notice::RefusesWrites {
                    node,
                    reason: Arc::clone(reason),
                },
                None => Notice::Writes { node },
            };
            self.effects.push_back(Effect::Notice(notice));
            self.judge(now);
        }
    }

    /// Asks a node to write something that nobody needs.
    pub(super) fn probe(&mut self, node: usize, now: Now) {
        let owner = self.entropy.owner();
        let tomb = Request::Lock {
            verb: Verb::Bury {
                ttl: Duration::from_millis(1),
            },
            key: self.config.space.tomb(owner),
            owner,
        };
        let round = self.start_round(RoundKind::Probe, self.config.node_timeout, now);
        self.send(node, round, tomb);
    }
}

/// Connections on which nothing happens are tried more often than this.
const ALIVE: Duration = Duration::from_secs(2);
