//! For how long a node was away before its last start, as far as this client can tell.

use std::time::Duration;

use crate::{Instant, Quarantine, RunId};

/// What a client has heard of the runs of one node's server.
#[derive(Clone, Debug, Default)]
pub(super) struct Absence {
    run: Option<RunId>,
    /// When an answer of that run came last.
    heard: Instant,
    /// When the run before was heard last, and when this one was heard first.
    between: Option<(Instant, Instant)>,
}

impl Absence {
    /// A run of the server has answered.
    pub(super) fn on_answer(&mut self, run: &RunId, at: Instant) {
        if self.run.as_ref() != Some(run) {
            let before = self.run.replace(run.clone());
            self.between = before.map(|_| (self.heard, at));
        }
        self.heard = at;
    }

    /// Returns for how long the node was away if that was less than its restarts are said to be delayed by, and leases may
    /// be valid now that it has forgotten.
    pub(super) fn too_short(&self, quarantine: &Quarantine, now: Instant) -> Option<Duration> {
        let (last, first) = self.between?;
        let away = first.saturating_since(last);
        let is_short = away < quarantine.max_ttl() && now < last + quarantine.length();
        (quarantine.trusts_delayed_restarts() && is_short).then_some(away)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TTL: Duration = Duration::from_secs(2);

    fn at(seconds: u64) -> Instant {
        Instant::default() + Duration::from_secs(seconds)
    }

    fn delayed() -> Quarantine {
        Quarantine::new(TTL, 0.01).trusting_delayed_restarts()
    }

    #[test]
    fn a_server_that_was_back_before_the_longest_lease_had_ended_did_not_wait() {
        let mut absence = Absence::default();
        absence.on_answer(&"a".into(), at(1));
        absence.on_answer(&"a".into(), at(10));
        assert_eq!(absence.too_short(&delayed(), at(10)), None);
        absence.on_answer(&"b".into(), at(11));
        let short = Some(Duration::from_secs(1));
        assert_eq!(absence.too_short(&delayed(), at(11)), short);
        // Whatever it has forgotten is over by then.
        assert_eq!(absence.too_short(&delayed(), at(13)), None);
        let undeclared = Quarantine::new(TTL, 0.01);
        assert_eq!(absence.too_short(&undeclared, at(11)), None);
    }

    #[test]
    fn a_server_that_was_away_for_long_enough_may_have_waited() {
        let mut absence = Absence::default();
        absence.on_answer(&"a".into(), at(10));
        absence.on_answer(&"b".into(), at(12));
        assert_eq!(absence.too_short(&delayed(), at(12)), None);
    }
}
