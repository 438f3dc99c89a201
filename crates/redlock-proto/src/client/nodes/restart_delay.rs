//! For how long a node was away before its last start, as far as this client can tell.

use std::time::Duration;

use crate::{Instant, Quarantine, RunId};

/// What a client has heard of the runs of one node's server.
#[derive(Clone, Debug, Default)]
pub(super) struct Absence {
    run: Option<RunId>,
    /// When an answer of that run came last.
    heard: Instant,
    /// When that run last said that it votes.
    voted: Option<Instant>,
    /// When the run before was heard last, and when this one was heard first.
    between: Option<(Instant, Instant)>,
}

/// Why a node did not wait for as long as its restarts are said to be delayed by.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in super::super) enum DidNotWait {
    /// It was away for no longer than this.
    CameBack { away: Duration },
    /// It did not restart: it lost its data while it ran.
    Emptied,
}

impl Absence {
    /// Takes in that a run of the server has answered.
    pub(super) fn on_answer(&mut self, run: &RunId, votes: bool, at: Instant) {
        if self.run.as_ref() != Some(run) {
            let before = self.run.replace(run.clone());
            self.between = before.map(|_| (self.heard, at));
            self.voted = None;
        }
        self.heard = at;
        if votes {
            self.voted = Some(at);
        }
    }

    /// Returns why a node that has lost its data must not be asked to vote yet, though its restarts are said to be
    /// delayed.
    ///
    /// Leases may be valid for as long as a quarantine would last that had begun with the last answer from before.
    pub(super) fn did_not_wait(&self, quarantine: &Quarantine, now: Instant) -> Option<DidNotWait> {
        if !quarantine.trusts_delayed_restarts() {
            return None;
        }
        let may_be_valid = |last: Instant| now < last + quarantine.length();
        if self.voted.is_some_and(may_be_valid) {
            return Some(DidNotWait::Emptied);
        }
        let (last, first) = self.between?;
        let away = first.saturating_since(last);
        let is_short = away < quarantine.max_ttl() && may_be_valid(last);
        is_short.then_some(DidNotWait::CameBack { away })
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
        absence.on_answer(&"a".into(), true, at(1));
        absence.on_answer(&"a".into(), true, at(10));
        absence.on_answer(&"b".into(), false, at(11));
        let away = Duration::from_secs(1);
        let short = Some(DidNotWait::CameBack { away });
        assert_eq!(absence.did_not_wait(&delayed(), at(11)), short);
        // Whatever it has forgotten is over by then.
        assert_eq!(absence.did_not_wait(&delayed(), at(13)), None);
        let undeclared = Quarantine::new(TTL, 0.01);
        assert_eq!(absence.did_not_wait(&undeclared, at(11)), None);
    }

    #[test]
    fn a_server_that_was_away_for_long_enough_may_have_waited() {
        let mut absence = Absence::default();
        absence.on_answer(&"a".into(), true, at(10));
        absence.on_answer(&"b".into(), false, at(12));
        assert_eq!(absence.did_not_wait(&delayed(), at(12)), None);
    }

    // Shows: R1.1.
    #[test]
    fn a_run_that_voted_and_does_not_any_more_was_emptied() {
        let mut absence = Absence::default();
        absence.on_answer(&"a".into(), true, at(10));
        absence.on_answer(&"a".into(), false, at(11));
        let emptied = Some(DidNotWait::Emptied);
        assert_eq!(absence.did_not_wait(&delayed(), at(11)), emptied);
        assert_eq!(absence.did_not_wait(&delayed(), at(13)), None);
    }
}
