//! Transactions as they are on the wire: plain requests, by the server's own commands.

use std::sync::Arc;

use deadpool_redis::redis::{Pipeline, Value};
use redlock_proto::{
    Done, Keyspace, Lock, Look, NodeTime, Request, Transaction, Verb, last_of_block,
};

use super::{
    super::args::{Args, ArgsPosition},
    values::millis,
};

/// Commands that are sent together, of which the last one's answer says what became of all.
#[derive(Default)]
pub(crate) struct Block {
    /// The arguments of all of them.
    args: Args,
    /// Where each of them begins.
    starts: Vec<ArgsPosition>,
}

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
        let mut block = Self {
            args: Args::with_capacity(ROOM * (1 + requests.len())),
            starts: Vec::with_capacity(COMMANDS + requests.len()),
        };
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

    /// Begins a command, to which arguments are added next.
    fn add(&mut self, word: &str) -> &mut Args {
        self.starts.push(self.args.end());
        self.args.push(word)
    }

    /// Returns how many commands there are.
    pub(crate) const fn len(&self) -> usize {
        self.starts.len()
    }

    /// Writes the commands behind what is to be sent.
    pub(crate) fn write(&self, output: &mut Vec<u8>) {
        output.reserve(self.args.bytes() + HEAD * self.len());
        for (start, end) in self.commands() {
            self.args.write_part(start, end, output);
        }
    }

    /// Returns the commands as redis-rs has them.
    pub(crate) fn to_redis(&self) -> Pipeline {
        let mut pipeline = Pipeline::with_capacity(self.len());
        for (start, end) in self.commands() {
            pipeline.add_command(self.args.part_to_redis(start, end));
        }
        pipeline
    }

    /// Returns the arguments of all commands.
    #[cfg(test)]
    pub(super) const fn args(&self) -> &Args {
        &self.args
    }

    /// Returns where each command begins and ends.
    fn commands(&self) -> impl Iterator<Item = (ArgsPosition, ArgsPosition)> {
        let ends = self.starts.iter().copied().skip(1);
        let ends = ends.chain([self.args.end()]);
        self.starts.iter().copied().zip(ends)
    }
}

/// Reads the answer to a transaction with these requests; `None` if that is not what a server sends.
pub(crate) fn transaction(value: Value, requests: &[Request]) -> Option<Transaction> {
    let looks = !requests.iter().all(Request::is_release);
    let Value::Array(mut values) = value else {
        return None;
    };
    if !looks {
        return Some(Transaction {
            look: None,
            floor: None,
            done: done(requests, &values, std::iter::empty())?,
        });
    }
    let (first, rest) = values.split_first_mut()?;
    let time = time(first);
    let has_kept = requests.iter().any(|request| kept(request).is_some());
    let (kept, rest) = rest.split_at_mut_checked(usize::from(has_kept))?;
    let kept = kept.first_mut().map_or(&mut [][..], list);
    let takes = acquires(requests).count();
    let (sets, rest) = rest.split_at_mut_checked(takes)?;
    let (counts, rest) = rest.split_at_mut_checked(if takes > 0 { 2 } else { 0 })?;
    let is_counted = matches!(counts.last(), Some(Value::Int(_)));
    let before = counts.first_mut().map_or(&mut [][..], list);
    let [found, replication] = rest else {
        return None;
    };
    let (mark, owners) = list(found).split_first_mut().unzip();
    let mut before = before.iter().map(score);
    let floor = before.next().flatten();
    let mut owners = owners.into_iter().flatten();
    let mut text = String::new();
    let taken = acquires(requests).zip(sets).map(|((lock, ..), set)| {
        text.clear();
        lock.owner.write(&mut text);
        let is_its =
            matches!(owners.next(), Some(Value::BulkString(owner)) if *owner == text.as_bytes());
        Done::Took {
            is_owner: *set == Value::Okay && is_its,
            before: before.next().flatten(),
            is_counted,
        }
    });
    Some(Transaction {
        floor,
        done: done(requests, kept, taken)?,
        look: look(mark, replication, time),
    })
}

/// Puts what became of the keys together, in the order of the requests.
fn done(
    requests: &[Request],
    kept: &[Value],
    mut taken: impl Iterator<Item = Done>,
) -> Option<Vec<Done>> {
    let mut kept = kept.iter();
    let done = requests.iter().map(|request| {
        if self::kept(request).is_none() {
            return taken.next();
        }
        Some(match kept.next() {
            Some(&Value::Int(done)) => Done::Compared {
                is_owner: done == 1,
                is_awaited: done == AWAITED,
            },
            _ => Done::Failed,
        })
    });
    done.collect()
}

fn look(mark: Option<&mut Value>, replication: &Value, time: Option<NodeTime>) -> Option<Look> {
    let replication = match replication {
        Value::BulkString(text) => std::str::from_utf8(text).ok()?,
        Value::VerbatimString { text, .. } => text,
        _ => return None,
    };
    // It is near the end, and the role is near the beginning.
    let data = replication.rsplit_once("master_replid:")?.1;
    let data = data.split_once('\r')?.0;
    let mark = match std::mem::replace(mark?, Value::Nil) {
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
fn list(value: &mut Value) -> &mut [Value] {
    match value {
        Value::Array(values) => values,
        _ => &mut [],
    }
}

/// What the script answers for a key that callers wait for in line, and that it was to release.
const AWAITED: i64 = 2;

/// As many bytes as a transaction has for one key, or without any.
const ROOM: usize = 384;

/// As many commands as a transaction has without the keys that it takes.
const COMMANDS: usize = 8;

/// As many bytes as the head of most commands has.
const HEAD: usize = 8;

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
