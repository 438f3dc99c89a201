//! Requests, one by one, as the script takes them.

use std::time::Duration;

use redlock_proto::{
    JobVerb, KeySet, Keyspace, Lock, LockMode, NodeVerb, Request, Shard, SlotCount, Verb,
};

use super::{encoded::Encoded, jobs, values::millis};

/// Writes a request in place of what was there.
pub(super) fn encode(keyspace: &Keyspace, request: &Request, encoded: &mut Encoded) {
    encoded.clear();
    add_keys(keyspace, request, encoded);
    add_counters(request, &mut encoded.counters);
    operation(request, encoded);
}

/// Adds the keys of a request, in the order in which the script expects them.
fn add_keys(keyspace: &Keyspace, request: &Request, keys: &mut Encoded) {
    match request {
        Request::Node(NodeVerb::Open { .. }) => keys.push_own_key(keyspace.horizon()),
        Request::Node(NodeVerb::Sign { client }) => keys.push_own_key(&keyspace.sign(*client)),
        Request::Node(_) => {}
        Request::Job { verb, job } => jobs::add_keys(keyspace, verb, job, keys),
        Request::Lock { verb, lock } => {
            let Lock {
                mode,
                keys: locked,
                owner,
            } = &**lock;
            for key in locked {
                keys.push_key(keyspace, key.key());
            }
            match verb {
                Verb::Acquire { .. } | Verb::Heal { .. } | Verb::Tombstone { .. } => {
                    keys.push_tombstone(keyspace, *owner);
                }
                Verb::Extend { .. } | Verb::Release { .. } => {}
            }
            if let Some(slots) = slots_of(*verb, *mode, locked) {
                keys.push_key(keyspace, slots.key());
            }
            if request.looks_at_line() {
                keys.push_line(keyspace, locked.first());
            }
        }
    }
}

/// Returns the number of slots that a request has to say, and where nodes remember it.
fn slots_of(verb: Verb, mode: LockMode, keys: &KeySet) -> Option<&SlotCount> {
    let is_release = matches!(verb, Verb::Release { .. } | Verb::Tombstone { .. });
    // A slot that its holder shares with others is no slot any more.
    keys.slots_in(mode).filter(|_| !is_release)
}

/// Adds the shards whose counters a request needs.
fn add_counters(request: &Request, counters: &mut Vec<u16>) {
    match request {
        Request::Lock {
            verb:
                Verb::Acquire { .. }
                | Verb::Heal { .. }
                | Verb::Extend {
                    write_back: Some(_),
                    ..
                },
            lock,
        } => counters.extend(lock.keys.iter().map(|key| key.shard().number())),
        Request::Lock { verb, lock } if request.looks_at_line() => {
            counters.push(lock.keys.first_shard().number());
        }
        Request::Job {
            verb: JobVerb::Claim { lock, .. } | JobVerb::Commit { lock, .. },
            ..
        } => counters.push(Shard::of(lock).number()),
        _ => {}
    }
}

/// The names of a verb: for a key, for several, for a lock that is shared, for one over a shared one of the same holder, and
/// for a slot.
type Names = [&'static str; 5];

const ACQUIRE: Names = [
    "acquire",
    "acquire_all",
    "acquire_shared",
    "acquire_over",
    "acquire_slot",
];
const EXTEND: Names = [
    "extend",
    "extend_all",
    "extend_shared",
    "extend_over",
    "extend_slot",
];
const WRITE_BACK: Names = [
    "write_back",
    "write_back_all",
    "write_back_shared",
    "write_back_over",
    "write_back_slot",
];
const HEAL: Names = ["heal", "heal_all", "heal_shared", "heal_over", "heal_slot"];
const RELEASE: Names = [
    "release",
    "release_all",
    "release_shared",
    "release_over",
    "release",
];
const TOMBSTONE: Names = [
    "tombstone",
    "tombstone_all",
    "tombstone_shared",
    "tombstone_over",
    "tombstone",
];

/// Adds the arguments of a request.
fn operation(request: &Request, to: &mut Encoded) {
    match request {
        Request::Lock { verb, lock } => {
            let Lock { mode, keys, owner } = &**lock;
            let (names, ttl) = match verb {
                Verb::Acquire { ttl, .. } => (ACQUIRE, Some(ttl)),
                Verb::Extend {
                    ttl,
                    write_back: None,
                } => (EXTEND, Some(ttl)),
                Verb::Extend { ttl, .. } => (WRITE_BACK, Some(ttl)),
                Verb::Heal { ttl, .. } => (HEAL, Some(ttl)),
                Verb::Release { .. } => (RELEASE, None),
                Verb::Tombstone { ttl } => (TOMBSTONE, Some(ttl)),
            };
            let [one, all, shared, over, slot] = names;
            let in_line = match verb {
                Verb::Acquire { line, block, .. } => line.map(|line| (line, *block)),
                _ => None,
            };
            let in_line = in_line.filter(|_| request.looks_at_line());
            let (wish, slots) = (wish_of(*verb, *mode), slots_of(*verb, *mode, keys));
            let name = match mode {
                _ if slots.is_some() => slot,
                LockMode::Shared => shared,
                LockMode::Upgrade { .. } => over,
                LockMode::Exclusive if wish.is_some() => "acquire_next",
                LockMode::Exclusive if keys.is_several() => all,
                LockMode::Exclusive if in_line.is_some() => "queue",
                LockMode::Exclusive => one,
            };
            to.args.push(name);
            if name != one && in_line.is_none() {
                to.args.push_number(keys.iter().len() as u64);
            }
            to.push_owner(*owner);
            if let Some(ttl) = ttl {
                // Servers have no use for less than a millisecond.
                to.args.push_number(millis(*ttl).max(1));
            }
            match *verb {
                Verb::Acquire {
                    proposal, block, ..
                } => {
                    let last = proposal.saturating_add(u64::from(block.max(1)) - 1);
                    to.args.push_counter(proposal).push_counter(last);
                    if let Some(wish) = wish.filter(|_| slots.is_none()) {
                        to.args.push_number(millis(wish).max(1));
                    }
                }
                Verb::Extend {
                    write_back: Some(counter),
                    ..
                }
                | Verb::Heal { counter, .. } => {
                    to.args.push_counter(counter);
                }
                _ => {}
            }
            if let Some((line, block)) = in_line {
                to.push_place(line.place);
                to.args
                    .push_number(line.grant_ms())
                    .push_number(block.max(1).into())
                    .push(line.round_to_wire())
                    .push_number(line.stay_ms());
            }
            if let Some(slots) = slots {
                to.args.push_number(slots.count().into());
            }
            if let LockMode::Upgrade { of } = mode {
                to.push_owner(of.with_label_of(owner));
            }
        }
        Request::Job { verb, .. } => jobs::operation(verb, to),
        Request::Node(NodeVerb::Look) => drop(to.args.push("tick")),
        Request::Node(NodeVerb::Sign { .. }) => {
            to.args.push("sign").push_number(millis(NodeVerb::SIGN));
        }
        Request::Node(NodeVerb::Inspect) => drop(to.args.push("inspect")),
        Request::Node(NodeVerb::Survey) => drop(to.args.push("survey")),
        Request::Node(NodeVerb::Open {
            floor,
            since,
            horizon,
        }) => {
            to.args
                .push("open")
                .push_counter(*floor)
                .push_number(since.as_micros());
            match horizon {
                Some(horizon) => to.args.push_counter(horizon.as_millis()),
                None => to.args.push(""),
            };
        }
    }
}

/// Returns the wish of a writer's request, if it has one; a reader has none.
fn wish_of(verb: Verb, mode: LockMode) -> Option<Duration> {
    match (verb, mode) {
        (Verb::Acquire { wish, .. }, LockMode::Exclusive) => wish,
        _ => None,
    }
}
