//! The library's memory of the keys that callers were refused.

use std::time::Duration;

use redlock_core::node::{Node, RedisNode, Reply, Request};
use redlock_proto::{JobVerb, Lock, LockMode, NodeKey, OwnerId, Tick, Verb, Window};

use crate::functions::fixtures::{
    EXTEND, Master, RELEASE, TTL, acquire, keyspace, request, request_of,
};

/// Returns the answer to an extension of the key by owner 1.
async fn extended(master: &mut Master, key: &str) -> Reply {
    let answer = master.call(&[request(EXTEND, key, 1)]).await;
    answer.replies[0].clone().unwrap()
}

// Shows: R2.11.
#[tokio::test]
async fn a_holder_hears_whether_somebody_was_refused_its_key_lately() {
    let mut master = Master::witnessed().await;
    let take = [
        request(acquire(1), "a", 1),
        request(acquire(2), "b", 1),
        request(acquire(3), "c", 3),
    ];
    master.call(&take).await;
    assert_eq!(extended(&mut master, "a").await, Reply::Undisputed);

    // In one call with the refusal, and with what was not refused.
    let both = [
        request(acquire(4), "a", 2),
        request(EXTEND, "b", 1),
        request(RELEASE, "c", 3),
    ];
    let replies = master.call(&both).await.replies;
    assert!(matches!(replies[0], Ok(Reply::Held { .. })), "{replies:?}");
    assert_eq!(replies[1..], [Ok(Reply::Undisputed), Ok(Reply::Done)]);
    let refused = tokio::time::Instant::now();
    assert_eq!(extended(&mut master, "a").await, Reply::Done);
    assert_eq!(extended(&mut master, "b").await, Reply::Undisputed);

    // It is remembered when the key changes hands, and forgotten within eight seconds.
    let again = [request(RELEASE, "a", 1), request(acquire(5), "a", 1)];
    for one in again {
        master.call(&[one]).await;
    }
    while extended(&mut master, "a").await == Reply::Done {
        assert!(refused.elapsed() < Duration::from_secs(9));
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(refused.elapsed() >= Duration::from_millis(3_900));
}

/// A claim, and requests for locks of other kinds, are left to the script, within the library.
// Shows: R2.11.
#[tokio::test]
async fn whoever_was_refused_a_key_was_refused_it() {
    let mut master = Master::witnessed().await;
    let of = |mode: LockMode| {
        move |key: &str| match request(acquire(50), key, 2) {
            Request::Lock { verb, lock } => {
                let lock = Lock {
                    mode,
                    ..(*lock).clone()
                };
                Request::Lock {
                    verb,
                    lock: lock.into(),
                }
            }
            other => other,
        }
    };
    let time = master.command(&["TIME"]);
    let seconds: u64 = time.as_array().unwrap()[0]
        .as_text()
        .unwrap()
        .parse()
        .unwrap();
    let tick = Tick::from_millis(1_000 * seconds).unwrap();
    let claim = |key: &str| Request::Job {
        verb: JobVerb::Claim {
            lock: NodeKey::from(format!("{{fn}}:lock:{key}")),
            owner: Box::new(OwnerId::from_random([2; 16])),
            ttl: TTL,
            proposal: 50,
            tick,
            window: Window::new(Window::LONGEST, Window::LONGEST),
        },
        job: "{fn}:job:books".into(),
    };
    let wish = |key: &str| {
        let acquire = Verb::Acquire {
            ttl: TTL,
            proposal: 50,
            block: 1,
            wish: Some(TTL),
        };
        request(acquire, key, 2)
    };
    let set = |key: &str| request_of(acquire(50), &["nobody's", key], 2);
    let of_a_reader = OwnerId::from_random([9; 16]);
    let kinds = [
        ("claim", claim("claim")),
        ("wish", wish("wish")),
        ("set", set("set")),
        ("shared", of(LockMode::Shared)("shared")),
        (
            "upgrade",
            of(LockMode::Upgrade { of: of_a_reader })("upgrade"),
        ),
    ];
    for (key, kind) in kinds {
        master.call(&[request(acquire(1), key, 1)]).await;
        assert_eq!(extended(&mut master, key).await, Reply::Undisputed, "{key}");
        let refused = master.call(&[kind]).await.replies;
        assert!(
            matches!(refused[..], [Ok(Reply::Held { .. })]),
            "{key}: {refused:?}"
        );
        assert_eq!(extended(&mut master, key).await, Reply::Done, "{key}");
    }
}

/// There is room for so many keys in each of two periods; with more, all are disputed.
// Shows: R2.11.
#[tokio::test]
async fn what_there_is_no_room_for_is_disputed() {
    let mut master = Master::witnessed().await;
    master.call(&[request(acquire(1), "a", 1)]).await;
    let key = |number: usize| format!("{number}");
    let taken: Vec<Request> = (0..8_400)
        .map(|number| request(acquire(100), &key(number), 1))
        .collect();
    for some in taken.chunks(20) {
        master.call(some).await;
    }
    let refused: Vec<Request> = (0..8_400)
        .map(|number| request(acquire(200), &key(number), 2))
        .collect();
    for some in refused.chunks(100) {
        master.call(some).await;
    }
    assert_eq!(extended(&mut master, "a").await, Reply::Done);
    assert_eq!(extended(&mut master, &key(8_399)).await, Reply::Done);
}

#[tokio::test]
async fn the_script_remembers_nobody() {
    let mut master = Master::witnessed().await;
    let node = RedisNode::at(&master.server.url()).unwrap();
    let mut session = node.without_functions().connect().await.unwrap();
    master.call(&[request(acquire(1), "a", 1)]).await;
    let answer = session.call(&keyspace(), &[request(EXTEND, "a", 1)]).await;
    assert_eq!(answer.unwrap().replies, [Ok(Reply::Done)]);
}
