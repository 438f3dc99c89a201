//! What a server does with a request.

use super::{
    NamedCheck, NamedMutation, NamedRules,
    state::{Mark, MarkKind, Request, State},
    step::Reply,
};

impl NamedCheck {
    /// A request of a client reaches the server that it was sent to.
    pub(super) fn execute(&self, state: &mut State, by: usize, request: Request) -> Reply {
        let Request { pair, roll, age } = request;
        let server = &mut state.servers[usize::from(pair.server)];
        if !server.is_master {
            return Reply::Replica;
        }
        let mark = &mut server.mark;
        let is_of_epoch = mark.epoch == pair.epoch || !self.has_epochs();
        if matches!(mark.kind, MarkKind::None | MarkKind::Foreign) || !is_of_epoch {
            let epoch = if self.has_epochs() { pair.epoch } else { 0 };
            *mark = Mark::quarantine(epoch, roll);
            return Reply::Begins;
        }
        if mark.kind == MarkKind::Quarantined {
            if mark.age < self.quarantine() {
                return Reply::Quarantined;
            }
            mark.kind = MarkKind::Voting;
            mark.age = 0;
        }
        let client = u8::from(by == 1);
        if server.key.is_some_and(|owner| owner != client) {
            return Reply::Taken;
        }
        server.key = Some(client);
        server.ttl = self.world.ttl;
        let left = self.world.ttl.saturating_sub(age);
        let lease = &mut state.clients[by].lease;
        *lease = left.max(*lease);
        if left > 0 {
            Reply::Granted
        } else {
            Reply::GrantedLate
        }
    }

    /// Returns how long a quarantine lasts.
    pub(super) fn quarantine(&self) -> u8 {
        let freshness = if self.breaks(NamedMutation::ShortQuarantine) {
            0
        } else {
            self.world.freshness
        };
        self.world.ttl + freshness
    }

    /// Returns whether marks have epochs.
    fn has_epochs(&self) -> bool {
        self.rules == NamedRules::Term && !self.breaks(NamedMutation::NoEpochInMark)
    }
}
