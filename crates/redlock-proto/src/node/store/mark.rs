//! Where a node stands in a keyspace: its mark, its quarantine, and its way back to voting.

use std::{sync::Arc, time::Duration};

use super::{Store, check_range, millis};
use crate::{
    Keyspace, Mark, MarkState, NamedMark, NodeTime, NodeVerb, Quarantine, Reply, Roll, RunId,
    ServerInfo,
    node::mark::{QUARANTINED, VOTING},
};

/// The mark: what a node remembers of its own past.
#[derive(Clone, Debug)]
pub(super) struct StoredMark {
    pub(super) run: RunId,
    /// Whose data it had.
    data: Arc<str>,
    policy: Arc<str>,
    /// Under which epoch its server was named, if others name it.
    term: Option<NamedMark>,
    /// How long it has been looked at, and when last, while it does not vote.
    pub(super) quarantine: Option<Aging>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Aging {
    pub(super) since: NodeTime,
    aged: u64,
    /// In milliseconds, as is `aged`.
    last: u64,
}

impl Aging {
    fn state(self, quarantine: &Quarantine) -> MarkState {
        let since = self.since;
        match millis(quarantine.length()).saturating_sub(self.aged) {
            0 => MarkState::Aged { since },
            left => MarkState::Quarantined {
                ready_in: Duration::from_millis(left),
                since,
            },
        }
    }
}

impl StoredMark {
    /// Returns the text under which servers have it.
    pub(super) fn to_wire(&self) -> String {
        let Self {
            run, data, policy, ..
        } = self;
        let data = identity(run, data);
        let term = self.term.as_ref();
        let term = term.map_or_else(String::new, |term| format!(" {term}"));
        match self.quarantine {
            None => format!("{VOTING} {run} {data} {policy}{term}"),
            Some(Aging { since, aged, last }) => {
                let since = since.as_micros();
                format!("{QUARANTINED} {run} {data} {policy}{term} {since} {aged} {last}")
            }
        }
    }

    fn state(&self, quarantine: &Quarantine) -> MarkState {
        self.quarantine
            .map_or(MarkState::Voting, |aging| aging.state(quarantine))
    }
}

/// Returns the name of data that a run of a server has: another run has another one for the same data.
pub(super) fn identity(run: &RunId, data: &str) -> String {
    format!("{data}-{run}")
}

impl Store {
    /// Looks at the mark: where the node stands in this keyspace.
    pub(super) fn look(&mut self, keyspace: &Keyspace, time: NodeTime) -> MarkState {
        let now = time.as_millis();
        let quarantine = keyspace.quarantine();
        let policy = quarantine.to_wire();
        let begins = Aging {
            since: time,
            aged: 0,
            last: now,
        };
        let Some(mark) = self.marks.get_mut(keyspace.mark()) else {
            // Nothing but a restart can have lost it, unless another server's data is here.
            let mark = StoredMark {
                run: self.run.clone(),
                data: Arc::clone(&self.data),
                policy: policy.into(),
                term: keyspace.term().cloned(),
                quarantine: (!self.vouched).then_some(begins),
            };
            let state = mark.state(quarantine);
            self.marks.insert(keyspace.mark().clone(), mark);
            return state;
        };
        if *mark.policy != *policy {
            return MarkState::PolicyMismatch {
                theirs: Arc::clone(&mark.policy),
            };
        }
        let is_another_run = mark.run != self.run;
        let epoch = |term: &NamedMark| term.epoch;
        let is_another_term = mark.term.as_ref().map(epoch) != keyspace.term().map(epoch);
        if is_another_run || mark.data != self.data || is_another_term {
            mark.run = self.run.clone();
            mark.data = Arc::clone(&self.data);
            // What was written to disk is there after a restart; what another server had is not this one's.
            if !(is_another_run && quarantine.trusts_persistence()) {
                mark.term = keyspace.term().cloned();
                mark.quarantine = Some(begins);
                return mark.state(quarantine);
            }
        }
        if let Some(aging) = &mut mark.quarantine {
            let step = millis(quarantine.step());
            aging.aged += now.saturating_sub(aging.last).min(step);
            aging.last = now;
        }
        mark.state(quarantine)
    }

    /// Returns the text of the mark, as a client reads it.
    pub fn mark(&self, keyspace: &Keyspace) -> Option<String> {
        self.marks.get(keyspace.mark()).map(StoredMark::to_wire)
    }

    /// Replaces the roll of a mark whose text is `expected`, or deletes the mark if there is no roll; returns whether it
    /// was that mark.
    pub fn swap_mark(&mut self, keyspace: &Keyspace, expected: &str, roll: Option<&Roll>) -> bool {
        if self.mark(keyspace).as_deref() != Some(expected) {
            return false;
        }
        let Some(roll) = roll else {
            self.marks.remove(keyspace.mark());
            self.vouched = false;
            return true;
        };
        let has_roll = Mark::read(expected).is_some_and(|mark| mark.term().is_some());
        let mark = self.marks.get_mut(keyspace.mark());
        if let Some(term) = mark.and_then(|mark| mark.term.as_mut()) {
            term.roll = roll.clone();
        }
        has_roll
    }

    pub(super) fn node(
        &mut self,
        keyspace: &Keyspace,
        verb: &NodeVerb,
        state: Option<&MarkState>,
    ) -> Result<Reply, Arc<str>> {
        Ok(match verb {
            NodeVerb::Look | NodeVerb::Sign { .. } => Reply::Done,
            NodeVerb::Inspect => Reply::ServerInfo(ServerInfo {
                run: self.run.clone(),
                version: ServerInfo::OLDEST,
                is_master: true,
                replicas: 0,
                is_cluster: false,
                eviction: None,
                appends: true,
                syncs: None,
            }),
            NodeVerb::Survey => Reply::Greatest(self.greatest(keyspace)),
            NodeVerb::Open {
                floor,
                since,
                horizon,
            } => {
                let opens = match state {
                    Some(MarkState::Aged { since: began }) => began == since,
                    Some(MarkState::Quarantined { since: began, .. }) => {
                        horizon.is_none() && began == since
                    }
                    _ => false,
                };
                if !opens {
                    return Ok(Reply::Missing);
                }
                check_range(*floor)?;
                let counters = self.fences.entry(keyspace.fence().clone()).or_default();
                counters.floor = counters.floor.max(*floor);
                if let Some(horizon) = horizon {
                    self.remember_since(keyspace, *horizon);
                }
                if let Some(mark) = self.marks.get_mut(keyspace.mark()) {
                    mark.quarantine = None;
                }
                Reply::Done
            }
        })
    }
}
