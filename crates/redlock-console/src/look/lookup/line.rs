//! The callers of all processes that wait in line for a key.

use std::{collections::BTreeMap, time::Duration};

use redlock_proto::{LineCaller, LinePlace};

use crate::{
    look::{clock::millis, lookup::KeyLook},
    snapshot::{CallerSnapshot, LineSnapshot},
};

/// The callers that a majority of the nodes has in line for a key.
#[derive(Debug)]
pub struct Line(
    // invariant: in the order of their places
    Vec<LineCaller>,
);

impl Line {
    /// Returns the callers that a majority names.
    ///
    /// The clocks of nodes differ, so a caller waits for as long as the node in the middle says.
    pub fn of(said: &[KeyLook], majority: usize) -> Self {
        let mut named: BTreeMap<LinePlace, Vec<LineCaller>> = BTreeMap::new();
        for caller in said.iter().flat_map(|said| &said.line) {
            named.entry(caller.place).or_default().push(*caller);
        }
        let callers = named.into_values().filter_map(|mut callers| {
            callers.sort_by_key(|caller| caller.waited);
            let middle = callers.get(callers.len() / 2).copied();
            middle.filter(|_| callers.len() >= majority)
        });
        Self(callers.collect())
    }

    pub fn callers(&self) -> &[LineCaller] {
        &self.0
    }

    /// Returns it for programs, with the first `most` of its callers.
    pub fn snapshot(&self, most: usize) -> LineSnapshot {
        let clients = self.0.iter().take(most).map(|caller| CallerSnapshot {
            client: client(caller),
            label: caller.label.map(|label| label.to_string()),
            waits_ms: millis(caller.waited),
        });
        LineSnapshot {
            callers: self.0.len(),
            longest_ms: self.longest().map(millis),
            clients: clients.collect(),
        }
    }

    /// Returns how long the one has waited that came first; `None` if none waits.
    pub fn longest(&self) -> Option<Duration> {
        self.0.iter().map(|caller| caller.waited).max()
    }
}

/// Returns the number of a caller's client, as nodes write it.
pub fn client(caller: &LineCaller) -> String {
    format!("{:016x}", caller.place.client)
}

/// Returns the label of a caller, or words for a caller without one.
pub fn label(caller: &LineCaller) -> String {
    let label = caller.label.map(|label| label.to_string());
    label.unwrap_or_else(|| "a caller without a label".to_owned())
}
