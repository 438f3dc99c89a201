//! The callers of all processes that wait in line for a key.

use std::{collections::BTreeMap, io, time::Duration};

use redlock_proto::{LineCaller, LinePlace};
use serde_json::{Value, json};

use crate::{
    clock::{millis, rounded},
    lookup::KeyLook,
    output::{LineMark, Output},
};

/// The callers that a majority of the nodes has in line for a key.
pub(crate) struct Line(
    // invariant: in the order of their places
    Vec<LineCaller>,
);

impl Line {
    /// Returns the callers that a majority names.
    ///
    /// The clocks of nodes differ, so a caller waits for as long as the node in the middle says.
    pub(crate) fn of(said: &[KeyLook], majority: usize) -> Self {
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

    pub(crate) fn callers(&self) -> &[LineCaller] {
        &self.0
    }

    /// Returns it for programs.
    pub(crate) fn to_json(&self) -> Value {
        let clients = self.0.iter().map(|caller| {
            json!({
                "client": client(caller),
                "label": caller.label.map(|label| label.to_string()),
                "waits_ms": millis(caller.waited),
            })
        });
        json!({
            "callers": self.0.len(),
            "longest_ms": self.longest().map(millis),
            // In the order of their places.
            "clients": clients.collect::<Vec<_>>(),
        })
    }

    pub(crate) fn print(&self, output: Output) -> io::Result<()> {
        let callers = match self.0.len() {
            0 => return output.marked(LineMark::Good, "no caller waits in line"),
            1 => "1 caller waits".to_owned(),
            count => format!("{count} callers wait"),
        };
        let longest = rounded(self.longest().unwrap_or_default());
        let line = format!("{callers} in line, the first for {longest}");
        output.marked(LineMark::Note, &line)?;
        for caller in &self.0 {
            let (name, client, waited) = (label(caller), client(caller), rounded(caller.waited));
            output.indented(&format!("{name} for {waited}, of client {client}"))?;
        }
        Ok(())
    }

    fn longest(&self) -> Option<Duration> {
        self.0.iter().map(|caller| caller.waited).max()
    }
}

/// Returns the number of a caller's client, as nodes write it.
pub(crate) fn client(caller: &LineCaller) -> String {
    format!("{:016x}", caller.place.client)
}

/// Returns the label of a caller, or words for a caller without one.
pub(crate) fn label(caller: &LineCaller) -> String {
    let label = caller.label.map(|label| label.to_string());
    label.unwrap_or_else(|| "a caller without a label".to_owned())
}
