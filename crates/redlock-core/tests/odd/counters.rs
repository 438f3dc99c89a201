//! Fencing counters that are not what a client wrote.

use redlock_core::node::{Reply, Request};
use redlock_proto::{MarkState, NodeVerb};

use super::fixtures::{
    FENCE, Fixture, RELEASE, TOMBSTONE, acquire, counter_of, extend, heal, open, request, says,
    taken,
};

/// What must be counted is refused and changes nothing; what needs no counter is done.
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

#[tokio::test]
async fn a_damaged_counter_grants_nothing() {
    let mut fixture = Fixture::voting().await;
    for counter in ["", "12", "1e15", "12345678901234567890"] {
        assert!(taken(&fixture.ask(request(acquire(), "held", 1)).await));
        let counters = ["held", "new", "lost"].map(counter_of);
        for field in &counters {
            fixture.command(&["HSET", FENCE, field, counter]);
        }
        counts_nothing(&mut fixture, "the fencing counters are damaged").await;
        for field in &counters {
            fixture.command(&["HDEL", FENCE, field]);
        }
        fixture.command(&["DEL", "{odd}:tomb:01010101010101010101010101010101"]);
    }
}

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

#[tokio::test]
async fn counters_are_found_by_their_hash_however_few_they_are() {
    let fixture = Fixture::voting().await;
    let encoding = fixture.command(&["OBJECT", "ENCODING", FENCE]);
    assert_eq!(encoding.as_text(), Some("hashtable"));
}
