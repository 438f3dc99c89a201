//! Values on the wire that locks and jobs have in common.

use std::time::Duration;

use deadpool_redis::redis::Value;

use crate::node::Reply;

/// Returns a counter or a tick as nodes store it: of one length, so that they need not read it to compare it.
pub(super) fn digits(counter: u64) -> String {
    format!("{counter:016}")
}

/// Returns what nodes say alike of locks and of jobs, unless they did what they were asked to.
pub(super) fn refusal(code: i64, counter: u64) -> Option<Reply> {
    Some(match code {
        -1 => Reply::Held {
            remaining: None,
            counter,
        },
        -2 => Reply::Missing,
        -3 => Reply::Tombstoned,
        -4 => Reply::PolicyMismatch,
        ms => Reply::Held {
            remaining: Some(Duration::from_millis(u64::try_from(ms).ok()?)),
            counter,
        },
    })
}

pub(super) fn text(value: Value) -> Result<String, Value> {
    match value {
        Value::BulkString(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        Value::SimpleString(text) => Ok(text),
        other => Err(other),
    }
}

pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
