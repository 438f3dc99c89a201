use redlock_core::deadpool_redis::redis::{RedisError, RedisResult, Value, cmd, from_redis_value};

use super::{Probe, words};

/// A look at the names of all keys of one node, a part at a time.
#[derive(Debug)]
pub(crate) struct Scan {
    pattern: Option<String>,
    /// Where the next part begins; `None` after the last one.
    cursor: Option<String>,
}

impl Scan {
    /// Returns a look at the keys that a pattern matches, or else at all, which has not begun.
    pub(crate) fn new(pattern: Option<String>) -> Self {
        Self {
            pattern,
            cursor: Some("0".to_owned()),
        }
    }

    /// Returns the next keys, with `None` for a name that is no text; a key may be among them twice.
    ///
    /// Returns `None` instead of a list when the look has ended.
    pub(crate) async fn next(
        &mut self,
        probe: &mut Probe,
    ) -> RedisResult<Option<Vec<Option<String>>>> {
        let Some(cursor) = &self.cursor else {
            return Ok(None);
        };
        let mut scan = cmd("SCAN");
        scan.arg(cursor);
        if let Some(pattern) = &self.pattern {
            scan.arg("MATCH").arg(pattern);
        }
        let answer = probe.ask(scan.arg("COUNT").arg(PART)).await?;
        let (next, keys): (String, Vec<Value>) = from_redis_value(answer)?;
        self.cursor = (next != "0").then_some(next);
        let names = keys.into_iter().map(|key| from_redis_value(key).ok());
        Ok(Some(names.collect()))
    }
}

/// Returns why a verb cannot scan, in words.
pub(crate) fn may_not_scan(error: &RedisError, verb: &str) -> String {
    match error.code() {
        Some("NOPERM") => {
            format!("its user may not scan; {verb} takes +scan beside what a client needs")
        }
        _ => words(error),
    }
}

/// How many keys a node is asked for at a time, which keep it busy for less than a millisecond.
const PART: usize = 1_000;
