//! Marks that are not what a client wrote.

use redlock_core::node::{Reply, Request};
use redlock_proto::{MarkState, NodeVerb};

use super::fixtures::{Fixture, MARK, RELEASE, acquire, extend, open, request, says, taken};

const DAMAGED: &str = "the mark is damaged: delete the key to begin a quarantine";

/// Asserts that the node grants nothing and releases keys, that the mark stays, and that the node is in quarantine
/// without it.
async fn refuses(fixture: &mut Fixture) {
    let since = redlock_core::node::NodeTime::from_micros(1);
    let before = fixture.dump(MARK);
    let requests = [
        request(acquire(), "new", 2),
        request(extend(None), "held", 1),
        Request::Node(NodeVerb::Look),
        Request::Node(NodeVerb::Survey),
        Request::Node(NodeVerb::Inspect),
        open(since, 0),
        request(RELEASE, "held", 1),
    ];
    let answer = fixture.call(&requests).await;
    assert_eq!(answer.standing, None, "{before:?}");
    let (released, refused) = answer.replies.split_last().unwrap();
    assert!(
        refused.iter().all(|reply| says(reply, DAMAGED)),
        "{before:?}: {answer:?}"
    );
    assert_eq!(*released, Ok(Reply::Done), "{before:?}");
    assert_eq!(fixture.dump(MARK), before);
    assert!(!fixture.exists("{odd}:lock:new"));

    fixture.command(&["DEL", MARK]);
    let standing = fixture.call(&[]).await.standing.unwrap();
    assert!(matches!(standing.state, MarkState::Quarantined { .. }));
}

// Shows: E9.
#[tokio::test]
async fn a_damaged_mark_is_not_read_as_a_vote() {
    let mut fixture = Fixture::voting().await;
    let good = fixture.command(&["GET", MARK]);
    let good = good.as_text().unwrap();
    let mut words = good.split(' ');
    let (run, data) = (words.nth(1).unwrap(), words.next().unwrap());
    let bad = [
        String::new(),
        "nonsense".to_owned(),
        "voting".to_owned(),
        format!("voting {run}"),
        format!("voting {run} {data}"),
        format!("voting {run} 60000ms,10000ppm"),
        format!("{good} and more"),
        format!(" {good}"),
        format!("Voting {run} {data} 60000ms,10000ppm"),
        format!("mourning {run} {data} 60000ms,10000ppm"),
        format!("quarantined {run} {data} 60000ms,10000ppm"),
        format!("quarantined {run} {data} 60000ms,10000ppm 1 2"),
        format!("quarantined {run} {data} 60000ms,10000ppm 1 2 3 4"),
        format!("quarantined {run} {data} 60000ms,10000ppm 1 two 3"),
    ];
    for mark in bad {
        assert!(taken(&again(&mut fixture).await), "{mark}");
        fixture.command(&["SET", MARK, &mark]);
        refuses(&mut fixture).await;
    }
}

// Shows: E9.
#[tokio::test]
async fn a_mark_of_another_type_is_not_overwritten() {
    let mut fixture = Fixture::voting().await;
    for command in [
        &["HSET", MARK, "field", "value"][..],
        &["RPUSH", MARK, "value"],
    ] {
        assert!(taken(&again(&mut fixture).await));
        fixture.command(&["DEL", MARK]);
        fixture.command(command);
        refuses(&mut fixture).await;
    }
}

/// Takes a key, in whatever state the node is.
async fn again(fixture: &mut Fixture) -> super::fixtures::Replied {
    fixture.ask(request(acquire(), "held", 1)).await
}
