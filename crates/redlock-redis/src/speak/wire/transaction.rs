//! Transactions as they are on the wire: plain requests, by the server's own commands.

use std::sync::Arc;

use deadpool_redis::redis::{Pipeline, Value};
use redlock_proto::{
    Done, Keyspace, Lock, Look, NodeTime, Request, Transaction, Verb, last_of_block,
};

use super::{super::args::Args, values::millis};

/// Commands that are sent together, of which the last one's answer says what became of all.
#[derive(Default)]
pub(crate) struct Block(Vec<Args>);

impl Block {
    /// Returns a transaction without commands.
    pub(crate) fn empty() -> Self {
        let mut block = Self::default();
        block.add("MULTI");
        block.add("EXEC");
        block
    }

    /// Returns what carries plain requests out, none of which are for one key; `keep` is the beginning of a call of the
    /// script that keeps and releases keys.
    ///
    /// The reading of the clock is the first of the commands: the server counts how long keys stay from the moment at which it
    /// begins with them.
    pub(crate) fn of(keyspace: &Keyspace, requests: &[Request], keep: [&'static str; 2]) -> Self {
        let mut block = Self::default();
        let looks = !requests.iter().all(Request::is_release);
        if looks {
            block.add("MULTI");
            block.add("TIME");
        }
        block.keep(keyspace, requests, keep);
        block.take(keyspace, requests);
        if looks {
            let found = block.add("MGET").push(keyspace.mark().as_str());
            for (lock, ..) in acquires(requests) {
                found.push_parts(keyspace.parts_of(lock.keys.first()));
            }
            block.add("INFO").push("replication");
            block.add("EXEC");
        }
        block
    }

    fn keep(&mut self, keyspace: &Keyspace, requests: &[Request], keep: [&'static str; 2]) {
        let others = || requests.iter().filter_map(kept);
        let count = others().count();
        if count == 0 {
            return;
        }
        // An extension frees no key, so a call that only extends needs no lines.
        let releases = others().any(|(_, ttl)| ttl.is_none());
        let lines = if releases { count } else { 0 };
        let [word, script] = keep;
        let call = self.add(word).push(script);
        call.push_number((count + lines) as u64);
        for (lock, _) in others() {
            call.push_parts(keyspace.parts_of(lock.keys.first()));
        }
        for (lock, _) in others().take(lines) {
            call.push_parts(keyspace.line_parts(lock.keys.first()));
        }
        let mut text = String::new();
        for (lock, ttl) in others() {
            text.clear();
            lock.owner.write(&mut text);
            call.push(&text);
            match ttl {
                Some(ttl) => call.push_number(ttl),
                None => call.push(""),
            };
        }
    }

    fn take(&mut self, keyspace: &Keyspace, requests: &[Request]) {
        let mut text = String::new();
        for (lock, ttl, ..) in acquires(requests) {
            text.clear();
            lock.owner.write(&mut text);
            let key = keyspace.parts_of(lock.keys.first());
            let set = self.add("SET").push_parts(key);
            set.push(&text).push("NX").push("PX").push_number(ttl);
        }
        if acquires(requests).next().is_none() {
            return;
        }
        let before = self.add("ZMSCORE").push(keyspace.fence().as_str());
        before.push("floor");
        for (lock, ..) in acquires(requests) {
            before.push_number(lock.keys.first_shard().number().into());
        }
        let counted = self.add("ZADD").push(keyspace.fence().as_str());
        counted.push("GT");
        for (lock, _, last) in acquires(requests) {
            counted.push_number(last);
            counted.push_number(lock.keys.first_shard().number().into());
        }
    }

    fn add(&mut self, word: &str) -> &mut Args {
        let mut command = Args::with_capacity(ROOM);
        command.push(word);
        self.0.push(command);
        // invariant: it was just added
        self.0.last_mut().expect("there is one")
    }

    /// Returns the commands.
    pub(crate) fn commands(&self) -> &[Args] {
        &self.0
    }

    /// Returns the commands as redis-rs has them.
    pub(crate) fn to_redis(&self) -> Pipeline {
        let mut pipeline = Pipeline::with_capacity(self.0.len());
        for args in &self.0 {
            pipeline.add_command(args.to_redis());
        }
        pipeline
    }
}

/// Reads the answer to a transaction with these requests; `None` if that is not what a server sends.
pub(crate) fn transaction(value: Value, requests: &[Request]) -> Option<Transaction> {
    let looks = !requests.iter().all(Request::is_release);
    let Value::Array(values) = value else {
        return None;
    };
    if !looks {
        return Some(Transaction {
            look: None,
            floor: None,
            done: done(requests, values, Vec::new())?,
        });
    }
    let mut values = values.into_iter();
    let time = time(&values.next()?);
    let kept = if requests.iter().any(|request| kept(request).is_some()) {
        list(values.next()?)
    } else {
        Vec::new()
    };
    let takes = acquires(requests).count();
    let sets: Vec<Value> = values.by_ref().take(takes).collect();
    let (mut before, mut is_counted) = (Vec::new(), false);
    if takes > 0 {
        before = list(values.next()?);
        is_counted = matches!(values.next()?, Value::Int(_));
    }
    let mut found = list(values.next()?).into_iter();
    let mark = found.next();
    let replication = values.next()?;
    if values.next().is_some() || sets.len() != takes {
        return None;
    }
    let mut before = before.iter().map(score);
    let floor = before.next().flatten();
    let mut text = String::new();
    let taken = acquires(requests).zip(sets).map(|((lock, ..), set)| {
        text.clear();
        lock.owner.write(&mut text);
        let is_its =
            matches!(found.next(), Some(Value::BulkString(owner)) if owner == text.as_bytes());
        Done::Took {
            is_owner: set == Value::Okay && is_its,
            before: before.next().flatten(),
            is_counted,
        }
    });
    let taken = taken.collect();
    Some(Transaction {
        look: look(mark, &replication, time),
        floor,
        done: done(requests, kept, taken)?,
    })
}

/// Puts what became of the keys together, in the order of the requests.
fn done(requests: &[Request], kept: Vec<Value>, taken: Vec<Done>) -> Option<Vec<Done>> {
    let (mut kept, mut taken) = (kept.into_iter(), taken.into_iter());
    let done = requests.iter().map(|request| {
        if self::kept(request).is_none() {
            return taken.next();
        }
        Some(match kept.next() {
            Some(Value::Int(done)) => Done::Compared {
                is_owner: done == 1,
                is_awaited: done == AWAITED,
            },
            _ => Done::Failed,
        })
    });
    done.collect()
}

fn look(mark: Option<Value>, replication: &Value, time: Option<NodeTime>) -> Option<Look> {
    let replication = match replication {
        Value::BulkString(text) => std::str::from_utf8(text).ok()?,
        Value::VerbatimString { text, .. } => text,
        _ => return None,
    };
    let data = replication.split_once("master_replid:")?.1;
    let data = data.split_once('\r')?.0;
    let mark = match mark? {
        Value::BulkString(mark) => String::from_utf8(mark).ok(),
        _ => None,
    };
    Some(Look {
        mark,
        is_master: replication.contains("role:master\r"),
        data: Arc::from(data),
        time: time?,
    })
}

fn time(value: &Value) -> Option<NodeTime> {
    let Value::Array(parts) = value else {
        return None;
    };
    let [seconds, micros] = &parts[..] else {
        return None;
    };
    let micros = number(seconds)?
        .checked_mul(1_000_000)?
        .checked_add(number(micros)?)?;
    Some(NodeTime::from_micros(micros))
}

/// Reads a counter; `None` if it is damaged.
fn score(value: &Value) -> Option<u64> {
    match value {
        Value::Nil => Some(0),
        // What servers say over RESP3.
        Value::Double(score) if *score >= 0.0 && score.fract() == 0.0 && *score < 1e16 => {
            // invariant: it is a whole number in range
            Some(*score as u64)
        }
        value => number(value),
    }
}

fn number(value: &Value) -> Option<u64> {
    match value {
        Value::BulkString(text) => std::str::from_utf8(text).ok()?.parse().ok(),
        Value::Int(number) => u64::try_from(*number).ok(),
        _ => None,
    }
}

/// Returns the values of a list; none if it is an error.
fn list(value: Value) -> Vec<Value> {
    match value {
        Value::Array(values) => values,
        _ => Vec::new(),
    }
}

/// What the script answers for a key that callers wait for in line, and that it was to release.
const AWAITED: i64 = 2;

/// As many bytes as most commands of a transaction for one key take.
const ROOM: usize = 192;

/// Returns the acquires among requests: the lock, the time to live, and the last of the tokens proposed.
fn acquires(requests: &[Request]) -> impl Iterator<Item = (&Lock, u64, u64)> {
    requests.iter().filter_map(|request| match request {
        Request::Lock {
            verb:
                Verb::Acquire {
                    ttl,
                    proposal,
                    block,
                    ..
                },
            lock,
        } => Some((
            &**lock,
            millis(*ttl).max(1),
            last_of_block(*proposal, *block),
        )),
        _ => None,
    })
}

/// Returns the lock of a request that keeps or releases a key, and for how many milliseconds it keeps it.
fn kept(request: &Request) -> Option<(&Lock, Option<u64>)> {
    match request {
        Request::Lock { verb, lock } => match verb {
            Verb::Extend { ttl, .. } => Some((lock, Some(millis(*ttl).max(1)))),
            Verb::Release { .. } => Some((lock, None)),
            _ => None,
        },
        _ => None,
    }
}
