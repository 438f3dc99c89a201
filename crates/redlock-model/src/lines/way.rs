//! The way to a lease of the first of the callers that wait.

use super::{
    rules::Rules,
    state::{Phase, State},
    step::{Breach, Step},
};
use crate::liveness::{Leads, Live};

impl Live for Rules {
    fn stuck(&self, state: &State) -> Option<Breach> {
        let lost = state.nodes.iter().filter(|node| node.is_quarantined);
        // Callers that ask again a few times only may be stuck then, and so may all while no node finds a floor.
        let may_be = self.check.has_tokens() || lost.count() > 1;
        let by = state.first_waiting().filter(|_| !may_be)?;
        Some(Breach::Stuck { by })
    }

    fn leads(&self, state: &State, step: &Step) -> Leads {
        let phase = |by: usize| state.callers[by].phase;
        let is_on = match *step {
            Step::Settle { by, .. } if Some(by) == state.first_waiting() => return Leads::There,
            Step::Release { owner, .. } => phase(owner.by) == Phase::Waiting,
            Step::End { by } => phase(by) == Phase::Holding,
            Step::Acquire { .. }
            | Step::Hear { .. }
            | Step::AskAgain { .. }
            | Step::Expire { .. }
            | Step::Open { .. } => true,
            Step::Start { .. }
            | Step::Settle { .. }
            | Step::Join { .. }
            | Step::Confirm { .. }
            | Step::AskLate { .. }
            | Step::Extend { .. }
            | Step::SignEnds { .. }
            | Step::Crash { .. } => false,
        };
        if is_on { Leads::On } else { Leads::Nowhere }
    }
}
