//! A server whose memory is full.

use redlock_core::node::Reply;
use redlock_proto::MarkState;

use super::fixtures::{
    FENCE, Fixture, MARK, RELEASE, TOMBSTONE, acquire, extend, heal, open, request, request_of,
    says, taken,
};

impl Fixture {
    /// Leaves it no memory, and no keys to drop for some.
    pub(crate) fn fill(&self) {
        self.command(&["CONFIG", "SET", "maxmemory-policy", "noeviction"]);
        self.command(&["SET", "ballast", &"x".repeat(1 << 20)]);
        self.command(&["CONFIG", "SET", "maxmemory", "1mb"]);
    }
}

// Shows: T5.6.
#[tokio::test]
async fn without_memory_nothing_is_taken_and_everything_can_be_let_go() {
    let mut fixture = Fixture::voting().await;
    for key in ["a", "b", "c"] {
        assert!(taken(&fixture.ask(request(acquire(), key, 1)).await));
    }
    fixture.fill();
    let counters = fixture.dump(FENCE);
    for verb in [acquire(), heal()] {
        let requests = [request(verb, "new", 2), request(verb, "newer", 3)];
        let answer = fixture.call(&requests).await;
        assert!(
            answer.replies.iter().all(|reply| says(reply, "OOM ")),
            "{answer:?}"
        );
        // It still says where it stands.
        assert_eq!(answer.standing.unwrap().state, MarkState::Voting);
    }
    // A tombstone takes memory too; the client that asked for it will ask again.
    assert!(says(
        &fixture.ask(request(TOMBSTONE, "new", 2)).await,
        "OOM "
    ));
    assert!(!fixture.exists("{odd}:lock:new") && !fixture.exists("{odd}:lock:newer"));
    assert_eq!(fixture.dump(FENCE), counters);

    assert_eq!(
        fixture.ask(request(extend(None), "a", 1)).await,
        Ok(Reply::Done)
    );
    assert_eq!(fixture.ask(request(RELEASE, "a", 1)).await, Ok(Reply::Done));
    let both = [request(RELEASE, "b", 1), request(RELEASE, "c", 1)];
    assert_eq!(
        fixture.call(&both).await.replies,
        [Ok(Reply::Done), Ok(Reply::Done)]
    );
    for key in ["a", "b", "c"] {
        assert!(!fixture.exists(&format!("{{odd}}:lock:{key}")), "{key}");
    }
}

// Shows: T3.3.
#[tokio::test]
async fn a_lease_that_cannot_be_counted_is_not_prolonged() {
    let mut fixture = Fixture::voting().await;
    assert!(taken(&fixture.ask(request(acquire(), "a", 1)).await));
    fixture.fill();
    for verb in [extend(Some(9)), heal()] {
        let reply = fixture.ask(request(verb, "a", 1)).await;
        assert!(says(&reply, "OOM "), "{verb:?}: {reply:?}");
        let left = fixture.command(&["PTTL", "{odd}:lock:a"]).as_integer();
        assert!(left.is_some_and(|left| left <= 20_000), "{left:?}");
    }
}

/// The first counter is high enough; what was not written for the second must not count for what follows.
#[tokio::test]
async fn a_set_that_cannot_be_counted_confirms_nothing_behind_it() {
    let mut fixture = Fixture::voting().await;
    let set = ["a", "b"];
    assert!(taken(&fixture.ask(request_of(acquire(), &set, 1)).await));
    let first = fixture.ask(request(extend(Some(1_000)), "a", 1)).await;
    assert_eq!(first, Ok(Reply::Done));
    fixture.fill();
    let calls = [
        request_of(extend(Some(1_000)), &set, 1),
        request(extend(Some(900)), "b", 1),
    ];
    let answer = fixture.call(&calls).await;
    let refused = |reply| says(reply, "OOM ");
    assert!(answer.replies.iter().all(refused), "{answer:?}");
}

// Shows: T5.6.
#[tokio::test]
async fn burying_lets_the_key_go_without_memory() {
    let mut fixture = Fixture::voting().await;
    assert!(taken(&fixture.ask(request(acquire(), "a", 1)).await));
    fixture.fill();
    let reply = fixture.ask(request(TOMBSTONE, "a", 1)).await;
    // Servers differ in whether what a script writes after a deletion may take memory.
    assert!(
        reply == Ok(Reply::Done) || says(&reply, "OOM "),
        "{reply:?}"
    );
    assert!(!fixture.exists("{odd}:lock:a"));
}

// Shows: L2.1.
#[tokio::test]
async fn a_node_without_memory_for_its_mark_does_not_vote() {
    let mut fixture = Fixture::voting().await;
    assert!(taken(&fixture.ask(request(acquire(), "a", 1)).await));
    fixture.fill();
    fixture.command(&["DEL", MARK]);
    let requests = [
        request(acquire(), "new", 2),
        open(redlock_core::node::NodeTime::from_micros(1), 0),
        request(RELEASE, "a", 1),
    ];
    let answer = fixture.call(&requests).await;
    assert_eq!(answer.standing, None);
    assert!(
        says(&answer.replies[0], "OOM ") && says(&answer.replies[1], "OOM "),
        "{answer:?}"
    );
    assert_eq!(answer.replies[2], Ok(Reply::Done));
    assert!(!fixture.exists(MARK) && !fixture.exists("{odd}:lock:new"));
}
