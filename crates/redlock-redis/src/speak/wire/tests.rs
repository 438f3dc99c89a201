use std::{sync::Arc, time::Duration};

use deadpool_redis::redis::Value;
use redlock_proto::{
    JobEntry, JobVerb, KeySet, Keyspace, Lock, LockMode, MarkState, NodeKey, NodeTime, NodeVerb,
    OwnerId, Quarantine, Reply, Request, Shard, Verb,
};

use super::{
    super::error::{NONSENSE, explained},
    Block, Encoder, codes,
};
use crate::{CallError, script};

fn keyspace() -> Keyspace {
    Keyspace::new("{t}", Quarantine::new(Duration::from_secs(30), 0.01))
}

fn lock(verb: Verb, key: &str) -> Request {
    Request::Lock {
        verb,
        lock: Lock {
            mode: LockMode::Exclusive,
            keys: key.into(),
            owner: OwnerId::from_random([0xab; 16]),
        }
        .into(),
    }
}

fn acquire(key: &str) -> Request {
    let verb = Verb::Acquire {
        ttl: Duration::from_millis(2_500),
        proposal: 7,
        block: 16,
        wish: None,
        line: None,
    };
    lock(verb, key)
}

/// Returns a call of the script as it is sent.
fn packed(encoder: &Encoder, requests: &[Request]) -> String {
    let mut packed = Vec::new();
    let call = encoder.call(script::call(true), &keyspace(), requests);
    call.write(&mut packed);
    String::from_utf8(packed).unwrap()
}

#[test]
fn a_call_is_keys_then_what_is_common_then_the_operations() {
    let ttl = Duration::from_secs(1);
    let requests = [acquire("a"), lock(Verb::Release { ttl }, "b")];
    let packed = packed(&Encoder::default(), &requests);
    let args: Vec<_> = packed
        .split("\r\n")
        .filter(|part| !part.starts_with(['*', '$']))
        .collect();
    let owner = "ab".repeat(16);
    let tombstone = format!("{{t}}:tomb:{owner}");
    let shard = |key: &str| Shard::of(&key.into()).number().to_string();
    let (a, b) = (shard("a"), shard("b"));
    let expected = [
        "6",
        "{t}:mark",
        "a",
        &tombstone,
        "b",
        "{t}:line:b",
        "{t}:counters",
        "30000ms,10000ppm,v4",
        "32480 937 0",
        "",
        "3",
        "floor",
        &a,
        &b,
        "acquire",
        &owner,
        "2500",
        "0000000000000007",
        "0000000000000022",
        "release",
        &owner,
        "",
    ];
    assert_eq!(args[0], "EVALSHA");
    assert_eq!(&args[2..], expected);
}

#[test]
fn several_keys_come_with_their_number_and_one_tombstone() {
    let keys = ["b", "a", "751"].map(NodeKey::from);
    let heal = Request::Lock {
        verb: Verb::Heal {
            ttl: Duration::from_millis(2_500),
            counter: 7,
        },
        lock: Lock {
            mode: LockMode::Exclusive,
            keys: KeySet::new(keys).unwrap(),
            owner: OwnerId::from_random([0xab; 16]),
        }
        .into(),
    };
    let packed = packed(&Encoder::default(), &[heal]);
    let args: Vec<_> = packed
        .split("\r\n")
        .filter(|part| !part.starts_with(['*', '$']))
        .collect();
    let owner = "ab".repeat(16);
    let tombstone = format!("{{t}}:tomb:{owner}");
    let shard = |key: &str| Shard::of(&key.into()).number().to_string();
    let (a, b) = (shard("a"), shard("b"));
    let expected = ["6", "{t}:mark", "751", "a", "b", &tombstone, "{t}:counters"];
    assert_eq!(args[2..9], expected);
    let expected = [
        "counters",
        "4",
        "floor",
        &a,
        &a,
        &b,
        "heal_all",
        "3",
        &owner,
        "2500",
        "0000000000000007",
        "",
    ];
    assert_eq!(args[11..], expected);
}

#[test]
fn what_occurs_twice_is_said() {
    let ttl = Duration::from_secs(1);
    let extend = |key| {
        let write_back = Some(1);
        lock(Verb::Extend { ttl, write_back }, key)
    };
    let said = |requests: &[Request]| {
        let packed = packed(&Encoder::default(), requests);
        let (_, behind) = packed.split_once("\r\n32480 937 0\r\n$").unwrap();
        behind.split("\r\n").nth(1).unwrap().to_owned()
    };
    assert_eq!(said(&[extend("a"), extend("b")]), "");
    assert_eq!(Shard::of(&"a".into()), Shard::of(&"751".into()));
    assert_eq!(said(&[extend("a"), extend("751")]), "counters");
    assert_eq!(said(&[extend("a"), extend("a")]), "both");
    // The tombstone is the same.
    let tombstones = ["a", "b"].map(|key| lock(Verb::Tombstone { ttl }, key));
    let tick = Request::Node(NodeVerb::Look);
    assert_eq!(said(&[&tombstones[..], &[tick]].concat()), "keys");
}

#[test]
fn what_was_encoded_for_another_node_changes_no_call() {
    let ttl = Duration::from_secs(1);
    let encoder = Encoder::default();
    let check = |request: &Request| {
        let request = [request.clone()];
        let alone = packed(&Encoder::default(), &request);
        assert_eq!(packed(&encoder, &request), alone);
    };
    // They are more than there are places for.
    let acquires: Vec<_> = (0..500).map(|key| acquire(&key.to_string())).collect();
    for acquire in &acquires {
        let Request::Lock { lock, .. } = acquire else {
            panic!("it is for a lock")
        };
        let release = Request::Lock {
            verb: Verb::Release { ttl },
            lock: Arc::clone(lock),
        };
        let tick = Request::Node(NodeVerb::Look);
        for request in [acquire, acquire, &release, &tick, acquire, &release] {
            check(request);
        }
    }
    for acquire in &acquires {
        check(acquire);
    }
}

fn one(state: i64, first: i64, second: i64) -> Value {
    let look = [state, 5, 1_000, 3].map(Value::Int).to_vec();
    let run = Value::BulkString(b"0f3a".to_vec());
    let reply = [first, second].map(Value::Int).to_vec();
    Value::Array([look, vec![run], reply].concat())
}

#[test]
fn answers_are_read() {
    let requests = [acquire("a")];
    let read = |value| super::read(value, &requests);
    let taken = read(one(1, 0, 9)).unwrap();
    assert_eq!(taken.replies, [Ok(Reply::Taken { counter: 9 })]);
    let standing = taken.standing.unwrap();
    assert_eq!(standing.state, MarkState::Voting);
    assert_eq!(standing.time, NodeTime::from_micros(1_000));
    assert_eq!(standing.run.as_str(), "0f3a");
    let held = |ms: Option<u64>| Reply::Held {
        remaining: ms.map(Duration::from_millis),
        counter: 2,
        holder: None,
        is_shared: false,
    };
    assert_eq!(read(one(1, 7, 2)).unwrap().replies, [Ok(held(Some(7)))]);
    assert_eq!(
        read(one(1, codes::NEVER, 2)).unwrap().replies,
        [Ok(held(None))]
    );
    assert_eq!(
        read(one(1, codes::TOMBSTONED, 0)).unwrap().replies,
        [Ok(Reply::Tombstoned)]
    );
    assert_eq!(read(one(-1, 0, 0)).unwrap().standing, None);
    let quarantined = read(one(0, 0, 9)).unwrap().standing.unwrap();
    let expected = MarkState::Quarantined {
        ready_in: Duration::from_millis(5),
        since: NodeTime::from_micros(3),
    };
    assert_eq!(quarantined.state, expected);
}

#[test]
fn a_counter_is_sixteen_digits() {
    let mut values = [1, 0, 1_000, 0].map(Value::Int).to_vec();
    values.push(Value::BulkString(b"0f3a".to_vec()));
    values.push(Value::Int(0));
    values.push(Value::BulkString(b"0000000000000042".to_vec()));
    let answer = super::read(Value::Array(values), &[acquire("a")]).unwrap();
    assert_eq!(answer.replies, [Ok(Reply::Taken { counter: 42 })]);
}

#[test]
fn an_error_of_one_operation_is_its_own() {
    let mut values = vec![Value::Int(1), Value::Int(0), Value::Int(1), Value::Int(0)];
    values.push(Value::BulkString(b"0f3a".to_vec()));
    values.extend([Value::BulkString(b"OOM no".to_vec()), Value::Int(0)]);
    values.extend([Value::Int(0), Value::Int(3)]);
    let requests = [acquire("a"), acquire("b")];
    let answer = super::read(Value::Array(values), &requests).unwrap();
    let error: Arc<str> = explained("OOM");
    assert_eq!(
        answer.replies,
        [Err(error), Ok(Reply::Taken { counter: 3 })]
    );
}

#[test]
fn a_server_that_became_a_replica_has_run_nothing_on_every_version() {
    for said in [
        "READONLY You can't write against a read only replica. (SET)",
        // Redis 6.2.
        "@user_script: 7: -READONLY You can't write against a read only replica. (SET)",
    ] {
        let mut values = [1, 0, 1_000, 0].map(Value::Int).to_vec();
        values.push(Value::BulkString(b"0f3a".to_vec()));
        values.extend([Value::BulkString(said.as_bytes().to_vec()), Value::Int(0)]);
        let refused = super::read(Value::Array(values), &[acquire("a")]).unwrap_err();
        assert!(refused.wrong_server && !refused.may_have_run, "{refused:?}");
        let why = refused.reason;
        assert!(why.starts_with("READONLY it is a replica"), "{said}: {why}");
    }
}

// Shows: L2.1.
#[test]
fn only_a_replica_may_fail_to_look_at_its_mark() {
    let info = "redis_version:7.0.15\r\nrun_id:0f3a\r\nrole:slave\r\n";
    let inspect = [Request::Node(NodeVerb::Inspect)];
    let inspected = |info: &str| {
        let text = |text: &str| Value::BulkString(text.as_bytes().to_vec());
        let zeros = || vec![Value::Int(0); 3];
        let look = [vec![text("READONLY no")], zeros(), vec![text("")]].concat();
        let values = [look, vec![Value::Int(0), text(info)]].concat();
        super::read(Value::Array(values), &inspect).unwrap()
    };
    let replica = inspected(info);
    assert_eq!(replica.standing, None);
    assert!(
        matches!(&replica.replies[..], [Ok(Reply::ServerInfo(server_info))] if !server_info.is_master)
    );
    let refused = [Err(explained("READONLY"))];
    assert_eq!(inspected(&info.replace("slave", "master")).replies, refused);
    assert_eq!(inspected("NOPERM").replies, refused);
}

#[test]
fn answers_that_make_no_sense_are_refused() {
    for nonsense in [
        one(4, 0, 0),
        one(1, codes::PASSED, 0),
        one(1, 0, -1),
        Value::Okay,
        Value::Array(vec![]),
        Value::Array(vec![Value::Nil; 7]),
    ] {
        let refused = super::read(nonsense, &[acquire("a")]);
        assert_eq!(refused, Err(CallError::lost(NONSENSE)));
    }
}

/// A Cluster refuses a call whose keys are in several slots, and a key elsewhere would be another vote's.
// Shows: R7.9.
#[test]
fn every_key_of_a_vote_is_under_its_tag() {
    let ttl = Duration::from_secs(1);
    let set = KeySet::new(["{t}:lock:a", "{t}:lock:b"].map(NodeKey::from)).unwrap();
    let slot = KeySet::slot("{t}:lock:s/1".into(), "{t}:slots:s".into(), 2);
    let of_keys = |keys: KeySet| Request::Lock {
        verb: Verb::Heal { ttl, counter: 7 },
        lock: Lock {
            mode: LockMode::Exclusive,
            keys,
            owner: OwnerId::from_random([0xab; 16]),
        }
        .into(),
    };
    let job = |verb| Request::Job {
        verb,
        job: "{t}:job:j".into(),
    };
    let entry = JobEntry::from_wire("t 0001795226400000 01 0000000000000077 a text").unwrap();
    let write_back = None;
    let plain = [
        acquire("{t}:lock:c"),
        lock(Verb::Release { ttl }, "{t}:lock:d"),
        lock(Verb::Extend { ttl, write_back }, "{t}:lock:e"),
    ];
    let mut all = plain.to_vec();
    let lock_of_job = "{t}:lock:j".into();
    all.extend([of_keys(set), of_keys(slot)]);
    all.extend([
        job(JobVerb::Read { lock: lock_of_job }),
        job(JobVerb::Record { entry, ttl }),
    ]);
    let encoder = Encoder::under("t:1of3:0", &keyspace());
    let of_client = Arc::new(keyspace());
    let keyspace = encoder.keyspace(&of_client);
    let script = encoder.call(script::call(true), keyspace, &all);
    let block = Block::of(keyspace, &plain, ["EVALSHA", "0"]);
    let mut keys = Vec::new();
    for command in [&script, block.args()] {
        let is_key = |argument: &&[u8]| argument.starts_with(b"{");
        let found = command.iter().filter(is_key).map(String::from_utf8_lossy);
        keys.extend(found.map(|key| key.into_owned()));
    }
    assert_eq!(keys.len(), 25, "{keys:?}");
    assert!(
        keys.iter().all(|key| key.starts_with("{t:1of3:0}:")),
        "{keys:?}"
    );
}

/// A node reads each key that a call names.
#[test]
fn a_transaction_names_lines_only_if_it_releases_a_key() {
    let ttl = Duration::from_secs(1);
    let extend = Verb::Extend {
        ttl,
        write_back: None,
    };
    let lines = |requests: &[Request]| {
        let block = Block::of(&keyspace(), requests, ["EVALSHA", "0"]);
        let named: Vec<String> = block
            .args()
            .iter()
            .map(|argument| String::from_utf8_lossy(argument).into_owned())
            .filter(|argument| argument.contains(":line:"))
            .collect();
        named.len()
    };
    let extensions = ["a", "b"].map(|key| lock(extend, key));
    assert_eq!(lines(&extensions), 0);
    let release = lock(Verb::Release { ttl }, "c");
    assert_eq!(lines(&[&extensions[..], &[release]].concat()), 3);
}
