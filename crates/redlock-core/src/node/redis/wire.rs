//! How requests and replies look on the wire.

use std::{sync::Arc, sync::LazyLock, time::Duration};

use deadpool_redis::redis::{Cmd, Script, Value};

use crate::node::{Reply, Request, Verb};

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
    pub(super) fn call(&self, requests: &[Request], cached: bool) -> Cmd {
        let mut cmd = match cached {
            true => {
                let mut cmd = Cmd::new();
                cmd.arg("EVALSHA").arg(&self.hash);
                cmd
            }
            false => {
                let mut cmd = Cmd::new();
                cmd.arg("EVAL").arg(TEXT);
                cmd
            }
        };
        cmd.arg(requests.len());
        for request in requests {
            cmd.arg(request.key.as_str());
        }
        for request in requests {
            let (verb, ttl) = match request.verb {
                Verb::Acquire { ttl } => ("acquire", ttl),
                Verb::Extend { ttl } => ("extend", ttl),
                Verb::Release => ("release", Duration::ZERO),
            };
            cmd.arg(verb)
                .arg(request.owner.to_wire())
                .arg(milliseconds(ttl));
        }
        cmd
    }
}

/// The replies to a call with this many requests; `None` if that is not what the node sent.
pub(super) fn replies(value: Value, requests: usize) -> Option<Vec<Result<Reply, Arc<str>>>> {
    let Value::Array(values) = value else {
        return None;
    };
    if values.len() != requests {
        return None;
    }
    values.into_iter().map(reply).collect()
}

fn reply(value: Value) -> Option<Result<Reply, Arc<str>>> {
    let reply = match value {
        Value::Int(0) => Reply::Done,
        Value::Int(-1) => Reply::Held { remaining: None },
        Value::Int(-2) => Reply::Missing,
        Value::Int(ms) => Reply::Held {
            remaining: Some(Duration::from_millis(u64::try_from(ms).ok()?)),
        },
        Value::BulkString(error) => return Some(Err(String::from_utf8_lossy(&error).into())),
        Value::SimpleString(error) => return Some(Err(error.into())),
        _ => return None,
    };
    Some(Ok(reply))
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::OwnerId;

    #[test]
    fn a_call_is_keys_then_three_arguments_for_each() {
        let request = |verb, key: &str| Request {
            verb,
            key: key.into(),
            owner: OwnerId::from_random([0xab; 16]),
        };
        let requests = [
            request(
                Verb::Acquire {
                    ttl: Duration::from_millis(2_500),
                },
                "a",
            ),
            request(Verb::Release, "b"),
        ];
        let packed = SCRIPT.call(&requests, true).get_packed_command();
        let packed = String::from_utf8(packed).unwrap();
        let args: Vec<_> = packed
            .split("\r\n")
            .filter(|part| !part.starts_with(['*', '$']))
            .collect();
        let owner = "ab".repeat(16);
        let expected: [&str; 10] = [
            "2", "a", "b", "acquire", &owner, "2500", "release", &owner, "0", "",
        ];
        assert_eq!(args[0], "EVALSHA");
        assert_eq!(&args[2..], expected);
    }

    #[test]
    fn replies_that_make_no_sense_are_refused() {
        let int = |n| Value::Array(vec![Value::Int(n)]);
        let remaining = Some(Duration::from_millis(7));
        assert_eq!(replies(int(0), 1), Some(vec![Ok(Reply::Done)]));
        assert_eq!(
            replies(int(7), 1),
            Some(vec![Ok(Reply::Held { remaining })])
        );
        assert_eq!(
            replies(int(-1), 1),
            Some(vec![Ok(Reply::Held { remaining: None })])
        );
        assert_eq!(replies(int(-2), 1), Some(vec![Ok(Reply::Missing)]));
        for nonsense in [
            int(-3),
            Value::Okay,
            Value::Array(vec![]),
            Value::Array(vec![Value::Nil]),
        ] {
            assert_eq!(replies(nonsense, 1), None);
        }
    }
}
