//! The script's results, read as answers.

use std::{sync::Arc, time::Duration};

use deadpool_redis::redis::Value;
use redlock_proto::{MarkState, NodeTime, NodeVerb, RunId, ServerInfo, Standing, Verb};

use super::{
    super::{
        error::{explained, is_wrong_server},
        info,
    },
    call::Order,
    jobs,
    values::{counted, refusal, text},
};
use crate::node::{Answer, Reply, Request};

/// Reads the answer to a call with these requests, which had them in this order; `None` if that is not what a node sends.
pub(in super::super) fn answer(value: Value, requests: &[Request], order: Order) -> Option<Answer> {
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
    for request in order.of(requests) {
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
    let replies = order.undo(replies, requests);
    Some(Answer { standing, replies })
}

/// Returns why a server did not run a call, if it says that it cannot vote because of what it is: then it has refused
/// each write of the call.
///
/// In answer to an inspection a server says itself what it is.
pub(in super::super) fn wrong_server(value: &Value, requests: &[Request]) -> Option<Arc<str>> {
    let Value::Array(values) = value else {
        return None;
    };
    let is_inspection = |request: &Request| matches!(request, Request::Node(NodeVerb::Inspect));
    if requests.iter().any(is_inspection) {
        return None;
    }
    let firsts = values.iter().skip(HEADER).step_by(2);
    let mut errors = values.iter().take(1).chain(firsts).filter_map(error_text);
    let error = errors.find(|error| {
        let code = error.split(' ').next().unwrap_or_default();
        is_wrong_server(code)
    })?;
    Some(explained(error))
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
    match (info::server_info(info), look_error) {
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
    if *first == OTHER_SLOTS {
        return other_slots(&text(second).ok()?);
    }
    let counted = counted(second)?;
    let counter = counted.counter;
    Some(match *first {
        0 => match request {
            Request::Lock {
                verb: Verb::Acquire { .. },
                ..
            } => Reply::Taken { counter },
            Request::Node(NodeVerb::Survey) => Reply::Greatest(counter),
            Request::Lock {
                verb: Verb::Extend {
                    write_back: None, ..
                },
                ..
            } if counter == UNDISPUTED => Reply::Undisputed,
            _ => Reply::Done,
        },
        code => refusal(code, counted)?,
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

/// The node has refused the key to no caller lately.
const UNDISPUTED: u64 = 1;

/// Others give the lock another number of slots.
const OTHER_SLOTS: i64 = -9;

/// State, detail, time, beginning of the quarantine, the run.
const HEADER: usize = 5;
