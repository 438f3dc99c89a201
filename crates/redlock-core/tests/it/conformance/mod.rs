//! The contract of a node, for every kind of node there is.
//!
//! The Redis side needs a real server and fails without one.

mod script;

use std::{sync::Arc, time::Duration};

use redlock_core::{
    MemoryNode,
    node::{Keyspace, Node, RedisNode, Reply, Request, Session},
};
use redlock_proto::{
    HolderLabel, JobEntry, JobVerb, Lock, LockMode, MarkState, NoClaim, NodeVerb, OwnerId,
    Quarantine, Series, Tick, Verb, Window,
};
use redlock_sandbox::{Server, ServerBinary, ServerOptions};

const TTL: Duration = Duration::from_secs(20);
const SHORT: Duration = Duration::from_millis(150);

fn keyspace() -> Arc<Keyspace> {
    let quarantine = Quarantine::new(3 * TTL, 0.01);
    Arc::new(Keyspace::new("{conformance}", quarantine))
}

fn request(verb: Verb, key: &str, owner: u8) -> Request {
    let owner = OwnerId::from_random([owner; 16]);
    Request::Lock {
        verb,
        lock: Lock {
            mode: LockMode::Exclusive,
            keys: key.into(),
            owner,
        }
        .into(),
    }
}

fn acquire(key: &str, owner: u8) -> Request {
    let verb = Verb::Acquire {
        ttl: TTL,
        proposal: 1,
        block: 1,
        wish: None,
        line: None,
    };
    request(verb, key, owner)
}

fn labelled(mut request: Request, label: &str) -> Request {
    if let Request::Lock { lock, .. } = &mut request {
        let lock = Arc::make_mut(lock);
        lock.owner = lock.owner.labelled(label.parse().ok());
    }
    request
}

fn extend(key: &str, owner: u8, ttl: Duration) -> Request {
    let verb = Verb::Extend {
        ttl,
        write_back: None,
    };
    request(verb, key, owner)
}

fn release(key: &str, owner: u8) -> Request {
    request(Verb::Release { ttl: TTL }, key, owner)
}

/// One reply, without its counter, and with the remaining time of a holder cut to whole seconds so that it can
/// be compared.
async fn ask(session: &mut dyn Session, request: Request) -> Reply {
    let answer = session.call(&keyspace(), &[request]).await;
    let mut replies = answer.expect("the node answers").replies;
    assert_eq!(replies.len(), 1);
    match replies.remove(0).expect("the operation is valid") {
        Reply::Held {
            remaining: Some(left),
            ..
        } => {
            // A real server has spent some milliseconds since.
            held(Duration::from_secs(left.as_secs_f64().ceil() as u64))
        }
        Reply::Taken { .. } => TAKEN,
        reply => reply,
    }
}

/// Returns the label of the holder in a refusal.
async fn holder(session: &mut dyn Session, request: Request) -> Option<HolderLabel> {
    let answer = session.call(&keyspace(), &[request]).await;
    match answer.expect("the node answers").replies.remove(0) {
        Ok(Reply::Held { holder, .. }) => holder,
        other => panic!("it is held by another: {other:?}"),
    }
}

const TAKEN: Reply = Reply::Taken { counter: 0 };

fn held(remaining: Duration) -> Reply {
    Reply::Held {
        is_shared: false,
        remaining: Some(remaining),
        counter: 0,
        holder: None,
    }
}

async fn conforms(node: Arc<dyn Node>) {
    let mut session = node.connect().await.expect("the node is up");
    let session = &mut *session;

    // A key is one owner's.
    assert_eq!(ask(session, acquire("a", 1)).await, TAKEN);
    assert_eq!(ask(session, acquire("a", 2)).await, held(TTL));
    assert_eq!(
        ask(session, acquire("a", 1)).await,
        TAKEN,
        "an owner is not in its own way"
    );
    assert_eq!(ask(session, acquire("b", 2)).await, TAKEN);

    // s21: nothing happens to a key on another owner's behalf.
    assert_eq!(ask(session, release("a", 2)).await, held(TTL));
    assert_eq!(ask(session, extend("a", 2, SHORT)).await, held(TTL));
    assert_eq!(ask(session, acquire("a", 3)).await, held(TTL));

    // s04: an extension never creates a key.
    assert_eq!(
        ask(session, extend("missing", 1, TTL)).await,
        Reply::Missing
    );
    assert_eq!(ask(session, release("missing", 1)).await, Reply::Missing);
    assert_eq!(ask(session, acquire("missing", 2)).await, TAKEN);

    // s27: times to live are milliseconds, and an extension counts from now.
    assert!(ask(session, extend("a", 1, SHORT)).await.is_done());
    assert!(ask(session, extend("b", 2, 3 * TTL)).await.is_done());
    assert_eq!(ask(session, acquire("b", 1)).await, held(3 * TTL));
    tokio::time::sleep(SHORT + Duration::from_millis(20)).await;
    assert_eq!(ask(session, extend("a", 1, TTL)).await, Reply::Missing);
    assert_eq!(ask(session, acquire("a", 2)).await, TAKEN);

    // A refusal tells the label of the holder, which is as much of its value as its secret.
    let web = "order@web 7:4312";
    assert_eq!(ask(session, labelled(acquire("l", 1), web)).await, TAKEN);
    assert_eq!(holder(session, acquire("l", 2)).await, web.parse().ok());
    assert_eq!(holder(session, release("l", 1)).await, None);
    assert_eq!(holder(session, release("l", 2)).await, None);
    let other = labelled(extend("l", 1, TTL), "order@web 8:4312");
    assert_eq!(holder(session, other).await, None);
    let own = labelled(extend("l", 1, TTL), web);
    assert_eq!(ask(session, own).await, Reply::Done);
    let longest = "~".repeat(HolderLabel::MAX_LEN);
    let long = labelled(acquire("long", 1), &longest);
    assert_eq!(ask(session, long).await, TAKEN);
    assert_eq!(
        holder(session, acquire("long", 2)).await,
        longest.parse().ok()
    );
    let own = labelled(release("l", 1), web);
    assert_eq!(ask(session, own).await, Reply::Done);

    // Operations of a call, and calls of a session, take effect in order.
    let order = [
        acquire("c", 1),
        acquire("c", 2),
        release("c", 1),
        acquire("c", 2),
    ];
    let keyspace = keyspace();
    let first = session.call(&keyspace, &order);
    let second = session.call(&keyspace, &[release("c", 2), acquire("c", 3)]);
    let (first, second) = tokio::join!(first, second);
    let first = first.expect("answered").replies;
    let second = second.expect("answered").replies;
    let taken = |reply: &Result<Reply, Arc<str>>| matches!(reply, Ok(Reply::Taken { .. }));
    assert!(taken(&first[0]) && taken(&first[3]), "{first:?}");
    assert!(matches!(first[1], Ok(Reply::Held { .. })), "{first:?}");
    assert_eq!(first[2], Ok(Reply::Done));
    assert!(second[0] == Ok(Reply::Done) && taken(&second[1]));

    // A call may be empty, or as long as the client makes them.
    let empty = session.call(&keyspace, &[]).await.expect("answered");
    assert_eq!(empty.replies, []);
    assert!(empty.standing.is_some(), "an empty call looks");
    let many: Vec<_> = (0..16)
        .map(|key| acquire(&format!("many {key}"), 1))
        .collect();
    let answer = session.call(&keyspace, &many).await.expect("answered");
    assert!(answer.replies.iter().all(taken), "{answer:?}");

    // s22: counters only grow, and releases need no look.
    let counters = answer.replies.iter().filter_map(|reply| match reply {
        Ok(Reply::Taken { counter }) => Some(*counter),
        _ => None,
    });
    assert!(counters.clone().all(|counter| counter >= 1));
    let released = session.call(&keyspace, &[release("many 0", 1)]).await;
    assert_eq!(released.expect("answered").standing, None);

    jobs_conform(session).await;
}

/// A tick is given away by the node's own clock, and once.
async fn jobs_conform(session: &mut dyn Session) {
    let looked = session.call(&keyspace(), &[]).await.expect("answered");
    let now = looked.standing.expect("an empty call looks").time;
    let hour = 3_600_000;
    let tick = |ms: u64| Tick::from_millis(ms).expect("it is this century");
    let (due, early, late) = (
        tick(now.as_millis()),
        tick(now.as_millis() + hour),
        tick(now.as_millis() - hour),
    );
    let refused = |reply: Reply| match reply {
        Reply::NoClaim(refusal) => refusal,
        other => panic!("{other:?}"),
    };
    let too_early = ask(session, claim(early, 1)).await;
    assert!(matches!(refused(too_early), NoClaim::Early { .. }));
    let too_late = ask(session, claim(late, 1)).await;
    assert!(matches!(refused(too_late), NoClaim::Late { .. }));

    let web = "close-day@web 7:4312";
    assert_eq!(
        ask(session, labelled(acquire("books", 3), web)).await,
        TAKEN
    );
    assert_eq!(holder(session, claim(due, 1)).await, web.parse().ok());
    let entry = session.read_key(&"books".into()).await.unwrap();
    let entry = entry.expect("it is held");
    assert!(entry.value.ends_with(web) && entry.remaining <= Some(TTL));
    let own = labelled(release("books", 3), web);
    assert_eq!(ask(session, own).await, Reply::Done);
    assert_eq!(session.read_key(&"books".into()).await, Ok(None));

    let Reply::Claimed { counter, last } = ask(session, claim(due, 1)).await else {
        panic!("nobody has claimed it")
    };
    assert_eq!(last, None);
    assert_eq!(ask(session, claim(due, 2)).await, held(TTL));
    let entry = JobEntry {
        series: Series::TICKS,
        tick: due,
        attempt: 1,
        token: counter,
        text: "claimed".into(),
    };
    assert_eq!(ask(session, commit(&entry, 2)).await, held(TTL));
    assert_eq!(ask(session, commit(&entry, 1)).await, Reply::Done);
    let passed = refused(ask(session, claim(due, 2)).await);
    assert_eq!(passed, NoClaim::Passed(entry.clone()));

    // Of a series with an upper-case letter, the newest line stays, and the tick of the one before it.
    let single = |ms: u64, text: &str| JobEntry {
        series: Series::new('Q'),
        tick: Tick::from_millis(due.as_millis() + ms).expect("in range"),
        token: if text == "-" { 0 } else { counter },
        text: text.into(),
        ..entry.clone()
    };
    for ms in 0..3 {
        let line = single(ms, "registered");
        assert_eq!(ask(session, commit(&line, 1)).await, Reply::Done);
    }
    let single = [single(2, "registered"), single(1, "-")];

    let ended = JobEntry {
        text: "it has ended".into(),
        ..entry.clone()
    };
    let record = JobVerb::Record {
        entry: ended.clone(),
        ttl: Duration::from_secs(1),
    };
    assert_eq!(ask(session, job(record)).await, Reply::Done);
    assert_eq!(ask(session, release("books", 1)).await, Reply::Done);
    let read = JobVerb::Read {
        lock: "books".into(),
    };
    let expected = Reply::Runs {
        entries: single.into_iter().chain([ended]).collect(),
        free_in: Some(Duration::ZERO),
    };
    assert_eq!(ask(session, job(read.clone())).await, expected);

    // What is remembered of jobs is deleted, as far as there is anything.
    let jobs = ["what is remembered".into(), "of no job".into()];
    assert_eq!(session.forget_jobs(&jobs).await, Ok(1));
    assert_eq!(session.forget_jobs(&jobs).await, Ok(0));
    assert_eq!(session.forget_jobs(&[]).await, Ok(0));
    let nothing = Reply::Runs {
        entries: Vec::new(),
        free_in: Some(Duration::ZERO),
    };
    assert_eq!(ask(session, job(read)).await, nothing);
}

fn job(verb: JobVerb) -> Request {
    let job = "what is remembered".into();
    Request::Job { verb, job }
}

fn claim(tick: Tick, owner: u8) -> Request {
    let minute = Duration::from_secs(60);
    job(JobVerb::Claim {
        lock: "books".into(),
        owner: Box::new(OwnerId::from_random([owner; 16])),
        ttl: TTL,
        proposal: 1,
        series: Series::TICKS,
        tick,
        attempt: 1,
        window: Window::new(minute, minute),
    })
}

fn commit(entry: &JobEntry, owner: u8) -> Request {
    job(JobVerb::Commit {
        lock: "books".into(),
        owner: Box::new(OwnerId::from_random([owner; 16])),
        ttl: TTL,
        entry: entry.clone(),
    })
}

/// Lets the node vote, as an operator does for a new node.
async fn bless(session: &mut dyn Session) {
    let answer = session.call(&keyspace(), &[]).await.expect("answered");
    let standing = answer.standing.expect("an empty call looks");
    let MarkState::Quarantined { since, .. } = standing.state else {
        panic!("a new server votes: {standing:?}");
    };
    let open = NodeVerb::Open {
        floor: 0,
        since,
        horizon: None,
    };
    assert_eq!(ask(session, Request::Node(open)).await, Reply::Done);
    let answer = session.call(&keyspace(), &[]).await.expect("answered");
    assert_eq!(answer.standing.expect("it looked").state, MarkState::Voting);
}

// Shows: G1.
#[tokio::test]
async fn a_node_in_memory_conforms() {
    conforms(Arc::new(MemoryNode::new())).await;
}

// Shows: G1.
#[tokio::test]
async fn a_redis_server_conforms() {
    let binary = ServerBinary::find().unwrap_or_else(|error| panic!("{error}"));
    let server = Server::start(&binary, ServerOptions::default()).expect("the server starts");
    let node = RedisNode::at(&server.url()).expect("the URL is valid");
    bless(&mut *node.connect().await.expect("the node is up")).await;
    conforms(Arc::new(node)).await;
}

#[tokio::test]
async fn a_subscription_that_is_dropped_ends_at_the_server() {
    let binary = ServerBinary::find().unwrap_or_else(|error| panic!("{error}"));
    let server = Server::start(&binary, ServerOptions::default()).expect("the server starts");
    let node = RedisNode::at(&server.url()).expect("the URL is valid");
    let mut session = node.connect().await.expect("the node is up");
    let has_subscribers = async |count: usize| {
        let channel = keyspace().channel(42);
        let command = ["PUBSUB", "NUMSUB", &channel];
        let is_so = || {
            let reply = server.command(&command).expect("the server answers");
            let subscribers = reply.as_array().expect("a list")[1].as_integer();
            subscribers == i64::try_from(count).ok()
        };
        let becomes_so = async {
            while !is_so() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let patience = tokio::time::timeout(TTL, becomes_so);
        patience
            .await
            .unwrap_or_else(|_| panic!("it has not {count}"));
    };
    let messages = session.listen(&keyspace(), 42).await.expect("it may");
    has_subscribers(1).await;
    drop(messages);
    has_subscribers(0).await;
}
