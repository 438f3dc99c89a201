//! The line of callers that wait for a key on a node.

use std::time::Duration;

use crate::{HolderLabel, NodeTime, RunId};

/// The entry of a caller in the line for a key.
///
/// The nodes keep a line in the order in which its callers came.
/// When a node lets the key go, it gives the key to the first caller in the same step.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "a node must handle every part of it"
)]
pub struct InLine {
    /// Its place.
    pub place: LinePlace,
    /// The round in which it asks, which the message to its client names.
    pub round: u64,
    /// The time for which it gets the key.
    ///
    /// A caller that died in the meantime keeps others waiting for that long.
    /// Without such a time, the caller only keeps its place: while that is the first, no caller in line gets the key.
    pub grant: Duration,
    /// The time for which it waits, unless it asks again; without such a time, it does not enter the line, and only lets those
    /// have the key that came before.
    pub stay: Duration,
    /// `true` if it must enter the line in its first request, which is no transaction then.
    pub at_once: bool,
    /// `true` if its client [gives signs of life](crate::NodeVerb::Sign) to the node, and hears of its gifts.
    ///
    /// A node passes over such a caller, and forgets its entry, once there is no sign or no subscriber to the message.
    pub signs: bool,
}

impl InLine {
    /// For how long a caller asks again soon without being told that it is the first, in microseconds.
    pub(crate) const YOUNG_MICROS: u64 = 1_000_000;

    /// Returns the time for which it gets the key, in milliseconds, in which nodes count.
    pub fn grant_ms(&self) -> u64 {
        millis(self.grant)
    }

    /// Returns its round as an entry has it: behind a 0 if its client gives signs of life.
    ///
    /// Earlier versions read both alike.
    pub fn round_to_wire(&self) -> String {
        let mark = if self.signs { "0" } else { "" };
        format!("{mark}{}", self.round)
    }

    /// Returns the time for which it waits, in milliseconds.
    pub fn stay_ms(&self) -> u64 {
        millis(self.stay)
    }
}

/// Returns a time in milliseconds, which is one at least unless there is no time.
fn millis(duration: Duration) -> u64 {
    let ms = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    ms.max(u64::from(!duration.is_zero()))
}

/// A place in the line for a key: callers that came earlier are before those that came later.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
#[expect(
    clippy::exhaustive_structs,
    reason = "a node must handle every part of it"
)]
pub struct LinePlace {
    /// The time at which the caller came, by the clocks that the nodes have in common.
    pub came: NodeTime,
    /// The number of its client, under which it hears of keys that it is given.
    pub client: u64,
}

impl LinePlace {
    /// Returns the place of a holder that lacks the key of a node: before all that wait for it.
    pub const fn of_holder(client: u64) -> Self {
        Self {
            came: NodeTime::from_micros(0),
            client,
        }
    }

    /// Returns whether it is such a place.
    pub(crate) const fn is_holders(&self) -> bool {
        self.came.as_micros() == 0
    }
}

/// A node's message to a client: it has given a key to a caller that waited in line.
#[derive(Clone, Debug, Eq, PartialEq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "a client must handle every part of it"
)]
pub struct Gift {
    /// The round in which the caller asked last, as the node heard it.
    pub round: u64,
    /// The counter, less the tokens reserved after the first; 0 if the caller is not given the key, but is the first in
    /// line from now on.
    pub counter: u64,
    /// The node's clock.
    pub time: NodeTime,
    /// The run of the node's server.
    pub run: RunId,
}

/// A caller in the line for a key, as a node stores it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct LineCaller {
    /// Its place.
    pub place: LinePlace,
    /// The time since it came, by the node's clock.
    pub waited: Duration,
    /// The label under which it asks for the key, if it has one.
    pub label: Option<HolderLabel>,
}

impl LineCaller {
    /// Reads the text of a line that its node deletes after `remaining`; returns the callers that still wait, the first one
    /// first.
    ///
    /// A holder that lacks the key of this node is in line, too, and does not wait.
    pub fn all_of(text: &str, remaining: Duration) -> Vec<Self> {
        let entries = text.lines().filter_map(entry);
        let mut entries: Vec<(u64, Self)> = entries.collect();
        // A line lasts as long as the last of its callers, which tells the node's time.
        let last = entries.iter().map(|(until, _)| *until).max().unwrap_or(0);
        let now = u128::from(last).saturating_sub(remaining.as_millis());
        entries.retain(|(until, caller)| u128::from(*until) > now && !caller.place.is_holders());
        let callers = entries.into_iter().map(|(_, caller)| {
            let came = Duration::from_micros(caller.place.came.as_micros());
            let now = Duration::from_millis(u64::try_from(now).unwrap_or(u64::MAX));
            let waited = now.saturating_sub(came);
            Self { waited, ..caller }
        });
        let mut callers: Vec<Self> = callers.collect();
        // A caller that asks again has two entries for a moment.
        callers.dedup_by_key(|caller| caller.place);
        callers
    }
}

/// Reads an entry: up to when the caller waits, in milliseconds, and the caller.
fn entry(line: &str) -> Option<(u64, LineCaller)> {
    let mut parts = line.splitn(7, ' ');
    let until = parts.next()?.parse().ok()?;
    let came = NodeTime::from_micros(parts.next()?.parse().ok()?);
    let client = u64::from_str_radix(parts.next()?, 16).ok()?;
    let caller = LineCaller {
        place: LinePlace { came, client },
        waited: Duration::ZERO,
        // Behind for how long it gets the key, the number of tokens, and the round.
        label: HolderLabel::of_value(parts.nth(3)?),
    };
    Some((until, caller))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_780_000_001_000;

    /// Returns the entry of a client that came this long ago, and waits for this long.
    fn waits(client: u64, ago: u64, left: i64, label: &str) -> String {
        let came = 1_000 * (NOW - ago);
        let until = NOW.saturating_add_signed(left);
        let owner = format!("{}{label}", "0f".repeat(16));
        format!("{until} {came:016} {client:016x} 1000 1 7 {owner}\n")
    }

    #[test]
    fn callers_that_wait_still_are_read_in_their_order() {
        let holder = format!(
            "{} {:016} {:016x} 1000 1 9 {}\n",
            NOW + 3_000,
            0,
            4,
            "0f".repeat(16)
        );
        let text = [
            holder,
            waits(1, 900, 200, " web-1"),
            waits(2, 800, 0, " web-2"),
            // It has asked again under another owner.
            waits(3, 700, 2_000, " web-3"),
            waits(3, 700, 2_900, " web-3"),
            waits(5, 2, 3_000, ""),
            // The caller's estimate of the nodes' time was ahead.
            waits(6, 0, 3_000, "").replace("1780000001000000", "1780000001000900"),
        ];
        let callers = LineCaller::all_of(&text.concat(), Duration::from_secs(3));
        let seen = callers.iter().map(|caller| {
            let label = caller.label.map(|label| label.to_string());
            (caller.place.client, caller.waited.as_millis(), label)
        });
        let expected = [
            (1, 900, Some("web-1".to_owned())),
            (3, 700, Some("web-3".to_owned())),
            (5, 2, None),
            (6, 0, None),
        ];
        assert_eq!(seen.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_text_that_is_no_line_has_no_callers() {
        for text in ["", "\n", "shared\n5 a\n", "1 2 3 4 5 6", "a 1 1 1 1 1 x\n"] {
            assert_eq!(LineCaller::all_of(text, Duration::MAX), [], "{text}");
        }
    }
}
