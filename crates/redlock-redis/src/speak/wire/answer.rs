//! The script's results, read as answers.

use std::{sync::Arc, time::Duration};

use deadpool_redis::redis::Value;
use redlock_proto::{
    Answer, MarkState, NodeTime, NodeVerb, Reply, Request, RunId, ServerInfo, Standing, Verb,
};

use super::{
    super::{
        error::{NONSENSE, explained, wrong_server},
        error_texts::raised,
    },
    codes, jobs,
    values::{counted, refusal, text},
};
use crate::{CallError, CallResult};

/// Reads the answer to a call with these requests.
///
/// # Errors
///
/// The server says that it cannot vote because of what it is, or the answer is not what a node sends.
pub(crate) fn read(value: Value, requests: &[Request]) -> CallResult {
    if let Some(error) = refused_by(&value, requests) {
        return Err(error);
    }
    answer(value, requests).ok_or_else(|| CallError::lost(NONSENSE))
}

/// Reads the answer of a server that may vote; `None` if that is not what a node sends.
fn answer(value: Value, requests: &[Request]) -> Option<Answer> {
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
    let MarkLook { standing, error } = look(header).ok()?;
    let mut replies = Vec::with_capacity(requests.len());
    for request in requests {
        let (first, second) = (values.next()?, values.next()?);
        replies.push(match (text(first), request) {
            (Ok(failed), _) => Err(explained(&failed)),
            (Err(_), Request::Node(NodeVerb::Inspect)) => {
                inspected(&text(second).ok()?, error.as_ref()).map(Reply::ServerInfo)
            }
            (Err(Value::Int(first)), Request::Job { verb, .. }) => {
                Ok(jobs::reply(first, second, verb)?)
            }
            (Err(first), _) => Ok(reply(&first, second, request)?),
        });
    }
    Some(Answer { standing, replies })
}

/// Returns the error of a server that says that it cannot vote because of what it is: then it has refused each write of
/// the call.
///
/// In answer to an inspection a server says itself what it is.
fn refused_by(value: &Value, requests: &[Request]) -> Option<CallError> {
    let Value::Array(values) = value else {
        return None;
    };
    let is_inspection = |request: &Request| matches!(request, Request::Node(NodeVerb::Inspect));
    if requests.iter().any(is_inspection) {
        return None;
    }
    let firsts = values.iter().skip(HEADER).step_by(2);
    let mut errors = values.iter().take(1).chain(firsts).filter_map(error_text);
    errors.find_map(|error| {
        let raised = raised(error);
        wrong_server(raised.split(' ').next().unwrap_or_default(), error)
    })
}

/// Returns the text of a value that the script answers where something failed.
fn error_text(value: &Value) -> Option<&str> {
    match value {
        Value::BulkString(bytes) => std::str::from_utf8(bytes).ok(),
        Value::SimpleString(text) => Some(text),
        _ => None,
    }
}

/// Reads what a node is; a master that could not look at its mark is no use, and its error says why.
///
/// A replica cannot look at its mark; its server info then says what to do.
fn inspected(info: &str, look_error: Option<&Arc<str>>) -> Result<ServerInfo, Arc<str>> {
    match (server_info(info), look_error) {
        (Ok(server_info), Some(_)) if !server_info.is_master => Ok(server_info),
        (_, Some(error)) => Err(Arc::clone(error)),
        (server_info, None) => server_info,
    }
}

/// What came of the look at the mark; nothing, if no request needed it.
#[derive(Default)]
struct MarkLook {
    standing: Option<Standing>,
    /// It is also the answer of each request that needed the look, but for an inspection.
    error: Option<Arc<str>>,
}

fn look(header: [Value; HEADER]) -> Result<MarkLook, Nonsense> {
    let [state, detail, time, since, run] = header;
    let code = match state {
        Value::Int(code) => code,
        error => {
            let error = text(error).map_err(|_| Nonsense)?;
            return Ok(MarkLook {
                error: Some(explained(&error)),
                ..MarkLook::default()
            });
        }
    };
    if code == -1 {
        return Ok(MarkLook::default());
    }
    let since = micros(&since)?;
    let state = match (code, detail) {
        (1, _) => MarkState::Voting,
        (0, Value::Int(ms)) => MarkState::Quarantined {
            ready_in: Duration::from_millis(u64::try_from(ms).map_err(|_| Nonsense)?),
            since,
        },
        (2, _) => MarkState::Aged { since },
        (3, theirs) => MarkState::PolicyMismatch {
            theirs: text(theirs).map_err(|_| Nonsense)?.into(),
        },
        _ => return Err(Nonsense),
    };
    let time = micros(&time)?;
    let run = RunId::from(&*text(run).map_err(|_| Nonsense)?);
    Ok(MarkLook {
        standing: Some(Standing { state, time, run }),
        ..MarkLook::default()
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
    if *first == codes::OTHER_SLOTS {
        return other_slots(&text(second).ok()?);
    }
    if request.is_release()
        && let Value::BulkString(text) = &second
    {
        return passed(*first == codes::DONE, std::str::from_utf8(text).ok()?);
    }
    let counted = counted(second)?;
    let counter = counted.counter;
    Some(match *first {
        codes::DONE => match request {
            Request::Lock {
                verb: Verb::Acquire { .. },
                ..
            } => Reply::Taken { counter },
            Request::Node(NodeVerb::Survey) => Reply::Greatest(counter),
            _ => Reply::Done,
        },
        code => refusal(code, counted)?,
    })
}

/// Reads to which caller in line a key was given.
fn passed(was_held: bool, told: &str) -> Option<Reply> {
    let mut words = told.split(' ');
    let mut word = || words.next();
    Some(Reply::Passed {
        was_held,
        client: u64::from_str_radix(word()?, 16).ok()?,
        round: word()?.parse().ok()?,
        counter: word()?.parse().ok()?,
    })
}

/// Reads how many slots others give a lock, and for how many milliseconds that is remembered.
fn other_slots(told: &str) -> Option<Reply> {
    let (count, ms) = told.split_once(' ')?;
    Some(Reply::OtherSlots {
        count: count.parse().ok()?,
        remaining: Duration::from_millis(ms.parse().ok()?),
    })
}

/// Reads the server info out of the text of `INFO`.
///
/// # Errors
///
/// What is missing, in words for an operator.
fn server_info(info: &str) -> Result<ServerInfo, Arc<str>> {
    let field = |name: &str| {
        info.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            (key == name).then(|| value.trim())
        })
    };
    let missing = |name: &str| Arc::from(format!("INFO does not say {name}"));
    // Servers that are not Redis itself say here which version of Redis they are compatible with.
    let version = field("redis_version").ok_or_else(|| missing("redis_version"))?;
    let mut numbers = version.split('.').map(|number| number.parse::<u32>().ok());
    let number = numbers.next().flatten();
    let major = number.ok_or_else(|| missing("a redis_version that is a number"))?;
    // Without a limit of its memory, a server makes no room.
    let has_limit = field("maxmemory").is_none_or(|limit| limit != "0");
    Ok(ServerInfo {
        run: RunId::from(field("run_id").ok_or_else(|| missing("run_id"))?),
        version: (major, numbers.next().flatten().unwrap_or(0)),
        is_master: field("role").ok_or_else(|| missing("role"))? == "master",
        replicas: field("connected_slaves")
            .and_then(|count| count.parse().ok())
            .unwrap_or(0),
        is_cluster: field("cluster_enabled") == Some("1"),
        eviction: field("maxmemory_policy")
            .filter(|_| has_limit)
            .map(Arc::from),
        appends: field("aof_enabled") == Some("1"),
        syncs: None,
    })
}

/// State, detail, time, beginning of the quarantine, the run.
const HEADER: usize = 5;

#[cfg(test)]
mod tests {
    use super::*;

    const INFO: &str = "# Server\r\nredis_version:7.0.15\r\nredis_mode:standalone\r\n\
        run_id:0f3a\r\n# Replication\r\nrole:master\r\n# Memory\r\nmaxmemory:0\r\n\
        maxmemory_policy:allkeys-lru\r\naof_enabled:1\r\ncluster_enabled:0\r\n";

    #[test]
    fn the_server_info_is_read() {
        let server_info = server_info(INFO).unwrap();
        assert_eq!(server_info.run.as_str(), "0f3a");
        assert_eq!(server_info.version, (7, 0));
        assert!(server_info.is_master && server_info.appends && !server_info.is_cluster);
        assert_eq!(server_info.replicas, 0);
        let copied = INFO.replace("role:master", "role:master\r\nconnected_slaves:2");
        assert_eq!(super::server_info(&copied).unwrap().replicas, 2);
        assert_eq!(
            server_info.eviction, None,
            "without a limit nothing is evicted"
        );
    }

    #[test]
    fn a_policy_matters_where_there_is_a_limit() {
        let limited = server_info(&INFO.replace("maxmemory:0", "maxmemory:1000")).unwrap();
        assert_eq!(limited.eviction.as_deref(), Some("allkeys-lru"));
    }

    #[test]
    fn what_is_missing_is_named() {
        let error = server_info(&INFO.replace("role", "roll")).unwrap_err();
        assert_eq!(&*error, "INFO does not say role");
        assert!(server_info("").is_err());
    }
}
