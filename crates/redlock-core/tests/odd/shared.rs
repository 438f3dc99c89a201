//! Shared keys on servers that are out of order.

use std::sync::Arc;

use redlock_core::node::{Reply, Request};
use redlock_proto::LockMode;

use super::fixtures::{Fixture, RELEASE, acquire, extend, request, says, taken};

const KEY: &str = "{odd}:lock:s";

/// Returns the same request of an owner that shares the key.
fn shared(mut request: Request) -> Request {
    if let Request::Lock { lock, .. } = &mut request {
        Arc::make_mut(lock).mode = LockMode::Shared;
    }
    request
}

/// Returns a server on which three owners share the key.
async fn shared_by_three() -> Fixture {
    let mut fixture = Fixture::voting().await;
    for owner in 1..4 {
        assert!(taken(
            &fixture.ask(shared(request(acquire(), "s", owner))).await
        ));
    }
    fixture
}

// Shows: R4.2.
#[tokio::test]
async fn without_memory_whoever_shares_a_key_is_extended_and_lets_go() {
    let mut fixture = shared_by_three().await;
    fixture.fill();
    let refused = fixture.ask(shared(request(acquire(), "s", 4))).await;
    assert!(says(&refused, "OOM "), "{refused:?}");
    for owner in 1..4 {
        for verb in [extend(None), RELEASE] {
            let done = fixture.ask(shared(request(verb, "s", owner))).await;
            assert_eq!(done, Ok(Reply::Done), "{owner}");
        }
    }
    assert!(!fixture.exists(KEY));
}

/// Where no time to live tells how late it is, no owner counts as expired.
// Shows: R4.2.
#[tokio::test]
async fn a_shared_key_that_was_made_to_stay_is_let_go_of_by_nobody_but_the_operator() {
    let mut fixture = shared_by_three().await;
    fixture.command(&["PERSIST", KEY]);
    let before = fixture.dump(KEY);
    let refused = fixture.ask(shared(request(RELEASE, "s", 1))).await;
    assert!(
        says(&refused, "the key is shared and was made to stay"),
        "{refused:?}"
    );
    assert_eq!(fixture.dump(KEY), before);
    // An extension knows how late it is, and has it end again.
    let done = fixture.ask(shared(request(extend(None), "s", 2))).await;
    assert_eq!(done, Ok(Reply::Done));
    for owner in 1..4 {
        let done = fixture.ask(shared(request(RELEASE, "s", owner))).await;
        assert_eq!(done, Ok(Reply::Done), "{owner}");
    }
    assert!(!fixture.exists(KEY));
}
