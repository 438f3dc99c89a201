//! Values on the wire that locks and jobs have in common.

use std::time::Duration;

use deadpool_redis::redis::Value;
use redlock_proto::{HolderLabel, Reply};

use super::codes;

/// A counter, and what follows it in the answer: the label of the key's holder.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counted {
    pub(super) counter: u64,
    pub(super) holder: Option<HolderLabel>,
    pub(super) is_shared: bool,
    /// How many wait in line before the caller, if it waits there.
    pub(super) ahead: Option<u32>,
}

/// Reads a counter and what is behind it; `None` if that is not what a node sends.
pub(super) fn counted(value: Value) -> Option<Counted> {
    match text(value) {
        Ok(text) => {
            let (digits, label) = text.split_once(' ').unwrap_or((&text, ""));
            let shared = digits.strip_suffix('*');
            let digits = shared.unwrap_or(digits);
            let (digits, ahead) = match digits.split_once('+') {
                Some((digits, ahead)) => (digits, Some(ahead.parse().ok()?)),
                None => (digits, None),
            };
            Some(Counted {
                counter: digits.parse().ok()?,
                ahead,
                // What is behind the owner of another client may be no label.
                holder: label.parse().ok(),
                is_shared: shared.is_some(),
            })
        }
        Err(Value::Int(none)) => Some(Counted {
            counter: u64::try_from(none).ok()?,
            ..Counted::default()
        }),
        Err(_) => None,
    }
}

/// Returns what nodes say alike of locks and of jobs, unless they did what they were asked to.
pub(super) fn refusal(code: i64, counted: Counted) -> Option<Reply> {
    let Counted {
        counter,
        holder,
        is_shared,
        ahead,
    } = counted;
    if let (codes::NEVER | 1.., Some(ahead)) = (code, ahead) {
        return Some(Reply::InLine {
            remaining: u64::try_from(code).ok().map(Duration::from_millis),
            counter,
            holder,
            ahead,
        });
    }
    Some(match code {
        codes::NEVER => Reply::Held {
            remaining: None,
            counter,
            holder,
            is_shared,
        },
        codes::MISSING => Reply::Missing,
        codes::TOMBSTONED => Reply::Tombstoned,
        codes::OTHER_POLICY => Reply::PolicyMismatch,
        ms => Reply::Held {
            remaining: Some(Duration::from_millis(u64::try_from(ms).ok()?)),
            counter,
            holder,
            is_shared,
        },
    })
}

pub(super) fn text(value: Value) -> Result<String, Value> {
    match value {
        Value::BulkString(bytes) => Ok(String::from_utf8(bytes)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())),
        Value::SimpleString(text) => Ok(text),
        other => Err(other),
    }
}

pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
