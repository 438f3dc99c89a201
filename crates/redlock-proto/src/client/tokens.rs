//! Fencing counters: what a client has seen of them, and how a token comes to be known to a majority.

use super::{Client, Entropy, Now, acquire::Acquire, round::RoundKind};
use crate::{
    Extension, ExtensionVerdict, Failure, FailureKind, FencingToken, OwnerId, Reply, Request,
    Shard, TokenBlock, Verb,
};

impl<E: Entropy> Client<E> {
    /// A node said how far it has counted.
    pub(super) fn note_counter(&mut self, round: u64, reply: &Reply) {
        let Some((shard, tokens)) = self.rounds.get(&round).and_then(|round| round.counts) else {
            return;
        };
        let seen = match reply {
            Reply::Taken { counter } | Reply::Claimed { counter, .. } => {
                counter.saturating_add(u64::from(tokens.max(1)) - 1)
            }
            Reply::Held { counter, .. } => *counter,
            _ => return,
        };
        if seen > FencingToken::MAX.get() {
            // Somebody else has written it; whoever went on from there would be refused everywhere.
            return;
        }
        let known = &mut self.counters[usize::from(shard.number())];
        *known = seen.max(*known);
    }

    /// Greater than any counter that was seen, and close to the clock so that it exceeds those not seen.
    pub(super) fn proposal(&self, shard: Shard, now: Now) -> u64 {
        let seen = self.counters[usize::from(shard.number())].saturating_add(1);
        match now.wall <= FencingToken::MAX.get() {
            true => seen.max(now.wall),
            // The clock is off by centuries.
            false => seen,
        }
    }

    /// Makes the greatest counter that a majority knows, where that is needed.
    pub(super) fn write_back(
        &mut self,
        id: u64,
        request: &Acquire,
        owner: OwnerId,
        nodes: &[usize],
        tokens: TokenBlock,
        now: Now,
    ) {
        let Some(held) = self.leases.get(&id) else {
            return;
        };
        let extension: Extension = held.state.extension(self.config.quorum, now.clock);
        let kind = RoundKind::WriteBack {
            lease: id,
            extension: extension.among(nodes),
        };
        let round = self.start_round(kind, self.limit_within(request.timing), now);
        let verb = Verb::Extend {
            ttl: request.timing.key_ttl(),
            write_back: Some((Shard::of(&request.key), tokens.last().get())),
        };
        for node in nodes {
            let request = Request::Lock {
                verb,
                key: request.key.clone(),
                owner,
            };
            self.send(*node, round, request);
        }
    }

    /// A token was written back, or was not.
    pub(super) fn written_back(&mut self, round: u64, verdict: ExtensionVerdict, now: Now) {
        self.decided(round);
        let Some(entry) = self.rounds.get_mut(&round) else {
            return;
        };
        let started = entry.started;
        let RoundKind::WriteBack { lease, extension } = &entry.kind else {
            return;
        };
        let id = *lease;
        let is_contended = extension.votes().refused() > 0;
        let Some(acquisition) = self.acquisitions.remove(&id) else {
            return;
        };
        let Some(held) = self.leases.get_mut(&id) else {
            return;
        };
        let action = held.state.on_extension(started, verdict, now.clock);
        let usable = held.state.may_hand_out(now.clock);
        let is_confirmed = matches!(verdict, ExtensionVerdict::Extended { .. });
        if acquisition.claim.is_some() && !(is_confirmed && held.state.is_live() && usable) {
            return self.not_committed(id, acquisition, verdict, round, now);
        }
        let kind = match verdict {
            ExtensionVerdict::Extended { .. } if held.state.is_live() && usable => {
                self.hand_out(id);
                return self.follow_lease(id, action, now);
            }
            ExtensionVerdict::Extended { .. } => FailureKind::Expired,
            _ if is_contended => FailureKind::Contended,
            _ => FailureKind::NoQuorum,
        };
        let failure = Failure::after_grant(kind, started, now.clock);
        self.release(id, None, now);
        self.failed(id, acquisition, failure, round, None, now);
    }
}
