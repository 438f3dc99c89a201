//! Any input that is from outside: what servers send, and URLs.
//!
//! Nothing of it may make the client panic, and no error may show a password.

use std::{sync::Arc, time::Duration};

use deadpool_redis::redis::Value;
use proptest::{collection::vec, prelude::*, sample::select};
use redlock_proto::{
    JobEntry, JobVerb, Keyspace, Lock, LockMode, Mark, NodeVerb, OwnerId, Quarantine, Request,
    Roll, Verb,
};

use crate::{
    Location,
    discover::{NamingUrl, Testimony, View},
    speak::{error_texts::retold, wire},
};

fn lock(verb: Verb) -> Request {
    let lock = Lock {
        mode: LockMode::Exclusive,
        keys: "a".into(),
        owner: OwnerId::from_random([0xab; 16]),
    };
    let lock = Arc::new(lock);
    Request::Lock { verb, lock }
}

fn requests() -> impl Strategy<Value = Vec<Request>> {
    let ttl = Duration::from_secs(1);
    let acquire = Verb::Acquire {
        ttl,
        proposal: 7,
        block: 16,
        wish: None,
        line: None,
    };
    let heal = Verb::Heal { ttl, counter: 7 };
    let write_back = Some(7);
    let verbs = [acquire, heal, Verb::Extend { ttl, write_back }];
    let others = [Verb::Release { ttl }, Verb::Tombstone { ttl }];
    let job = |verb| Request::Job {
        verb,
        job: "j".into(),
    };
    let entry = JobEntry::from_wire("t 0001795226400000 01 0000000000000077 a text").unwrap();
    let mut all: Vec<Request> = verbs.into_iter().chain(others).map(lock).collect();
    all.push(Request::Node(NodeVerb::Inspect));
    all.push(job(JobVerb::Read { lock: "l".into() }));
    all.push(job(JobVerb::Record { entry, ttl }));
    vec(select(all), 0..4)
}

/// Words that mean something in an answer.
const WORDS: [&str; 21] = [
    "voting",
    "quarantined",
    "abababababababababababababababab",
    "30000ms,10000ppm,v4",
    "role:master\r\nmaster_replid:abc\r\n",
    "run_id:x\r\nmaster_replid:",
    "0001795226400000 0000000000000077 a text",
    "18446744073709551616",
    "-1",
    "shared\n",
    "ERR",
    "NOPERM",
    "MOVED 1 host:1",
    "aaaaaaaaaaaaaaaa a:1@2 myself,master - 0 0 1 connected 0-16383",
    "aaaaaaaaaaaaaaaa",
    "7 3:00000000000000aa",
    "1.5e300",
    " ",
    "\r\n",
    "é",
    "\n",
];

fn text() -> impl Strategy<Value = String> {
    let word = prop_oneof![select(&WORDS[..]).prop_map(str::to_owned), "\\PC{0,8}"];
    vec(word, 0..4).prop_map(|words| words.concat())
}

fn value() -> impl Strategy<Value = Value> {
    let number = prop_oneof![-9_i64..9, any::<i64>()];
    let leaf = prop_oneof![
        number.prop_map(Value::Int),
        text().prop_map(|text| Value::BulkString(text.into_bytes())),
        text().prop_map(Value::SimpleString),
        vec(any::<u8>(), 0..6).prop_map(Value::BulkString),
        any::<f64>().prop_map(Value::Double),
        select(vec![Value::Nil, Value::Okay]),
    ];
    leaf.prop_recursive(2, 24, 8, |inner| vec(inner, 0..9).prop_map(Value::Array))
}

proptest! {
    #[test]
    fn any_answer_of_a_server_is_read_or_refused(requests in requests(), values in vec(value(), 0..14)) {
        let keyspace = Keyspace::new("{t}", Quarantine::new(Duration::from_secs(30), 0.01));
        let value = Value::Array(values);
        if let Ok(answer) = wire::read(value.clone(), &requests) {
            prop_assert_eq!(answer.replies.len(), requests.len());
        }
        let of_transaction = |request: &Request| matches!(
            request,
            Request::Lock { verb: Verb::Acquire { .. } | Verb::Extend { .. } | Verb::Release { .. }, .. }
        );
        if requests.iter().all(of_transaction)
            && let Some(done) = wire::transaction(value, &requests)
        {
            prop_assert_eq!(done.judge(&keyspace, &requests).replies.len(), requests.len());
        }
    }

    #[test]
    fn any_error_of_a_server_is_retold_without_its_words(secret in "[a-z]{12}", error in text()) {
        let told = retold(&format!("{error}{secret}"));
        prop_assert!(!told.contains(&secret), "{}", told);
    }

    #[test]
    fn any_testimony_is_read_or_refused(answer in vec(text(), 0..4), slot in any::<u16>(), with_tls in any::<bool>()) {
        if let Some(view) = View::read(&answer.join("\n"), "c1", with_tls) {
            let testimony = Testimony::Member(view);
            prop_assert!(testimony.statement(slot).known > 0);
            let _ = (testimony.others().count(), testimony.failed_members().count());
        }
    }

    #[test]
    fn any_mark_is_read_or_refused(words in vec(text(), 0..10)) {
        let text = words.join(" ");
        if let Some(mark) = Mark::read(&text) {
            let changed = mark.with_roll(&Roll::new(3, []));
            prop_assert_eq!(changed.is_some(), mark.term().is_some());
        }
    }

    #[test]
    fn any_url_is_read_or_refused_without_its_password(
        scheme in select(&["redis", "rediss", "redis+sentinel", "redis+cluster", "http", "valkey"][..]),
        before in "[a-z:@/#?%]{0,4}",
        behind in "[a-z0-9:@/#?%&=,+\\[\\]]{0,24}",
    ) {
        let url = format!("{scheme}://{before}:hunter2@{behind}");
        let location = Location::of(&deadpool_redis::Config::from_url(&*url), None);
        let said = match &location {
            Ok(location) => format!("{location:?} {location}"),
            Err(refused) => format!("{refused:?} {refused}"),
        };
        prop_assert!(!said.contains("hunter2"), "{}: {}", url, said);
        if let Some(votes) = NamingUrl::urls_of_votes(&url) {
            prop_assert!(votes.iter().all(|vote| NamingUrl::read(vote).is_some_and(|read| read.is_ok())));
        }
    }
}
