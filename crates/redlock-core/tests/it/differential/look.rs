//! All that can be seen from outside: which keys are there, whose, for how long, and the counters.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use redlock_core::node::{Keyspace, NodeTime, Reply, Request, Store};
use redlock_proto::{
    JobEntry, Lock, LockMode, Mark, NamedMark, NodeKey, NodeVerb, OwnerId, Quarantine, Verb,
};
use redlock_sandbox::Value;

use crate::differential::{
    cast::{self, CLIENTS, JOBS, KEYS, ONE_OF_EACH, OWNERS, SHARDS, SPACES},
    messages::Messages,
    site::Site,
};

/// How the two sides differ.
#[derive(Debug)]
pub(crate) struct Difference(pub(crate) String);

/// Looks at every key that has not expired, and so changes nothing.
pub(crate) fn compare(site: &Site, store: &Store, time: NodeTime) -> Result<(), Difference> {
    let seen = Seen::of(&site.command(&["EVAL", DUMP, "0"]));
    let mut locks = 0;
    for key in (0..KEYS).map(cast::key) {
        let held = held(store, &key, time);
        locks += usize::from(held.is_some());
        expect(key.as_str(), held.as_ref(), seen.keys.get(key.as_str()))?;
    }
    expect(
        "the number of lock keys",
        Some(&store.locks(time)),
        Some(&locks),
    )?;
    let mut others = seen.keys.len() - locks;
    for job in (0..JOBS).map(cast::job) {
        let lines: Vec<String> = store.runs(&job).iter().map(JobEntry::to_wire).collect();
        let kept = (!lines.is_empty()).then(|| (lines.join("\n"), -1));
        expect(job.as_str(), kept.as_ref(), seen.keys.get(job.as_str()))?;
        others -= usize::from(kept.is_some());
    }
    for place in (0..KEYS).step_by(2).map(cast::place) {
        let kept = store.slots(&place, time);
        let kept = kept.map(|(count, left)| (count.to_string(), millis(left)));
        expect(place.as_str(), kept.as_ref(), seen.keys.get(place.as_str()))?;
        others -= usize::from(kept.is_some());
    }
    for number in ONE_OF_EACH {
        let keyspace = cast::keyspace(number);
        for tombstone in (0..OWNERS).map(|number| keyspace.tombstone(cast::owner(number))) {
            let held = held(store, &tombstone, time);
            expect(
                tombstone.as_str(),
                held.as_ref(),
                seen.keys.get(tombstone.as_str()),
            )?;
            others -= usize::from(held.is_some());
        }
        for key in (0..KEYS).map(cast::key) {
            let name = keyspace.line(&key);
            let line = store.line(&keyspace, &key, time);
            let seen = seen.keys.get(name.as_str()).map(|(text, _)| text);
            expect(name.as_str(), line.as_ref(), seen)?;
            others -= usize::from(line.is_some());
        }
        for client in 0..CLIENTS {
            let left = store.sign_remaining(&keyspace, client, time);
            let left = left.map(|left| i64::try_from(left.as_millis()).expect("it is short"));
            // What is seen has its last millisecond as one.
            let sign = left.map(|left| ("1".to_owned(), left.max(1)));
            let name = keyspace.sign(client);
            let seen = seen.keys.get(name.as_str());
            expect(name.as_str(), sign.as_ref(), seen)?;
            others -= usize::from(sign.is_some());
        }
        let horizon = store.horizon(&keyspace);
        let horizon = horizon.map(|since| (format!("{:016}", since.as_millis()), -1));
        let name = keyspace.horizon().as_str();
        expect(name, horizon.as_ref(), seen.keys.get(name))?;
        others -= usize::from(horizon.is_some());
        compare_counters(&seen, store, &keyspace, time)?;
        let mark = store.mark(&keyspace);
        let name = keyspace.mark().as_str();
        let terms = [mark.as_ref(), seen.marks.get(name)].map(|text| text.map(|it| term_of(it)));
        expect(name, terms[0].as_ref(), terms[1].as_ref())?;
    }
    expect("the number of other keys", Some(&0), Some(&others))
}

/// Compares the messages to callers in line, on each channel in order.
pub(crate) fn compare_messages(model: &Messages, server: &Messages) -> Result<(), Difference> {
    expect("messages", Some(model), Some(server))
}

/// What is seen of a key: its value and the milliseconds that it will stay.
type Held = (String, i64);

/// What a server has.
struct Seen {
    keys: BTreeMap<String, Held>,
    counters: BTreeMap<String, BTreeMap<String, u64>>,
    marks: BTreeMap<String, String>,
}

impl Seen {
    fn of(dump: &Value) -> Self {
        let mut seen = Self {
            keys: BTreeMap::new(),
            counters: BTreeMap::new(),
            marks: BTreeMap::new(),
        };
        for entry in dump.as_array().expect("a list of keys") {
            let [name, left, value] = entry.as_array().expect("three for each key") else {
                panic!("{entry:?}");
            };
            let name = text(name);
            let left = left.as_integer().expect("milliseconds");
            match value.as_array() {
                Some(pairs) => {
                    assert_eq!(left, -1, "{name} never expires");
                    let pairs = pairs.chunks(2).map(|pair| (text(&pair[0]), text(&pair[1])));
                    let counters = pairs
                        .map(|(name, counter)| (name, counter.parse().expect("a whole number")));
                    seen.counters.insert(name, counters.collect());
                }
                // What a mark says comes with every answer, but for the term of a server that others name.
                None if name.ends_with(":mark") => {
                    assert_eq!(left, -1, "{name} never expires");
                    seen.marks.insert(name, text(value));
                }
                None => {
                    seen.keys.insert(name, (text(value), left));
                }
            }
        }
        seen
    }
}

/// Returns the term in a mark.
fn term_of(mark: &str) -> Option<NamedMark> {
    Mark::read(mark).expect("it is not damaged").term().cloned()
}

fn text(value: &Value) -> String {
    value.as_text().expect("it is text").to_owned()
}

fn millis(left: u64) -> i64 {
    i64::try_from(left).expect("it is short")
}

/// Returns what a copy of the model says of a key: a request can change the model.
fn held(store: &Store, key: &NodeKey, time: NodeTime) -> Option<Held> {
    let value = store.value(key, time)?;
    let keyspace = Arc::new(Keyspace::new(
        "{aside}",
        Quarantine::new(Duration::from_secs(1), 0.01),
    ));
    let extend = Request::Lock {
        verb: Verb::Extend {
            ttl: Duration::from_secs(1),
            write_back: None,
        },
        lock: Lock {
            mode: LockMode::Exclusive,
            keys: key.clone().into(),
            owner: OwnerId::from_random([0xee; 16]),
        }
        .into(),
    };
    let answer = store.clone().call(&keyspace, &[extend], time);
    match answer.replies.first() {
        Some(Ok(Reply::Held {
            remaining: Some(remaining),
            ..
        })) => {
            let left = u64::try_from(remaining.as_millis()).expect("it is short");
            Some((value, millis(left)))
        }
        other => panic!("nobody has it any more: {other:?}"),
    }
}

fn compare_counters(
    seen: &Seen,
    store: &Store,
    keyspace: &Keyspace,
    time: NodeTime,
) -> Result<(), Difference> {
    let fence = keyspace.fence().as_str();
    let none = BTreeMap::new();
    let counters = seen.counters.get(fence).unwrap_or(&none);
    let floor = counters.get("floor").copied().unwrap_or(0);
    let greatest = counters.values().copied().max().unwrap_or(0);
    let survey = ask(store, fence, Request::Node(NodeVerb::Survey), time);
    expect(fence, Some(&survey), Some(&Reply::Greatest(greatest)))?;
    for number in 0..SHARDS {
        let shard = cast::shard(number);
        let stored = counters.get(&shard.number().to_string()).copied();
        let counter = stored.unwrap_or(0).max(floor);
        let acquire = Request::Lock {
            verb: Verb::Acquire {
                ttl: Duration::from_secs(1),
                proposal: 0,
                block: 1,
                wish: None,
                line: None,
            },
            lock: Lock {
                mode: LockMode::Exclusive,
                keys: cast::free_key(number).into(),
                owner: OwnerId::from_random([0xee; 16]),
            }
            .into(),
        };
        // The last counter is followed by none.
        if counter < MAX {
            let taken = ask(store, fence, acquire, time);
            let expected = Reply::Taken {
                counter: counter + 1,
            };
            expect(fence, Some(&taken), Some(&expected))?;
        }
    }
    Ok(())
}

/// What the model answers in the one of the spaces with this fence that it serves.
fn ask(store: &Store, fence: &str, request: Request, time: NodeTime) -> Reply {
    let requests = [request];
    let replies = (0..SPACES)
        .map(cast::keyspace)
        .filter(|keyspace| keyspace.fence().as_str() == fence)
        .flat_map(|keyspace| store.clone().call(&keyspace, &requests, time).replies);
    let mut replies = replies.map(|reply| reply.expect("it is in range"));
    replies
        .find(|reply| *reply != Reply::PolicyMismatch)
        .expect("it serves one of them")
}

fn expect<T: std::fmt::Debug + PartialEq>(
    what: &str,
    model: Option<&T>,
    server: Option<&T>,
) -> Result<(), Difference> {
    if model == server {
        Ok(())
    } else {
        Err(Difference(format!(
            "{what}\n  of the model  {model:?}\n  of the server {server:?}"
        )))
    }
}

const MAX: u64 = (1 << 53) - (1 << 20);

/// Every key with what is left of its time, in milliseconds, and its value; a key in its last millisecond has
/// one left.
const DUMP: &str = "
    local dump = {}
    for _, key in ipairs(redis.call('KEYS', '*')) do
      local left = redis.call('PTTL', key)
      if left == 0 then left = 1 end
      local counts = redis.call('TYPE', key).ok == 'zset'
      dump[#dump + 1] = {key, left, counts and redis.call('ZRANGE', key, 0, -1, 'WITHSCORES') or redis.call('GET', key)}
    end
    return dump";
