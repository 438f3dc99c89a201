//! A call to a node, for those who look on: its span and its metrics.

use futures_util::{FutureExt, future::BoxFuture};
use redlock_proto::{Request, Verb};
use tracing::{Instrument, field::Empty};

use super::log::Origin;
use crate::{
    meter::{NodeMeter, Stopwatch},
    node::{CallResult, Node},
};

/// Returns the call as it is, unless somebody looks on.
///
/// The span is none of an acquire's: a call has the operations of many, and of leases that are extended or released.
pub(super) fn watched(
    call: BoxFuture<'static, CallResult>,
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
        server.address = &*node.name(),
        client = origin.client,
        namespace = &*origin.namespace,
        "error.type" = Empty,
    );
    if span.is_disabled() && !NodeMeter::IS_ON {
        return call;
    }
    let (meter, began) = (meter.clone(), Stopwatch::start());
    let seen = span.clone();
    let mut unanswered = Unanswered(Some((meter, began)));
    let work = async move {
        let result = call.await;
        if let Err(error) = &result {
            seen.record("error.type", &*error.reason);
        }
        unanswered.is_over(result.is_ok());
        result
    };
    work.instrument(span).boxed()
}

/// A call that has no answer yet; if it never gets one, it has failed.
struct Unanswered(Option<(NodeMeter, Stopwatch)>);

impl Unanswered {
    fn is_over(&mut self, is_ok: bool) {
        if let Some((meter, began)) = self.0.take() {
            meter.answered(is_ok, &began);
        }
    }
}

impl Drop for Unanswered {
    fn drop(&mut self) {
        self.is_over(false);
    }
}

/// What a call does; its operations are mostly alike.
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
