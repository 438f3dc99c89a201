use std::sync::Arc;

use deadpool_redis::{PoolError, redis::RedisError};

use super::RedisNode;
use crate::node::CallError;

/// What went wrong, for an operator.
///
/// Errors of the client library carry addresses and server messages, and no credentials.
pub(super) fn reason(error: &RedisError) -> Arc<str> {
    match error.code() {
        // An error that the server sent: its code and its words.
        Some(code) => explained(&format!("{code} {}", error.detail().unwrap_or_default())),
        None => one_line(&error.to_string()),
    }
}

/// An error that the server sent, in its own words, and with ours where they do not say what to do.
pub(super) fn explained(words: &str) -> Arc<str> {
    let words = one_line(words);
    // Outside of a script, and inside of one as Redis and Valkey say it.
    let lacks_a_right = words.starts_with("NOPERM")
        || words.contains("user executing the script can't")
        || words.contains("ACL failure in script");
    match lacks_a_right {
        true => {
            let rights = RedisNode::RIGHTS;
            format!("{words}; its user needs the keys of the namespace and {rights}").into()
        }
        false => words,
    }
}

/// An error has a line per node, whatever a server or a parser puts into its words.
fn one_line(text: &str) -> Arc<str> {
    let words = text.split(|c: char| c.is_control() || c == ' ');
    let words: Vec<_> = words.filter(|word| !word.is_empty()).collect();
    words.join(" ").into()
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

#[cfg(test)]
mod tests {
    use super::{explained, one_line};

    #[test]
    fn a_reason_is_one_line() {
        let text = "Parse error at 1\nUnexpected `84`\r\n\tUnexpected `72`\n";
        assert_eq!(
            &*one_line(text),
            "Parse error at 1 Unexpected `84` Unexpected `72`"
        );
        assert_eq!(&*one_line("NOAUTH "), "NOAUTH");
    }

    #[test]
    fn a_right_that_is_missing_is_named() {
        let refusals = [
            "NOPERM this user has no permissions to run the 'evalsha' command",
            // Redis 7.0, and Valkey 8.1.
            "ERR The user executing the script can't run this command or subcommand",
            "ERR ACL failure in script: User app has no permissions to run the 'hset' command",
        ];
        for refused in refusals {
            assert!(explained(refused).contains("+hset"), "{refused}");
        }
        assert_eq!(&*explained("OOM no memory"), "OOM no memory");
    }
}
