//! How calls and answers look on the wire; `node.lua` says what they mean.

use std::{
    sync::{Arc, LazyLock},
    time::Duration,
};

use deadpool_redis::redis::{Cmd, Script, Value};
use redlock_proto::{Facts, MarkState, NodeTime, NodeVerb, Space, Standing};

use super::{error::explained, info};
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
        let mut cmd = Cmd::new();
        match cached {
            true => cmd.arg("EVALSHA").arg(&self.hash),
            false => cmd.arg("EVAL").arg(TEXT),
        };
        let keys = requests.iter().map(keys_of).sum::<usize>();
        cmd.arg(2 + keys);
        cmd.arg(space.mark().as_str()).arg(space.fence().as_str());
        for request in requests {
            if let Request::Lock { key, owner, .. } = request {
                cmd.arg(key.as_str());
                if keys_of(request) == 2 {
                    cmd.arg(space.tomb(*owner).as_str());
                }
            }
        }
        let quarantine = space.quarantine();
        cmd.arg(quarantine.to_wire())
            .arg(millis(quarantine.length()))
            .arg(millis(quarantine.step()))
            .arg(u8::from(quarantine.trusts_persistence()));
        for request in requests {
            operation(&mut cmd, request);
        }
        cmd
    }
}

fn keys_of(request: &Request) -> usize {
    match request {
        Request::Node(_) => 0,
        Request::Lock { verb, .. } => match verb {
            Verb::Acquire { .. } | Verb::Heal { .. } | Verb::Bury { .. } => 2,
            Verb::Extend { .. } | Verb::Release { .. } => 1,
        },
    }
}

fn operation(cmd: &mut Cmd, request: &Request) {
    match request {
        Request::Lock { verb, owner, .. } => {
            let none = (0, 0, 0);
            let (name, ttl, (shard, counter, tokens)) = match *verb {
                Verb::Acquire {
                    ttl,
                    shard,
                    proposal,
                    block,
                } => ("acquire", ttl, (shard.number(), proposal, block.max(1))),
                Verb::Extend { ttl, write_back } => {
                    let counter = write_back.map(|(shard, counter)| (shard.number(), counter, 0));
                    ("extend", ttl, counter.unwrap_or(none))
                }
                Verb::Heal {
                    ttl,
                    shard,
                    counter,
                } => ("heal", ttl, (shard.number(), counter, 0)),
                Verb::Release { .. } => ("release", Duration::ZERO, none),
                Verb::Bury { ttl } => ("bury", ttl, none),
            };
            cmd.arg(name)
                .arg(owner.to_wire())
                .arg(millis(ttl))
                .arg(shard)
                .arg(counter)
                .arg(tokens);
        }
        Request::Node(verb) => {
            let (name, floor, since, bless) = match *verb {
                NodeVerb::Tick => ("tick", 0, 0, false),
                NodeVerb::Inspect => ("inspect", 0, 0, false),
                NodeVerb::Survey => ("survey", 0, 0, false),
                NodeVerb::Open {
                    floor,
                    since,
                    bless,
                } => ("open", floor, since.as_micros(), bless),
            };
            cmd.arg(name)
                .arg(0)
                .arg(0)
                .arg(floor)
                .arg(since)
                .arg(u8::from(bless));
        }
    }
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
        replies.push(match text(first) {
            Ok(text) if is_inspection(request) => {
                inspected(&text, error.as_ref()).map(Reply::Facts)
            }
            Ok(error) => Err(explained(&error)),
            Err(first) => Ok(reply(&first, &second, request)?),
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

fn reply(first: &Value, second: &Value, request: &Request) -> Option<Reply> {
    let (Value::Int(first), Value::Int(second)) = (first, second) else {
        return None;
    };
    let counter = u64::try_from(*second).ok()?;
    Some(match *first {
        0 => match request {
            Request::Lock {
                verb: Verb::Acquire { .. },
                ..
            } => Reply::Taken { counter },
            Request::Node(NodeVerb::Survey) => Reply::Greatest(counter),
            _ => Reply::Done,
        },
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

fn is_inspection(request: &Request) -> bool {
    matches!(request, Request::Node(NodeVerb::Inspect))
}

fn text(value: Value) -> Result<String, Value> {
    match value {
        Value::BulkString(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        Value::SimpleString(text) => Ok(text),
        other => Err(other),
    }
}

fn millis(duration: Duration) -> u64 {
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
    fn a_call_is_keys_then_six_arguments_for_each() {
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
        let expected: [&str; 23] = [
            "5",
            "{t}:mark",
            "{t}:fence",
            "a",
            &tomb,
            "b",
            "30000",
            "32480",
            "937",
            "0",
            "acquire",
            &owner,
            "2500",
            &shard,
            "7",
            "16",
            "release",
            &owner,
            "0",
            "0",
            "0",
            "0",
            "",
        ];
        assert_eq!(args[0], "EVALSHA");
        assert_eq!(&args[2..], expected);
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
            let zeros = [const { Value::Int(0) }; 3];
            let values = [vec![text("READONLY no")], zeros.into(), vec![text(info)]];
            let values = [values.concat(), vec![Value::Int(0)]].concat();
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
