//! The owners, keys and values of the random calls: few enough to meet often.

use std::{sync::Arc, time::Duration};

use redlock_core::node::Keyspace;
use redlock_proto::{
    HolderLabel, InLine, InformantId, KeySet, LinePlace, NamedMark, NodeKey, NodeTime, OwnerId,
    Quarantine, Roll, Series, Shard,
};

use crate::differential::step::{Place, Span};

pub(crate) const KEYS: usize = 4;
pub(crate) const JOBS: usize = 2;
pub(crate) const OWNERS: usize = 4;
pub(crate) const SHARDS: usize = 3;
pub(crate) const SPACES: usize = 8;
/// The clients whose callers wait in line.
pub(crate) const CLIENTS: u64 = 4;
/// The first of them, which hear messages.
pub(crate) const SUBSCRIBERS: u64 = 3;

/// The prefix of each keyspace's own keys.
pub(crate) const PREFIXES: [&str; SPACES] = [
    "{one}", "{one}", "{one}", "{one}", "{two}", "{named}", "{named}", "{named}",
];

/// One space of each prefix.
pub(crate) const ONE_OF_EACH: [usize; 3] = [0, 4, 5];

/// Four spaces that share a namespace, one of another, and three of a server that others name.
///
/// Nodes let the first two share it, for they differ in what nodes do not compare.
/// The last three are of two epochs; two of them have the same one, and different rolls.
pub(crate) fn keyspace(number: usize) -> Arc<Keyspace> {
    let short = Duration::from_millis(200);
    let quarantine = match number {
        0 | 5..=7 => Quarantine::new(short, 0.01),
        1 => Quarantine::new(short, 0.05),
        2 | 4 => Quarantine::new(short, 0.01).trusting_persistence(),
        _ => Quarantine::new(Duration::from_secs(60), 0.01),
    };
    let keyspace = Keyspace::new(PREFIXES[number], quarantine);
    let in_term = |epoch, ids: &[u64]| {
        let roll = Roll::new(3, ids.iter().copied().map(InformantId::new));
        let keyspace = Keyspace::new(
            PREFIXES[number],
            keyspace.quarantine().following_failovers(),
        );
        keyspace.in_term(NamedMark { epoch, roll })
    };
    Arc::new(match number {
        5 => in_term(1, &[1, 2, 3]),
        6 => in_term(1, &[2, 3]),
        7 => in_term(2, &[1, 2, 3]),
        _ => keyspace,
    })
}

pub(crate) fn key(number: usize) -> NodeKey {
    NAMES[number].into()
}

pub(crate) fn keys(span: Span) -> KeySet {
    if let Some(slots) = span.slots {
        return KeySet::slot(key(span.first), place(span.first), slots);
    }
    let numbers = span.first..span.first + span.count;
    KeySet::new(numbers.map(|number| key(number % KEYS))).expect("there is one")
}

/// Returns the key that remembers of how many slots this key is one; each two keys have the same.
pub(crate) fn place(key: usize) -> NodeKey {
    format!("slots {}", key / 2).into()
}

/// The first two have one counter.
const NAMES: [&str; KEYS] = ["key 10", "key 142", "key 2", "key 3"];

/// Returns the counter that a key has.
pub(crate) const fn shard_of(key: usize) -> usize {
    key.saturating_sub(1)
}

/// Returns a key without an owner, with this counter.
pub(crate) fn free_key(shard: usize) -> NodeKey {
    ["key 353", "free 2206", "free 754"][shard].into()
}

/// Returns the key of what nodes remember of a job; the job's lock is any key.
pub(crate) fn job(number: usize) -> NodeKey {
    format!("job {number}").into()
}

/// The series of a claim, which is often that of ticks.
pub(crate) fn series(ttl: Duration) -> Series {
    match ttl.as_millis() % 32 {
        3 => Series::new('q'),
        19 => Series::new('Q'),
        _ => Series::TICKS,
    }
}

/// The number of a run, which is often the first.
pub(crate) fn attempt(ttl: Duration) -> u8 {
    match ttl.as_millis() % 16 {
        7 => 2,
        _ => 1,
    }
}

/// Half of them have no label, and the others have the same: a lease is upgraded to one whose owner has its label.
pub(crate) fn owner(number: usize) -> OwnerId {
    let secret = u8::try_from(number).expect("there are few");
    let label = HolderLabel::closest(["", "order@web:1"][number % 2]);
    OwnerId::from_random([secret; 16]).labelled(label)
}

pub(crate) fn in_line(place: Place, round: usize) -> InLine {
    InLine {
        place: LinePlace {
            came: NodeTime::from_micros(place.came),
            client: place.client,
        },
        round: round as u64,
        grant: place.grant,
        stay: place.stay,
        at_once: false,
        signs: place.signs,
    }
}

pub(crate) fn shard(number: usize) -> Shard {
    Shard::of(&free_key(number))
}

#[test]
fn keys_have_the_counters_that_are_said() {
    for number in 0..KEYS {
        assert_eq!(Shard::of(&key(number)), shard(shard_of(number)));
    }
}
