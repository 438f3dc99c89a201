use std::sync::Arc;

use deadpool_redis::{PoolError, redis::RedisError};

use crate::node::CallError;

/// What went wrong, for an operator.
///
/// Errors of the client library carry addresses and server messages, and no credentials.
pub(super) fn reason(error: &RedisError) -> Arc<str> {
    match error.code() {
        // An error that the server sent: its code and its words.
        Some(code) => format!("{code} {}", error.detail().unwrap_or_default())
            .trim_end()
            .into(),
        None => error.to_string().into(),
    }
}

pub(super) fn pool_reason(error: &PoolError) -> Arc<str> {
    match error {
        PoolError::Backend(error) => reason(error),
        other => other.to_string().into(),
    }
}

/// What a call that failed as a whole leaves behind.
pub(super) fn call_error(error: &RedisError) -> CallError {
    match error.code() {
        Some(code) if NOT_RUN.contains(&code) => CallError::not_executed(reason(error)),
        // Another error from the server: the script may have stopped in the middle.
        Some(_) => CallError::unknown(reason(error)),
        // A pool of the user's may have a response time limit; the connection goes on after it, and
        // the call may run yet.
        None if error.is_timeout() => CallError::unknown(reason(error)),
        None => CallError::lost(reason(error)),
    }
}

/// Errors that the server sends instead of starting a script.
const NOT_RUN: [&str; 10] = [
    "BUSY",
    "CLUSTERDOWN",
    "LOADING",
    "MASTERDOWN",
    "MISCONF",
    "NOAUTH",
    "NOPERM",
    "NOSCRIPT",
    "OOM",
    "READONLY",
];
