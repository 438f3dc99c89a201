//! Fencing counters that are not what a client wrote.

use redlock_core::node::{Reply, Request};
use redlock_proto::{MarkState, NodeVerb, Verb};

use super::fixtures::{
    FENCE, Fixture, RELEASE, TOMBSTONE, TTL, acquire, counter_of, extend, heal, open, request,
    says, taken,
};

/// Asserts that the node refuses what must be counted, and does what needs no counter.
async fn counts_nothing(fixture: &mut Fixture, words: &str) {
    let before = fixture.dump(FENCE);
    let requests = [
        request(acquire(), "new", 2),
        request(heal(), "lost", 3),
        request(heal(), "held", 1),
        request(extend(Some(9)), "held", 1),
        Request::Node(NodeVerb::Survey),
    ];
    let answer = fixture.call(&requests).await;
    assert!(
        answer.replies.iter().all(|reply| says(reply, words)),
        "{answer:?}"
    );
    for key in ["{odd}:lock:new", "{odd}:lock:lost"] {
        assert!(!fixture.exists(key), "{key} was taken without a token");
    }
    let left = fixture.command(&["PTTL", "{odd}:lock:held"]).as_integer();
    assert!(
        left.is_some_and(|left| left <= 20_000),
        "it was prolonged: {left:?}"
    );

    let requests = [
        request(extend(None), "held", 1),
        request(RELEASE, "held", 1),
        request(TOMBSTONE, "held", 1),
    ];
    let replies = fixture.call(&requests).await.replies;
    assert_eq!(
        replies,
        [Ok(Reply::Done), Ok(Reply::Done), Ok(Reply::Missing)]
    );
    assert_eq!(fixture.dump(FENCE), before);
}

// Shows: T3.1.
#[tokio::test]
async fn without_a_place_for_counters_nothing_is_granted() {
    let mut fixture = Fixture::voting().await;
    for command in [&["SET", FENCE, "value"][..], &["RPUSH", FENCE, "value"]] {
        fixture.command(&["DEL", FENCE]);
        assert!(taken(&fixture.ask(request(acquire(), "held", 1)).await));
        fixture.command(&["DEL", FENCE]);
        fixture.command(command);
        counts_nothing(&mut fixture, "WRONGTYPE").await;
        fixture.command(&["DEL", "{odd}:tomb:01010101010101010101010101010101"]);
    }
}

/// Scores that are no counters; one is as long as a counter.
const DAMAGED: [&str; 7] = [
    "-1",
    "-123456789012345",
    "0.5",
    "1e17",
    "inf",
    "-inf",
    "12345678901234567890",
];

// Shows: T3.1.
#[tokio::test]
async fn a_damaged_counter_grants_nothing() {
    let mut fixture = Fixture::voting().await;
    for counter in DAMAGED {
        assert!(taken(&fixture.ask(request(acquire(), "held", 1)).await));
        let counters = ["held", "new", "lost"].map(counter_of);
        for field in &counters {
            fixture.command(&["ZADD", FENCE, counter, field]);
        }
        counts_nothing(&mut fixture, "the fencing counters are damaged").await;
        for field in &counters {
            fixture.command(&["ZREM", FENCE, field]);
        }
        fixture.command(&["DEL", "{odd}:tomb:01010101010101010101010101010101"]);
    }
}

// Shows: T3.1.
#[tokio::test]
async fn a_call_that_meets_a_damaged_counter_does_what_needs_none() {
    let mut fixture = Fixture::voting().await;
    // The floor is that of every counter.
    let (shard, floor) = (counter_of("new"), "floor".to_owned());
    for (counter, field) in DAMAGED.iter().flat_map(|it| [(it, &shard), (it, &floor)]) {
        for (key, owner) in [("left", 1), ("held", 2), ("new", 3)] {
            assert!(taken(&fixture.ask(request(acquire(), key, owner)).await));
        }
        let _ = fixture.ask(request(RELEASE, "new", 3)).await;
        let before = fixture.command(&["ZSCORE", FENCE, field]);
        fixture.command(&["ZADD", FENCE, counter, field]);
        // It proposes more than has been given.
        let ahead = Verb::Acquire {
            ttl: TTL,
            proposal: 1 << 40,
            block: 1,
            wish: None,
            line: None,
        };
        let requests = [
            request(ahead, "new", 3),
            request(RELEASE, "left", 1),
            request(extend(None), "held", 2),
        ];
        let replies = fixture.call(&requests).await.replies;
        // A transaction raises whatever is less than what it proposes.
        let is_less = counter.parse::<f64>().is_ok_and(|score| score < 1e12);
        if crate::TRANSACTIONS && field == &shard && is_less {
            assert!(taken(&replies[0]), "{counter}: {replies:?}");
            fixture.command(&["DEL", "{odd}:lock:new", "{odd}:lock:held", FENCE]);
            continue;
        }
        assert!(says(&replies[0], "the fencing counters are damaged"));
        assert_eq!(replies[1..], [Ok(Reply::Done), Ok(Reply::Done)]);
        assert!(!fixture.exists("{odd}:lock:new") && !fixture.exists("{odd}:lock:left"));
        let left = fixture.command(&["PTTL", "{odd}:lock:held"]).as_integer();
        assert!(left > Some(20_000), "it is prolonged: {left:?}");

        // A client that gave up the acquire gets its answer, whatever the counter is.
        assert_eq!(
            fixture.ask(request(TOMBSTONE, "new", 3)).await,
            Ok(Reply::Missing)
        );
        let late = fixture.ask(request(acquire(), "new", 3)).await;
        assert_eq!(late, Ok(Reply::Tombstoned));
        fixture.command(&["DEL", "{odd}:tomb:03030303030303030303030303030303"]);
        fixture.command(&["DEL", "{odd}:lock:held"]);
        match before.as_text() {
            Some(before) => fixture.command(&["ZADD", FENCE, before, field]),
            None => fixture.command(&["ZREM", FENCE, field]),
        };
    }
}

// Shows: L3.3.
#[tokio::test]
async fn a_node_without_a_place_for_its_floor_does_not_begin_to_vote() {
    let mut fixture = Fixture::new().await;
    let since = fixture.since().await;
    fixture.command(&["SET", FENCE, "value"]);
    let reply = fixture.ask(open(since, 5)).await;
    assert!(says(&reply, "WRONGTYPE"), "{reply:?}");
    let standing = fixture.call(&[]).await.standing.unwrap();
    assert!(matches!(standing.state, MarkState::Quarantined { .. }));
}
