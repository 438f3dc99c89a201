//! Mistakes in what becomes of a request: waits without a majority, and the layer.

use super::mutant::{Mutant, by_test};

pub(super) const REQUESTS: &[Mutant] = &[
    outage(
        "each-request-waits-anew-for-nodes-that-are-gone",
        "let seen = nodes.outage().unwrap_or(began);",
        "let seen = began;",
    ),
    outage(
        "waits-for-nodes-that-need-longer-than-the-wait",
        "if nodes.are_quarantined_beyond(wait_until, now) {",
        "if false {",
    ),
    by_test(
        "a-node-that-refuses-all-is-back-because-it-says-so",
        "crates/redlock-proto/src/client/nodes/outage.rs",
        "} else if !known.votes {",
        "} else if votes {",
        "redlock-proto",
        "--lib",
        "outage",
    ),
    by_test(
        "an-outage-that-is-over-is-not-forgotten",
        "crates/redlock-proto/src/client/nodes/outage.rs",
        "                known.lost = None;\n            }\n            Outcome::NotAVote",
        "            }\n            Outcome::NotAVote",
        "redlock-proto",
        "--lib",
        "outage",
    ),
    by_test(
        "claims-give-up-with-the-acquires",
        "crates/redlock-core/src/client/jobs.rs",
        "            quorum_wait: None,\n",
        "            quorum_wait: Some(client.settings.quorum_wait),\n",
        "redlock-core",
        "--test paused_time",
        "outage",
    ),
    layer(
        "locks-methods-that-it-was-not-told",
        "crates/redlock-tower/src/service.rs",
        "Some(only) if !only.contains(request.method()) => Start::Unlocked(request),",
        "Some(only) if only.is_empty() => Start::Unlocked(request),",
        "places",
    ),
    layer(
        "a-router-behind-the-lock-runs-unlocked",
        "crates/redlock-tower/src/key/path.rs",
        "        let (_, value) = value.ok_or_else(|| match",
        "        if value.is_none() && request.extensions().get::<MatchedPath>().is_none() {\n            return Ok(None);\n        }\n        let (_, value) = value.ok_or_else(|| match",
        "places",
    ),
    layer(
        "a-lock-around-a-405-is-told-to-nobody",
        "crates/redlock-tower/src/future.rs",
        "Some(Locks::Layer(_)) => this.placement.look_at(response.status()),",
        "Some(Locks::Layer(_)) => {}",
        "places",
    ),
    by_test(
        "paused-time-is-no-quorum",
        "crates/redlock-core/src/builder.rs",
        "if is_in_real_time && detector.is_paused() {",
        "if is_in_real_time && false {",
        "redlock-core",
        "--test bad_input",
        "paused_time",
    ),
    by_test(
        "a-jump-of-time-is-no-pause",
        "crates/redlock-core/src/clock.rs",
        "tokio > real || (tokio.is_zero()",
        "false || (tokio.is_zero()",
        "redlock-core",
        "--test bad_input",
        "paused_time",
    ),
    by_test(
        "a-caller-waits-for-its-own-lease",
        "crates/redlock-core/src/within.rs",
        "lease.client() == client && lease.key() == key",
        "lease.client() != client && lease.key() == key",
        "redlock-core",
        "--test paused_time",
        "within",
    ),
    by_test(
        "a-scope-outlives-its-panic",
        "crates/redlock-core/src/within.rs",
        "        let _end = End;\n        work()",
        "        let done = work();\n        drop(End);\n        done",
        "redlock-core",
        "--test paused_time",
        "within",
    ),
    layer(
        "a-handler-waits-for-its-own-request",
        "crates/redlock-tower/src/exclusive.rs",
        "return match locks.within(|| future.poll(cx)) {",
        "return match future.poll(cx) {",
        "reuse",
    ),
    layer(
        "a-body-waits-for-its-own-request",
        "crates/redlock-tower/src/body.rs",
        "Some(locks) => locks.within(|| body.as_mut().poll_frame(cx)),",
        "Some(_) => body.as_mut().poll_frame(cx),",
        "reuse",
    ),
    layer(
        "a-view-keeps-the-lock-of-a-request-that-is-over",
        "crates/redlock-tower/src/held.rs",
        "            drop(slot.take());\n",
        "            std::mem::forget(Arc::clone(slot));\n",
        "owned",
    ),
    layer(
        "a-lock-that-was-taken-out-is-not-watched",
        "crates/redlock-tower/src/owned.rs",
        "OnLost::Abort => self.lease.run(work).await,",
        "OnLost::Abort => Ok(work.await),",
        "owned",
    ),
    layer(
        "a-release-by-the-handler-is-a-loss",
        "crates/redlock-tower/src/held.rs",
        "LossReason::Released if !self.owns() => {",
        "LossReason::Released if self.slot.is_none() => {",
        "owned",
    ),
    layer(
        "a-body-waits-for-a-lock-that-was-taken-out",
        "crates/redlock-tower/src/held.rs",
        "self.slot.as_ref().is_none_or(|slot| slot.is_full())",
        "true",
        "owned",
    ),
    layer(
        "a-lock-of-the-handler-is-not-watched",
        "crates/redlock-tower/src/exclusive.rs",
        "Poll::Pending => locks\n                            .poll_lost(cx)\n                            .map(|reason| Outcome::Refused(Rejection::lost(reason))),",
        "Poll::Pending => Poll::Pending,",
        "locked",
    ),
    layer(
        "a-lock-of-the-handler-ends-with-it",
        "crates/redlock-tower/src/locks.rs",
        "                !held.is_empty()",
        "                false",
        "locked",
    ),
    layer(
        "a-lock-of-the-handler-has-no-settings",
        "crates/redlock-tower/src/locks.rs",
        "let options = options.or(&terms.options);",
        "",
        "locked",
    ),
    layer(
        "a-refusal-in-the-handler-is-not-the-layers",
        "crates/redlock-tower/src/future.rs",
        "Some(Locks::Handler(desk)) if desk.has_refused() => {",
        "Some(Locks::Handler(desk)) if !desk.has_refused() => {",
        "locked",
    ),
];

/// A mistake in the layer.
const fn layer(
    name: &'static str,
    file: &'static str,
    from: &'static str,
    to: &'static str,
    filter: &'static str,
) -> Mutant {
    by_test(
        name,
        file,
        from,
        to,
        "redlock-tower",
        "--test behaviour",
        filter,
    )
}

/// A mistake in how long an acquire bears with an outage.
const fn outage(name: &'static str, from: &'static str, to: &'static str) -> Mutant {
    by_test(
        name,
        "crates/redlock-proto/src/client/acquisitions/acquisition.rs",
        from,
        to,
        "redlock-core",
        "--test paused_time",
        "outage",
    )
}
