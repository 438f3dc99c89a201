//! The answers of one inquiry.

use std::{net::IpAddr, sync::Arc, time::Duration};

use redlock_proto::{Hearing, Instant, Pair};
use tokio::{net::lookup_host, time::timeout};

use super::{
    address::Address,
    naming_url::NamingUrl,
    testimony::{NamedServer, SentinelAnswer, Testimony},
};
use crate::boot_clock::now;

/// One inquiry, as far as it has come.
#[derive(Clone)]
pub(super) struct InquiryRound {
    /// On the client's own clock, before the first question was sent.
    pub(super) asked_at: Instant,
    /// Whether each informant has answered, or had its time.
    pub(super) is_complete: bool,
    pub(super) testimonies: Vec<Testimony>,
    /// Where the informant of each of these is.
    pub(super) from: Vec<Address>,
    /// Which informants have not answered, and why.
    pub(super) failed: Vec<(Address, Arc<str>)>,
    /// How many informants the URL names, if it must name all.
    pub(super) named: Option<usize>,
}

impl InquiryRound {
    /// Begins an inquiry of the informants of a url.
    pub(super) fn new(url: &NamingUrl) -> Self {
        Self {
            asked_at: now(),
            is_complete: false,
            testimonies: Vec::new(),
            from: Vec::new(),
            failed: Vec::new(),
            named: (!url.is_cluster()).then_some(url.informants.len()),
        }
    }

    /// Returns the answers about a slot; about a master, whatever the slot is.
    pub(super) fn hearing(&self, slot: u16) -> Hearing<NamedServer> {
        let mut hearing = match self.named {
            Some(named) => Hearing::of_all(named),
            None => Hearing::of_members(),
        };
        for testimony in &self.testimonies {
            hearing.hear(testimony.statement(slot));
        }
        hearing
    }

    /// Returns the pair that a majority names of all informants that are known.
    pub(super) fn majority(&self, slot: u16) -> Option<Pair<NamedServer>> {
        let hearing = self.hearing(slot);
        let pair = hearing.candidate()?;
        (hearing.support(&pair) > hearing.count() / 2).then_some(pair)
    }

    /// Returns how many masters have slots, as far as the node knows that knows of most.
    pub(super) fn masters(&self) -> usize {
        let counts = self.testimonies.iter().map(Testimony::masters);
        counts.max().unwrap_or(0)
    }

    /// Counts servers as one that Sentinels spell by different names of one address.
    pub(super) async fn resolve(&mut self, limit: Duration) {
        let mut answers: Vec<&mut SentinelAnswer> = self
            .testimonies
            .iter_mut()
            .filter_map(|testimony| match testimony {
                Testimony::Sentinel(answer) => Some(answer),
                Testimony::Member(_) => None,
            })
            .collect();
        let Some(first) = answers.first().map(|answer| answer.names.server.id.clone()) else {
            return;
        };
        if answers.iter().all(|answer| answer.names.server.id == first) {
            return;
        }
        for answer in &mut answers {
            let server = &mut answer.names.server;
            if server.host.parse::<IpAddr>().is_ok() {
                continue;
            }
            let found = timeout(limit, lookup_host((&*server.host, server.port))).await;
            if let Ok(Ok(addresses)) = found
                && let Some(address) = addresses.min()
            {
                server.id = address.to_string();
            }
        }
    }
}
