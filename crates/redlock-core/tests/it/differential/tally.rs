//! What the answers were: a comparison of sequences in which nothing happens would show nothing.

use std::collections::BTreeMap;

use redlock_core::node::{Answer, Reply};
use redlock_proto::{MarkState, NoClaim};

/// How often each kind of answer was given.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    counts: BTreeMap<&'static str, u64>,
    pub(crate) operations: u64,
    /// How many calls were transactions.
    pub(crate) transactions: u64,
}

impl Tally {
    pub(crate) fn add(&mut self, answer: &Answer) {
        let standing = match answer.standing.as_ref().map(|standing| &standing.state) {
            None => "not looked",
            Some(MarkState::Voting) => "voting",
            Some(MarkState::Quarantined { .. }) => "quarantined",
            Some(MarkState::Aged { .. }) => "aged",
            Some(MarkState::PolicyMismatch { .. }) => "of another policy",
        };
        self.count(standing);
        for reply in &answer.replies {
            self.operations += 1;
            self.count(match reply {
                Ok(Reply::Done) => "done",
                Ok(Reply::Taken { .. }) => "taken",
                Ok(Reply::Held { .. }) => "held",
                Ok(Reply::InLine { .. }) => "in line",
                Ok(Reply::Passed { .. }) => "passed on",
                Ok(Reply::Missing) => "missing",
                Ok(Reply::Unclear) => "unclear",
                Ok(Reply::OtherSlots { .. }) => "other slots",
                Ok(Reply::Tombstoned) => "tombstoned",
                Ok(Reply::PolicyMismatch) => "unlike",
                Ok(Reply::ServerInfo(_)) => "server_info",
                Ok(Reply::Greatest(_)) => "greatest",
                Ok(Reply::Claimed { last: None, .. }) => "claimed first",
                Ok(Reply::Claimed { last: Some(_), .. }) => "claimed again",
                Ok(Reply::NoClaim(NoClaim::Passed(_))) => "passed",
                Ok(Reply::NoClaim(NoClaim::Early { .. })) => "too early",
                Ok(Reply::NoClaim(NoClaim::Late { .. })) => "too late",
                Ok(Reply::NoClaim(NoClaim::Forgot)) => "forgotten",
                Ok(Reply::Runs { entries, .. }) if entries.is_empty() => "no runs",
                Ok(Reply::Runs { .. }) => "runs",
                Ok(other) => panic!("a kind of reply that is not counted: {other:?}"),
                Err(_) => "out of range",
            });
        }
    }

    /// Counts a message to a caller in line.
    pub(crate) fn add_gift(&mut self) {
        self.count("given");
    }

    /// Fails unless each kind of answer was given often enough for its share of the operations.
    pub(crate) fn is_varied(&self) {
        let least = self.operations / 1_000;
        let rare: Vec<_> = KINDS
            .iter()
            .filter(|kind| self.counts.get(*kind).copied().unwrap_or(0) < least)
            .collect();
        assert!(rare.is_empty(), "too rare are {rare:?} in {self:?}");
        assert!(self.counts.contains_key("passed on"), "{self:?}");
    }

    fn count(&mut self, kind: &'static str) {
        *self.counts.entry(kind).or_default() += 1;
    }
}

const KINDS: [&str; 25] = [
    "not looked",
    "voting",
    "quarantined",
    "aged",
    "of another policy",
    "done",
    "taken",
    "held",
    "in line",
    "given",
    "missing",
    "other slots",
    "tombstoned",
    "unlike",
    "server_info",
    "greatest",
    "claimed first",
    "claimed again",
    "passed",
    "too early",
    "too late",
    "forgotten",
    "no runs",
    "runs",
    "out of range",
];
