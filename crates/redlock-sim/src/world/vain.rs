//! What is lost or fails while a majority of the nodes is well all the time.

use redlock_proto::{Failure, FailureKind, Loss};

use super::{World, process::State};
use crate::{
    Moment, Plan, Violation,
    setup::{MS, Micros},
};

impl World {
    /// A client has lost a lease that it renews.
    pub(super) fn must_not_be_lost(&mut self, lease: u64, loss: Loss) {
        if self.setup.plan == Plan::OneGone && loss != Loss::MaxHold {
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
