//! Leases and acquires that are lost while a majority of the nodes is well all the time.

use redlock_proto::{Failure, FailureKind, Instant, Loss};

use super::{World, process::State};
use crate::{
    Moment, Plan, Violation,
    setup::{MS, Micros},
};

impl World {
    /// A client has lost a lease with this deadline.
    ///
    /// While all assumptions hold, a majority keeps the key up to the deadline, as far as it votes; and where only one node
    /// is ever lost, a majority extends it.
    pub(super) fn must_not_be_lost(
        &mut self,
        client: usize,
        (lease, deadline): (u64, Instant),
        loss: Loss,
    ) {
        let now = self.processes[client].now(self.now).clock;
        let plan = self.setup.plan;
        let is_early = plan.holds_all() && loss == Loss::Revoked && now < deadline;
        if is_early || plan == Plan::OneGone && loss != Loss::MaxHold {
            let at = Moment::from_micros(self.now);
            self.checker.report(at, Violation::LostInVain { lease });
        }
    }

    /// An acquire has failed: another holder was in the way, or its client was closed or not connected yet.
    ///
    /// The repair cuts connections to all nodes.
    pub(super) fn must_not_fail(&mut self, client: usize, id: u64, failure: Option<&Failure>) {
        let has_reason = failure.is_none_or(|failure| failure.kind == FailureKind::Contended);
        if self.setup.plan != Plan::OneGone || has_reason || !self.phase.is_faulty() {
            return;
        }
        let users = &self.processes[client].users;
        let waits = |state: State| matches!(state, State::Waiting { id: other, .. } if other == id);
        if let Some(key) = users.iter().position(|user| waits(user.state))
            && users[key].since > CONNECTED
            // Its lease may end before it begins.
            && !users[key].is_limited
        {
            let at = Moment::from_micros(self.now);
            let violation = Violation::FailedInVain { client, key };
            self.checker.report(at, violation);
        }
    }
}

/// When clients are connected to the nodes that are well.
const CONNECTED: Micros = 50 * MS;
