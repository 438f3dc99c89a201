//! How calls and answers look on the wire; `node.lua` says what they mean.

use std::{
    borrow::Cow,
    sync::{Arc, LazyLock},
    time::Duration,
};

use deadpool_redis::redis::{Cmd, Script, Value};
use redlock_proto::{Facts, JobVerb, MarkState, NodeTime, NodeVerb, Space, Standing};

use super::{error::explained, info, jobs};
use crate::node::{Answer, Reply, Request, Verb};

/// The one script, as text and as the hash under which servers cache it.
pub(super) struct NodeScript {
    hash: String,
}

/// The text never changes at run time; no input is ever made part of it.
const TEXT: &str = include_str!("node.lua");

pub(super) static SCRIPT: LazyLock<NodeScript> = LazyLock::new(|| NodeScript {
    hash: Script::new(TEXT).get_hash().to_owned(),
});

impl NodeScript {
    /// A call of the script, by its hash if the server has it.
    pub(super) fn call(&self, space: &Space, requests: &[Request], cached: bool) -> Cmd {
        let keys: Vec<Cow<'_, str>> = requests
            .iter()
            .flat_map(|request| keys_of(space, request))
            .collect();
        let counters: Vec<u16> = requests.iter().filter_map(counter_of).collect();
        let mut cmd = Cmd::new();
        match cached {
            true => cmd.arg("EVALSHA").arg(&self.hash),
            false => cmd.arg("EVAL").arg(TEXT),
        };
        cmd.arg(2 + keys.len());
        cmd.arg(space.mark().as_str());
        for key in &keys {
            cmd.arg(&**key);
        }
        cmd.arg(space.fence().as_str());
        let quarantine = space.quarantine();
        match !requests.is_empty() && requests.iter().all(Request::is_release) {
            true => cmd.arg("").arg(""),
            false => {
                let (length, step) = (millis(quarantine.length()), millis(quarantine.step()));
                let trusts = u8::from(quarantine.trusts_persistence());
                cmd.arg(quarantine.to_wire())
                    .arg(format!("{length} {step} {trusts}"))
            }
        };
        cmd.arg(match (has_twins(&keys), has_twins(&counters)) {
            (true, true) => "both",
            (true, false) => "keys",
            (false, true) => "counters",
            (false, false) => "",
        });
        match counters.is_empty() && !requests.iter().any(is_opening) {
            true => cmd.arg(0),
            false => cmd.arg(1 + counters.len()).arg("floor"),
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
    let [state, detail, time, since] = header;
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
    Ok(Look {
        standing: Some(Standing { state, time }),
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

/// State, detail, time, beginning of the quarantine.
const HEADER: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::OwnerId;
    use redlock_proto::{Quarantine, Shard};

    fn space() -> Space {
        Space::new("{t}", Quarantine::new(Duration::from_secs(30), 0.01))
    }

    fn lock(verb: Verb, key: &str) -> Request {
        Request::Lock {
            verb,
            key: key.into(),
            owner: OwnerId::from_random([0xab; 16]),
        }
    }

    fn acquire(key: &str) -> Request {
        let shard = Shard::of(&"a".into());
        let verb = Verb::Acquire {
            ttl: Duration::from_millis(2_500),
            shard,
            proposal: 7,
            block: 16,
        };
        lock(verb, key)
    }

    #[test]
    fn a_call_is_keys_then_what_is_common_then_the_operations() {
        let ttl = Duration::from_secs(1);
        let requests = [acquire("a"), lock(Verb::Release { ttl }, "b")];
        let packed = SCRIPT.call(&space(), &requests, true).get_packed_command();
        let packed = String::from_utf8(packed).unwrap();
        let args: Vec<_> = packed
            .split("\r\n")
            .filter(|part| !part.starts_with(['*', '$']))
            .collect();
        let owner = "ab".repeat(16);
        let tomb = format!("{{t}}:tomb:{owner}");
        let shard = Shard::of(&"a".into()).number().to_string();
        let expected = [
            "5",
            "{t}:mark",
            "a",
            &tomb,
            "b",
            "{t}:fence",
            "30000",
            "32480 937 0",
            "",
            "2",
            "floor",
            &shard,
            "acquire",
            &owner,
            "2500",
            "0000000000000007",
            "0000000000000022",
            "release",
            &owner,
            "",
        ];
        assert_eq!(args[0], "EVALSHA");
        assert_eq!(&args[2..], expected);
    }

    #[test]
    fn what_occurs_twice_is_said() {
        let ttl = Duration::from_secs(1);
        let extend = |key, counter: &str| {
            let write_back = Some((Shard::of(&counter.into()), 1));
            lock(Verb::Extend { ttl, write_back }, key)
        };
        let said = |requests: &[Request]| {
            let packed = SCRIPT.call(&space(), requests, true).get_packed_command();
            let packed = String::from_utf8(packed).unwrap();
            let (_, behind) = packed.split_once("\r\n32480 937 0\r\n$").unwrap();
            behind.split("\r\n").nth(1).unwrap().to_owned()
        };
        assert_eq!(said(&[extend("a", "x"), extend("b", "y")]), "");
        assert_eq!(said(&[extend("a", "x"), extend("a", "y")]), "keys");
        assert_eq!(said(&[extend("a", "x"), extend("b", "x")]), "counters");
        assert_eq!(said(&[extend("a", "x"), extend("a", "x")]), "both");
        // The tomb is the same.
        let buries = ["a", "b"].map(|key| lock(Verb::Bury { ttl }, key));
        let tick = Request::Node(NodeVerb::Tick);
        assert_eq!(said(&[&buries[..], &[tick]].concat()), "keys");
    }

    fn one(state: i64, first: i64, second: i64) -> Value {
        let values = [state, 5, 1_000, 3, first, second];
        Value::Array(values.map(Value::Int).to_vec())
    }

    #[test]
    fn answers_are_read() {
        let requests = [acquire("a")];
        let read = |value| answer(value, &requests);
        let taken = read(one(1, 0, 9)).unwrap();
        assert_eq!(taken.replies, [Ok(Reply::Taken { counter: 9 })]);
        let standing = taken.standing.unwrap();
        assert_eq!(standing.state, MarkState::Voting);
        assert_eq!(standing.time, NodeTime::from_micros(1_000));
        let held = |ms: Option<u64>| Reply::Held {
            remaining: ms.map(Duration::from_millis),
            counter: 2,
        };
        assert_eq!(read(one(1, 7, 2)).unwrap().replies, [Ok(held(Some(7)))]);
        assert_eq!(read(one(1, -1, 2)).unwrap().replies, [Ok(held(None))]);
        assert_eq!(read(one(1, -3, 0)).unwrap().replies, [Ok(Reply::Buried)]);
        assert_eq!(read(one(-1, 0, 0)).unwrap().standing, None);
        let quarantined = read(one(0, 0, 9)).unwrap().standing.unwrap();
        let expected = MarkState::Quarantined {
            ready_in: Duration::from_millis(5),
            since: NodeTime::from_micros(3),
        };
        assert_eq!(quarantined.state, expected);
    }

    #[test]
    fn a_counter_is_sixteen_digits() {
        let mut values = [1, 0, 1_000, 0, 0].map(Value::Int).to_vec();
        values.push(Value::BulkString(b"0000000000000042".to_vec()));
        let answer = answer(Value::Array(values), &[acquire("a")]).unwrap();
        assert_eq!(answer.replies, [Ok(Reply::Taken { counter: 42 })]);
    }

    #[test]
    fn an_error_of_one_operation_is_its_own() {
        let mut values = vec![Value::Int(1), Value::Int(0), Value::Int(1), Value::Int(0)];
        values.extend([Value::BulkString(b"OOM no".to_vec()), Value::Int(0)]);
        values.extend([Value::Int(0), Value::Int(3)]);
        let requests = [acquire("a"), acquire("b")];
        let answer = answer(Value::Array(values), &requests).unwrap();
        let error: Arc<str> = "OOM no".into();
        assert_eq!(
            answer.replies,
            [Err(error), Ok(Reply::Taken { counter: 3 })]
        );
    }

    #[test]
    fn only_a_replica_may_fail_to_look_at_its_mark() {
        let info = "redis_version:7.0.15\r\nrun_id:0f3a\r\nrole:slave\r\n";
        let inspect = [Request::Node(NodeVerb::Inspect)];
        let inspected = |info: &str| {
            let text = |text: &str| Value::BulkString(text.as_bytes().to_vec());
            let zeros = vec![Value::Int(0); 4];
            let values = [vec![text("READONLY no")], zeros, vec![text(info)]].concat();
            answer(Value::Array(values), &inspect).unwrap()
        };
        let replica = inspected(info);
        assert_eq!(replica.standing, None);
        assert!(matches!(&replica.replies[..], [Ok(Reply::Facts(facts))] if !facts.is_master));
        let refused = [Err("READONLY no".into())];
        assert_eq!(inspected(&info.replace("slave", "master")).replies, refused);
        assert_eq!(inspected("NOPERM").replies, refused);
    }

    #[test]
    fn answers_that_make_no_sense_are_refused() {
        for nonsense in [
            one(4, 0, 0),
            one(1, -5, 0),
            one(1, 0, -1),
            Value::Okay,
            Value::Array(vec![]),
            Value::Array(vec![Value::Nil; 6]),
        ] {
            assert_eq!(answer(nonsense, &[acquire("a")]), None);
        }
    }
}
