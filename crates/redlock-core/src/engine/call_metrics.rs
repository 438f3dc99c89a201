//! The span and the metrics of a call to a node.

use std::future::poll_fn;

use futures_util::{FutureExt, future::BoxFuture};
use redlock_proto::{Request, Verb};
use tracing::field::Empty;

use super::log::Origin;
use crate::{
    meter::{NodeMeter, Stopwatch},
    node::{CallError, CallResult, Node},
};

/// Returns the call within its span and its metrics, or unchanged if both are off.
///
/// The span has no acquire as its parent: a call has operations of many acquires, extensions and releases.
pub(super) fn watched(
    mut call: BoxFuture<'static, CallResult>,
    node: &dyn Node,
    requests: &[Request],
    origin: &Origin,
    meter: &NodeMeter,
) -> BoxFuture<'static, CallResult> {
    let span = tracing::debug_span!(
        target: "redlock::node",
        parent: None,
        "redlock.node",
        otel.kind = "client",
        db.system.name = "redis",
        db.operation.name = operation(requests),
        db.operation.batch.size = requests.len(),
        server.address = split(&node.name()).0,
        server.port = split(&node.name()).1,
        client = origin.client,
        namespace = &*origin.namespace,
        "error.type" = Empty,
        reason = Empty,
    );
    if span.is_disabled() && !NodeMeter::IS_ON {
        return call;
    }
    let (meter, began) = (meter.clone(), Stopwatch::start());
    let mut unanswered = Unanswered(Some((meter, began)));
    let work = async move {
        let result = poll_fn(|cx| span.in_scope(|| call.poll_unpin(cx))).await;
        if let Err(error) = &result {
            span.record("error.type", error_type(error));
            span.record("reason", &*error.reason);
        }
        unanswered.count(result.is_ok());
        result
    };
    work.boxed()
}

/// A call that has no answer yet; if it never gets one, it has failed.
struct Unanswered(Option<(NodeMeter, Stopwatch)>);

impl Unanswered {
    fn count(&mut self, is_ok: bool) {
        if let Some((meter, began)) = self.0.take() {
            meter.answered(is_ok, &began);
        }
    }
}

impl Drop for Unanswered {
    fn drop(&mut self) {
        self.count(false);
    }
}

/// Returns what a call does; its operations are mostly alike.
fn operation(requests: &[Request]) -> &'static str {
    let name = |request: &Request| match request {
        Request::Lock { verb, .. } => match verb {
            Verb::Acquire { .. } => "acquire",
            Verb::Extend { .. } => "extend",
            Verb::Heal { .. } => "heal",
            Verb::Release { .. } | Verb::Tombstone { .. } => "release",
        },
        Request::Node(_) => "look",
        Request::Job { .. } => "job",
    };
    let mut names = requests.iter().map(name);
    let first = names.next().unwrap_or("look");
    if names.all(|name| name == first) {
        first
    } else {
        "BATCH"
    }
}

/// Splits the name of a node into an address and a port, if it has one.
fn split(name: &str) -> (&str, Option<u16>) {
    let port = |(host, port): (_, &str)| Some((host, Some(port.parse().ok()?)));
    let (host, port) = name.rsplit_once(':').and_then(port).unwrap_or((name, None));
    let bare = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'));
    (bare.unwrap_or(host), port)
}

/// Returns the kind of an error: the code that a server gave, or what became of the call.
fn error_type(error: &CallError) -> &str {
    let first = error.reason.split([' ', ',']).next().unwrap_or_default();
    let is_code = first.len() > 1 && first.bytes().all(|byte| byte.is_ascii_uppercase());
    match error {
        _ if is_code => first,
        CallError {
            session_lost: true, ..
        } => "connection_lost",
        CallError {
            may_have_run: true, ..
        } => "no_answer",
        _ => "not_executed",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_and_its_port_are_told_apart() {
        for (name, address, port) in [
            ("10.0.0.7:6379", "10.0.0.7", Some(6379)),
            ("[::1]:6379", "::1", Some(6379)),
            ("node-1.internal:7000", "node-1.internal", Some(7000)),
            ("/run/redis.sock", "/run/redis.sock", None),
            ("blue:green", "blue:green", None),
        ] {
            assert_eq!(split(name), (address, port));
        }
    }

    #[test]
    fn there_are_few_types_of_errors() {
        for (error, is) in [
            (CallError::not_executed("OOM its memory is full"), "OOM"),
            (CallError::unknown("ERR, an error"), "ERR"),
            (CallError::lost("no answer for 2001 ms"), "connection_lost"),
            (CallError::unknown("timed out"), "no_answer"),
            (CallError::not_executed("a limit"), "not_executed"),
        ] {
            assert_eq!(error_type(&error), is);
        }
    }
}
