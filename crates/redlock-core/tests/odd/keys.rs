//! Lock keys that another program uses for something else.

use redlock_core::node::Reply;

use super::fixtures::{Fixture, RELEASE, TOMBSTONE, acquire, extend, heal, request, request_of};

const NEVER_ENDS: Reply = Reply::Held {
    is_shared: false,
    remaining: None,
    counter: 0,
    holder: None,
};

#[tokio::test]
async fn a_key_of_another_type_is_somebody_elses_and_stays_as_it_is() {
    let mut fixture = Fixture::voting().await;
    for command in [
        &["HSET", KEY, "field", "value"][..],
        &["RPUSH", KEY, "value"],
        &["SADD", KEY, "value"],
        &["ZADD", KEY, "1", "value"],
        &["XADD", KEY, "*", "field", "value"],
    ] {
        fixture.command(&["DEL", KEY]);
        fixture.command(command);
        let before = fixture.dump(KEY);
        let verbs = [
            acquire(),
            heal(),
            extend(None),
            extend(Some(9)),
            RELEASE,
            TOMBSTONE,
        ];
        let requests = verbs.map(|verb| request(verb, "odd", 1));
        let answer = fixture.call(&requests).await;
        let [acquired, healed, rest @ ..] = &answer.replies[..] else {
            panic!("{answer:?}");
        };
        assert!(
            matches!(
                acquired,
                Ok(Reply::Held {
                    remaining: None,
                    ..
                })
            ),
            "{answer:?}"
        );
        assert_eq!(healed, &Ok(NEVER_ENDS));
        // It has no owner that could keep or release it.
        assert!(
            rest.iter().all(|reply| *reply == Ok(Reply::Missing)),
            "{answer:?}"
        );
        assert_eq!(fixture.dump(KEY), before);
        assert_eq!(fixture.command(&["PTTL", KEY]).as_integer(), Some(-1));
        fixture.command(&["FLUSHALL"]);
        fixture = Fixture::voting().await;
    }
}

// Shows: R3.1.
#[tokio::test]
async fn a_set_with_a_key_of_another_type_takes_nothing() {
    let mut fixture = Fixture::voting().await;
    let keys = ["before", "odd", "z"];
    fixture.command(&["RPUSH", KEY, "value"]);
    for verb in [acquire(), heal()] {
        let reply = fixture.ask(request_of(verb, &keys, 1)).await;
        assert!(
            matches!(
                reply,
                Ok(Reply::Held {
                    remaining: None,
                    ..
                })
            ),
            "{reply:?}"
        );
        for key in ["before", "z"] {
            assert!(!fixture.exists(&format!("{{odd}}:lock:{key}")), "{key}");
        }
    }
    fixture.command(&["DEL", KEY]);
    let taken = fixture.ask(request_of(acquire(), &keys, 1)).await;
    assert!(matches!(taken, Ok(Reply::Taken { .. })), "{taken:?}");
    let released = fixture.ask(request_of(RELEASE, &keys, 1)).await;
    assert_eq!(released, Ok(Reply::Done));
}

#[tokio::test]
async fn a_key_of_another_type_is_waited_for_if_it_expires() {
    let mut fixture = Fixture::voting().await;
    fixture.command(&["HSET", KEY, "field", "value"]);
    fixture.command(&["PEXPIRE", KEY, "10000"]);
    let reply = fixture.ask(request(acquire(), "odd", 1)).await;
    let Ok(Reply::Held {
        remaining: Some(remaining),
        ..
    }) = reply
    else {
        panic!("{reply:?}");
    };
    assert!((9..=10).contains(&remaining.as_secs()), "{remaining:?}");
}

/// To the command that takes a key it is still there, and to the one that asks how long it stays it is over.
#[tokio::test]
async fn a_key_of_another_type_that_ends_while_a_call_runs_is_not_granted() {
    let mut fixture = Fixture::voting().await;
    // Enough for a call to take some milliseconds.
    let mut requests: Vec<_> = (0..2_000)
        .map(|number| request(extend(None), &format!("none {number}"), 1))
        .collect();
    for keys in [&["odd"][..], &["free", "odd"]] {
        let (mut refused, mut granted) = (0, 0);
        for try_number in 0u64..200 {
            fixture.command(&["DEL", KEY, "{odd}:lock:free"]);
            fixture.command(&["RPUSH", KEY, "value"]);
            let left = 1 + try_number % 20;
            fixture.command(&["PEXPIRE", KEY, &left.to_string()]);
            requests.push(request_of(acquire(), keys, 1));
            let answer = fixture.call_by_script(&requests).await;
            requests.pop();
            match answer.replies.last() {
                Some(Ok(Reply::Taken { .. })) => {
                    let found = fixture.command(&["GET", KEY]);
                    assert!(found.as_text().is_some(), "{left} ms: {found:?}");
                    granted += 1;
                }
                Some(Ok(Reply::Held { .. })) => {
                    assert!(
                        !fixture.exists("{odd}:lock:free"),
                        "{left} ms: a part is kept"
                    );
                    refused += 1;
                }
                other => panic!("{other:?}"),
            }
        }
        assert!(refused > 0 && granted > 0, "{refused}, {granted}");
    }
}

#[tokio::test]
async fn a_string_of_somebody_elses_is_not_ours() {
    let mut fixture = Fixture::voting().await;
    for value in [
        "0101010101010101",
        "a secret, not a label, of somebody",
        "f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1",
        "f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1 ",
        "f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1 \u{7}",
        &format!("{:032} {}", 1, "x".repeat(65)),
        "a-host-name-of-thirty-two-bytes. secret",
    ] {
        fixture.command(&["SET", KEY, value]);
        for verb in [extend(None), heal(), RELEASE, acquire()] {
            let reply = fixture.ask(request(verb, "odd", 1)).await;
            let held = matches!(
                reply,
                Ok(Reply::Held {
                    remaining: None,
                    holder: None,
                    ..
                })
            );
            // A transaction that releases a key does not name the owner.
            let is_told_less =
                crate::TRANSACTIONS && verb == RELEASE && reply == Ok(Reply::Missing);
            assert!(held || is_told_less, "{value}, {verb:?}: {reply:?}");
        }
        assert_eq!(fixture.command(&["PTTL", KEY]).as_integer(), Some(-1));
    }
}

const KEY: &str = "{odd}:lock:odd";
