//! What functions do to keys, where the comparison with the model does not look.

use redlock_core::node::Reply;
use redlock_proto::Shard;

use crate::functions::fixtures::{EXTEND, Master, RELEASE, TTL, acquire, request, request_of};

// Shows: R2.6.
#[tokio::test]
async fn a_key_of_another_type_is_neither_overwritten_nor_let_go() {
    let mut master = Master::witnessed().await;
    let key = "{fn}:lock:list";
    master.command(&["RPUSH", key, "somebody's"]);
    let before = master.command(&["DUMP", key]);
    for verb in [RELEASE, EXTEND] {
        let answer = master.call(&[request(verb, "list", 1)]).await;
        assert_eq!(answer.replies, [Ok(Reply::Missing)], "{verb:?}");
    }
    let quick = master.calls("time");
    let both = [request(acquire(1), "list", 1), request(acquire(2), "a", 2)];
    let answer = master.call(&both).await;
    assert_eq!(master.calls("time"), quick + 1);
    assert!(
        matches!(
            answer.replies[..],
            [
                Ok(Reply::Held {
                    remaining: None,
                    ..
                }),
                Ok(Reply::Taken { counter: 2 })
            ]
        ),
        "{answer:?}"
    );
    assert_eq!(master.command(&["DUMP", key]), before);
}

#[tokio::test]
async fn many_in_one_call_are_answered_in_their_order() {
    let mut master = Master::witnessed().await;
    let key = |number: u64| format!("{number}");
    let old: Vec<_> = (0..8)
        .map(|number| request(acquire(100 + number), &key(number), 1))
        .collect();
    let answer = master.call(&old).await;
    for (number, reply) in (0..).zip(&answer.replies) {
        let counter = 100 + number;
        assert_eq!(*reply, Ok(Reply::Taken { counter }));
    }
    // Released, kept, taken, another owner's, without an owner.
    let requests = [
        request(RELEASE, &key(0), 1),
        request(EXTEND, &key(1), 1),
        request(acquire(200), &key(8), 1),
        request(acquire(201), &key(2), 2),
        request(RELEASE, &key(3), 2),
        request(EXTEND, &key(4), 2),
        request(RELEASE, &key(9), 1),
        request(EXTEND, &key(10), 1),
        request(RELEASE, &key(5), 1),
    ];
    let quick = master.calls("time");
    let replies = master.call(&requests).await.replies;
    assert_eq!(master.calls("time"), quick + 1);
    let is_held = |reply: &Result<Reply, _>| matches!(reply, Ok(Reply::Held { remaining: Some(left), .. }) if *left <= TTL);
    assert_eq!(replies[0], Ok(Reply::Done));
    assert_eq!(replies[1], Ok(Reply::Undisputed));
    assert_eq!(replies[2], Ok(Reply::Taken { counter: 200 }));
    assert!(replies[3..6].iter().all(is_held), "{replies:?}");
    assert_eq!(replies[6..8], [Ok(Reply::Missing), Ok(Reply::Missing)]);
    assert_eq!(replies[8], Ok(Reply::Done));
    for (number, there) in [(0, false), (1, true), (3, true), (5, false), (8, true)] {
        assert_eq!(master.exists(&key(number)), there, "{number}");
    }
}

/// The lists of a call outlive it. Each owner has a tombstone, which must not occur twice in a call of a function.
// Shows: R2.9.
#[tokio::test]
async fn a_call_does_nothing_of_what_calls_before_it_did() {
    let mut master = Master::witnessed().await;
    let take = |proposal, key, owner| request(acquire(proposal), key, owner);
    let shard = |key: &str| {
        let key = format!("{{fn}}:lock:{key}");
        Shard::of(&key.as_str().into()).number().to_string()
    };
    let counter = |master: &Master, key| {
        let found = master.command(&["HGET", "{fn}:fence", &shard(key)]);
        found.as_text().map(str::to_owned)
    };
    let quick = master.calls("time");
    let both = [take(100, "a", 1), take(200, "b", 2)];
    assert!(master.call(&both).await.replies.iter().all(Result::is_ok));
    assert_eq!(master.calls("time"), quick + 1);
    let both = [request(RELEASE, "a", 1), request(RELEASE, "b", 2)];
    let released = [Ok(Reply::Done), Ok(Reply::Done)];
    assert_eq!(master.call(&both).await.replies, released);

    // It leaves a call with an old proposal to the script, when it has found something to count already.
    let taken = [Ok(Reply::Taken { counter: 300 })];
    assert_eq!(master.call(&[take(300, "a", 3)]).await.replies, taken);
    let early = [
        request(RELEASE, "a", 3),
        take(700, "e", 6),
        take(150, "b", 4),
    ];
    let taken = |counter| Ok(Reply::Taken { counter });
    let expected = [Ok(Reply::Done), taken(700), taken(201)];
    assert_eq!(master.call(&early).await.replies, expected);

    // Others have the key, and have counted, before the next call.
    master.command(&["SET", "{fn}:lock:a", "somebody's"]);
    let (counted, by_others) = ("0000000000000201", "0000000000002000");
    master.command(&["HSET", "{fn}:fence", &shard("e"), by_others]);
    for (proposal, key) in [(400, "c"), (500, "d")] {
        let taken = [taken(proposal)];
        assert_eq!(master.call(&[take(proposal, key, 5)]).await.replies, taken);
        assert_eq!(counter(&master, "b").as_deref(), Some(counted), "{key}");
        assert_eq!(counter(&master, "e").as_deref(), Some(by_others), "{key}");
    }
    let release = master.call(&[request(RELEASE, "c", 5)]).await;
    assert_eq!(release.replies, [Ok(Reply::Done)]);
    for key in ["a", "b"] {
        assert!(master.exists(key), "{key} is another's");
    }
}

/// One that was refused must not hide among those that were done, wherever it stands.
// Shows: R2.8.
#[tokio::test]
async fn one_that_is_refused_among_many_is_said() {
    let mut master = Master::witnessed().await;
    master.call(&[request(acquire(1), "held", 1)]).await;
    let quick = master.calls("time");
    for refused in 0..3 {
        let many: Vec<_> = (0u8..3)
            .map(|place| {
                let key = format!("{refused} {place}");
                let key = if place == refused { "held" } else { &key };
                request(acquire(10 + u64::from(refused)), key, 2 + place)
            })
            .collect();
        let replies = master.call(&many).await.replies;
        for (place, reply) in (0..).zip(&replies) {
            let is_held = matches!(reply, Ok(Reply::Held { counter: 1, .. }));
            let is_taken = matches!(reply, Ok(Reply::Taken { .. }));
            assert_eq!((is_held, is_taken), (place == refused, place != refused));
        }
        // It is not said once more when a call with fewer requests is refused.
        let replies = master
            .call(&many[usize::from(refused)..][..1])
            .await
            .replies;
        assert!(
            matches!(replies[..], [Ok(Reply::Held { .. })]),
            "{replies:?}"
        );
    }
    assert_eq!(master.calls("time"), quick + 6);
}

/// To the command that takes a key it is still there, and to the one that asks how long it stays it is over.
#[tokio::test]
async fn a_key_of_another_type_that_ends_while_a_call_runs_is_not_granted() {
    let mut master = Master::witnessed().await;
    let key = "{fn}:lock:list";
    // Enough for a call to take some milliseconds.
    let mut requests: Vec<_> = (0..2_000)
        .map(|number| request(EXTEND, &format!("none {number}"), 1))
        .collect();
    for keys in [&["list"][..], &["free", "list"]] {
        let (mut refused, mut granted) = (0, 0);
        for try_number in 0u64..200 {
            master.command(&["DEL", key, "{fn}:lock:free"]);
            master.command(&["RPUSH", key, "somebody's"]);
            let left = 1 + try_number % 20;
            master.command(&["PEXPIRE", key, &left.to_string()]);
            requests.push(request_of(acquire(1 + try_number), keys, 1));
            let answer = master.call(&requests).await;
            requests.pop();
            match answer.replies.last() {
                Some(Ok(Reply::Taken { .. })) => {
                    let found = master.command(&["GET", key]);
                    assert!(found.as_text().is_some(), "{left} ms: {found:?}");
                    granted += 1;
                }
                Some(Ok(Reply::Held { .. })) => {
                    assert!(!master.exists("free"), "{left} ms: a part is kept");
                    refused += 1;
                }
                other => panic!("{other:?}"),
            }
        }
        assert!(refused > 0 && granted > 0, "{refused}, {granted}");
    }
}
