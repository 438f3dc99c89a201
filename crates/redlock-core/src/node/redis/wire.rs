//! How calls and answers look on the wire; `node.lua` says what they mean.

#[cfg(test)]
mod tests;

use std::{
    borrow::Cow,
    sync::{Arc, LazyLock},
    time::Duration,
};

use deadpool_redis::redis::{Cmd, Script, Value};
use redlock_proto::{Facts, JobVerb, MarkState, NodeTime, NodeVerb, RunId, Space, Standing, Verb};

use super::{error::explained, info, jobs};
use crate::node::{Answer, Reply, Request};

/// The one script, as text and as the hash under which servers cache it.
pub(super) struct NodeScript {
    hash: String,
}

/// The text never changes at run time; no input is ever made part of it.
const TEXT: &str = include_str!("node.lua");

pub(super) static SCRIPT: LazyLock<NodeScript> = LazyLock::new(|| NodeScript {
    hash: Script::new(TEXT).get_hash().to_owned(),
});

/// Whether these words are a sentence that the script has in it.
pub(super) fn is_of_the_script(words: &str) -> bool {
    words.split(' ').count() > 3 && TEXT.contains(&format!("'{words}'"))
}

impl NodeScript {
    /// Hands the script over, to stay until all scripts are dropped.
    pub(super) fn load() -> Cmd {
        let mut cmd = Cmd::new();
        cmd.arg("SCRIPT").arg("LOAD").arg(TEXT);
        cmd
    }

    /// A call of the script, by its hash if the server has it.
    pub(super) fn call(&self, space: &Space, requests: &[Request], cached: bool) -> Cmd {
        let keys: Vec<Cow<'_, str>> = requests
            .iter()
            .flat_map(|request| keys_of(space, request))
            .collect();
        let counters: Vec<u16> = requests.iter().filter_map(counter_of).collect();
        let mut cmd = Cmd::new();
        if cached {
            cmd.arg("EVALSHA").arg(&self.hash)
        } else {
            cmd.arg("EVAL").arg(TEXT)
        };
        cmd.arg(2 + keys.len());
        cmd.arg(space.mark().as_str());
        for key in &keys {
            cmd.arg(&**key);
        }
        cmd.arg(space.fence().as_str());
        let quarantine = space.quarantine();
        if !requests.is_empty() && requests.iter().all(Request::is_release) {
            cmd.arg("").arg("")
        } else {
            let (length, step) = (millis(quarantine.length()), millis(quarantine.step()));
            let trusts = u8::from(quarantine.trusts_persistence());
            cmd.arg(quarantine.to_wire())
                .arg(format!("{length} {step} {trusts}"))
        };
        cmd.arg(match (has_twins(&keys), has_twins(&counters)) {
            (true, true) => "both",
            (true, false) => "keys",
            (false, true) => "counters",
            (false, false) => "",
        });
        if counters.is_empty() && !requests.iter().any(is_opening) {
            cmd.arg(0)
        } else {
            cmd.arg(1 + counters.len()).arg("floor")
        };
        for counter in counters {
            cmd.arg(counter);
        }
        for request in requests {
            operation(&mut cmd, request);
        }
        cmd
    }
}

/// The keys of a request, in the order in which the script expects them.
fn keys_of<'a>(space: &'a Space, request: &'a Request) -> Vec<Cow<'a, str>> {
    let tomb = |owner| Cow::Owned(space.tomb(owner).as_str().to_owned());
    match request {
        Request::Node(NodeVerb::Open { .. }) => vec![space.horizon().as_str().into()],
        Request::Node(_) => Vec::new(),
        Request::Job { verb, job } => jobs::keys_of(space, verb, job),
        Request::Lock { verb, key, owner } => match verb {
            Verb::Acquire { .. } | Verb::Heal { .. } | Verb::Bury { .. } => {
                vec![key.as_str().into(), tomb(*owner)]
            }
            Verb::Extend { .. } | Verb::Release { .. } => vec![key.as_str().into()],
        },
    }
}

/// The shard whose counter a request needs.
fn counter_of(request: &Request) -> Option<u16> {
    match request {
        Request::Lock {
            verb:
                Verb::Acquire { shard, .. }
                | Verb::Heal { shard, .. }
                | Verb::Extend {
                    write_back: Some((shard, _)),
                    ..
                },
            ..
        }
        | Request::Job {
            verb: JobVerb::Claim { shard, .. } | JobVerb::Commit { shard, .. },
            ..
        } => Some(shard.number()),
        _ => None,
    }
}

fn is_opening(request: &Request) -> bool {
    matches!(request, Request::Node(NodeVerb::Open { .. }))
}

/// Whether two of a call's few items are the same.
fn has_twins<T: PartialEq>(items: &[T]) -> bool {
    let mut numbered = items.iter().enumerate();
    numbered.any(|(number, item)| items[..number].contains(item))
}

fn operation(cmd: &mut Cmd, request: &Request) {
    match request {
        Request::Lock { verb, owner, .. } => {
            let (name, ttl) = match verb {
                Verb::Acquire { ttl, .. } => ("acquire", Some(ttl)),
                Verb::Extend {
                    ttl,
                    write_back: None,
                } => ("extend", Some(ttl)),
                Verb::Extend { ttl, .. } => ("write_back", Some(ttl)),
                Verb::Heal { ttl, .. } => ("heal", Some(ttl)),
                Verb::Release { .. } => ("release", None),
                Verb::Bury { ttl } => ("bury", Some(ttl)),
            };
            cmd.arg(name).arg(owner.to_wire());
            if let Some(ttl) = ttl {
                // Servers have no use for less than a millisecond.
                cmd.arg(millis(*ttl).max(1));
            }
            match *verb {
                Verb::Acquire {
                    proposal, block, ..
                } => {
                    let last = proposal.saturating_add(u64::from(block.max(1)) - 1);
                    cmd.arg(digits(proposal)).arg(digits(last));
                }
                Verb::Extend {
                    write_back: Some((_, counter)),
                    ..
                }
                | Verb::Heal { counter, .. } => {
                    cmd.arg(digits(counter));
                }
                _ => {}
            }
        }
        Request::Job { verb, .. } => jobs::operation(cmd, verb),
        Request::Node(NodeVerb::Tick) => drop(cmd.arg("tick")),
        Request::Node(NodeVerb::Inspect) => drop(cmd.arg("inspect")),
        Request::Node(NodeVerb::Survey) => drop(cmd.arg("survey")),
        Request::Node(NodeVerb::Open {
            floor,
            since,
            horizon,
        }) => {
            let horizon = horizon.map(|horizon| digits(horizon.as_millis()));
            cmd.arg("open")
                .arg(digits(*floor))
                .arg(since.as_micros())
                .arg(horizon.unwrap_or_default());
        }
    }
}

/// A counter or a tick as nodes store it: of one length, so that they need not read it to compare it.
pub(super) fn digits(counter: u64) -> String {
    format!("{counter:016}")
}

/// The answer to a call with these requests; `None` if that is not what a node sends.
pub(super) fn answer(value: Value, requests: &[Request]) -> Option<Answer> {
    let Value::Array(values) = value else {
        return None;
    };
    if values.len() != HEADER + 2 * requests.len() {
        return None;
    }
    let mut values = values.into_iter();
    let mut header = [const { Value::Nil }; HEADER];
    for value in &mut header {
        *value = values.next()?;
    }
    let Look { standing, error } = look(header).ok()?;
    let mut replies = Vec::with_capacity(requests.len());
    for request in requests {
        let (first, second) = (values.next()?, values.next()?);
        replies.push(match (text(first), request) {
            (Ok(failed), _) => Err(explained(&failed)),
            (Err(_), Request::Node(NodeVerb::Inspect)) => {
                inspected(&text(second).ok()?, error.as_ref()).map(Reply::Facts)
            }
            (Err(Value::Int(first)), Request::Job { verb, .. }) => {
                Ok(jobs::reply(first, second, verb)?)
            }
            (Err(first), _) => Ok(reply(&first, second, request)?),
        });
    }
    Some(Answer { standing, replies })
}

/// What a node is; a master that could not look at its mark is no use, and its error says why.
///
/// A replica cannot, which is plain, and it is for its facts to say what to do about it.
fn inspected(info: &str, look_error: Option<&Arc<str>>) -> Result<Facts, Arc<str>> {
    match (info::facts(info), look_error) {
        (Ok(facts), Some(_)) if !facts.is_master => Ok(facts),
        (_, Some(error)) => Err(Arc::clone(error)),
        (facts, None) => facts,
    }
}

/// What came of the look at the mark; nothing, if no request needed it.
#[derive(Default)]
struct Look {
    standing: Option<Standing>,
    /// It is also the answer of each request that needed the look, but for an inspection.
    error: Option<Arc<str>>,
}

fn look(header: [Value; HEADER]) -> Result<Look, Nonsense> {
    let [state, detail, time, since, run] = header;
    let code = match state {
        Value::Int(code) => code,
        error => {
            let error = text(error).map_err(|_| Nonsense)?;
            return Ok(Look {
                error: Some(explained(&error)),
                ..Look::default()
            });
        }
    };
    if code == -1 {
        return Ok(Look::default());
    }
    let since = micros(&since)?;
    let state = match (code, detail) {
        (1, _) => MarkState::Voting,
        (0, Value::Int(ms)) => MarkState::Quarantined {
            ready_in: Duration::from_millis(u64::try_from(ms).map_err(|_| Nonsense)?),
            since,
        },
        (2, _) => MarkState::Aged { since },
        (3, theirs) => MarkState::Unlike {
            theirs: text(theirs).map_err(|_| Nonsense)?.into(),
        },
        _ => return Err(Nonsense),
    };
    let time = micros(&time)?;
    let run = RunId::from(&*text(run).map_err(|_| Nonsense)?);
    Ok(Look {
        standing: Some(Standing { state, time, run }),
        ..Look::default()
    })
}

fn micros(value: &Value) -> Result<NodeTime, Nonsense> {
    match value {
        Value::Int(micros) => u64::try_from(*micros)
            .map(NodeTime::from_micros)
            .map_err(|_| Nonsense),
        _ => Err(Nonsense),
    }
}

/// Not what a node sends.
struct Nonsense;

fn reply(first: &Value, second: Value, request: &Request) -> Option<Reply> {
    let Value::Int(first) = first else {
        return None;
    };
    let counter = match text(second) {
        Ok(digits) => digits.parse().ok()?,
        Err(Value::Int(none)) => u64::try_from(none).ok()?,
        Err(_) => return None,
    };
    Some(match *first {
        0 => match request {
            Request::Lock {
                verb: Verb::Acquire { .. },
                ..
            } => Reply::Taken { counter },
            Request::Node(NodeVerb::Survey) => Reply::Greatest(counter),
            _ => Reply::Done,
        },
        code => refusal(code, counter)?,
    })
}

/// What nodes say alike of locks and of jobs, unless they did what they were asked to.
pub(super) fn refusal(code: i64, counter: u64) -> Option<Reply> {
    Some(match code {
        -1 => Reply::Held {
            remaining: None,
            counter,
        },
        -2 => Reply::Missing,
        -3 => Reply::Buried,
        -4 => Reply::Unlike,
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

/// State, detail, time, beginning of the quarantine, the run.
const HEADER: usize = 5;
