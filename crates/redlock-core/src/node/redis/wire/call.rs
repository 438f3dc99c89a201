//! Requests as the script and the functions take them.

use std::time::Duration;

use deadpool_redis::redis::Cmd;
use redlock_proto::{JobVerb, KeySet, Keyspace, Lock, Mode, NodeVerb, Shard, SlotCount, Verb};

use super::{
    jobs,
    keys::Keys,
    values::{digits, millis, written},
};
use crate::node::Request;

/// Returns a call with these requests, behind its head, which says by what they are done.
pub(in super::super) fn call(head: Cmd, keyspace: &Keyspace, requests: &[Request]) -> Cmd {
    let mut keys = Keys::with_room(requests.len());
    for request in requests {
        add_keys(keyspace, request, &mut keys);
    }
    let mut counters = Vec::with_capacity(requests.len());
    for request in requests {
        add_counters(request, &mut counters);
    }
    let mut cmd = head;
    cmd.arg(2 + keys.len());
    cmd.arg(keyspace.mark().as_str());
    for key in keys.iter() {
        cmd.arg(key);
    }
    cmd.arg(keyspace.fence().as_str());
    let quarantine = keyspace.quarantine();
    if !requests.is_empty() && requests.iter().all(Request::is_release) {
        cmd.arg("").arg("")
    } else {
        let (length, step) = (millis(quarantine.length()), millis(quarantine.step()));
        let trusts = u8::from(quarantine.trusts_persistence());
        let delays = u8::from(quarantine.trusts_delayed_restarts());
        cmd.arg(quarantine.to_wire())
            .arg(format!("{length} {step} {trusts} {delays}"))
    };
    cmd.arg(match (keys.have_twins(), have_twins(&counters)) {
        (true, true) => "both",
        (true, false) => "keys",
        (false, true) => "counters",
        (false, false) => "",
    });
    if counters.is_empty() && !requests.iter().any(is_opening) {
        cmd.arg(0)
    } else {
        cmd.arg(1 + counters.len()).arg("floor")
    };
    for counter in counters {
        cmd.arg(counter);
    }
    let mut text = String::with_capacity(64);
    for request in requests {
        operation(&mut cmd, request, &mut text);
    }
    cmd
}

/// Adds the keys of a request, in the order in which the script expects them.
fn add_keys(keyspace: &Keyspace, request: &Request, keys: &mut Keys) {
    match request {
        Request::Node(NodeVerb::Open { .. }) => keys.push(keyspace.horizon()),
        Request::Node(_) => {}
        Request::Job { verb, job } => jobs::add_keys(keyspace, verb, job, keys),
        Request::Lock { verb, lock } => {
            let Lock {
                mode,
                keys: locked,
                owner,
            } = &**lock;
            for key in locked {
                keys.push(key.key());
            }
            match verb {
                Verb::Acquire { .. } | Verb::Heal { .. } | Verb::Tombstone { .. } => {
                    keys.push_tombstone(keyspace, *owner);
                }
                Verb::Extend { .. } | Verb::Release { .. } => {}
            }
            if let Some(slots) = slots_of(*verb, *mode, locked) {
                keys.push(slots.place());
            }
        }
    }
}

/// Returns the number of slots that a request has to say, and where nodes remember it.
fn slots_of(verb: Verb, mode: Mode, keys: &KeySet) -> Option<&SlotCount> {
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
        Request::Job {
            verb: JobVerb::Claim { lock, .. } | JobVerb::Commit { lock, .. },
            ..
        } => counters.push(Shard::of(lock).number()),
        _ => {}
    }
}

fn is_opening(request: &Request) -> bool {
    matches!(request, Request::Node(NodeVerb::Open { .. }))
}

/// Returns whether two of a call's few counters are the same.
fn have_twins(counters: &[u16]) -> bool {
    let mut numbered = counters.iter().enumerate();
    numbered.any(|(number, counter)| counters[..number].contains(counter))
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

/// Adds the arguments of a request; `text` is room for one of them.
fn operation(cmd: &mut Cmd, request: &Request, text: &mut String) {
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
            let (wish, slots) = (wish_of(*verb, *mode), slots_of(*verb, *mode, keys));
            let name = match mode {
                _ if slots.is_some() => slot,
                Mode::Shared => shared,
                Mode::Upgrade { .. } => over,
                Mode::Exclusive if wish.is_some() => "acquire_next",
                Mode::Exclusive if keys.is_several() => all,
                Mode::Exclusive => one,
            };
            cmd.arg(name);
            if name != one {
                cmd.arg(keys.iter().len());
            }
            text.clear();
            owner.write(text);
            cmd.arg(&*text);
            if let Some(ttl) = ttl {
                // Servers have no use for less than a millisecond.
                cmd.arg(millis(*ttl).max(1));
            }
            match *verb {
                Verb::Acquire {
                    proposal, block, ..
                } => {
                    let last = proposal.saturating_add(u64::from(block.max(1)) - 1);
                    for counter in [proposal, last] {
                        cmd.arg(written(counter, text));
                    }
                    if let Some(wish) = wish.filter(|_| slots.is_none()) {
                        cmd.arg(millis(wish).max(1));
                    }
                }
                Verb::Extend {
                    write_back: Some(counter),
                    ..
                }
                | Verb::Heal { counter, .. } => {
                    cmd.arg(written(counter, text));
                }
                _ => {}
            }
            if let Some(slots) = slots {
                cmd.arg(slots.count());
            }
            if let Mode::Upgrade { of } = mode {
                text.clear();
                of.write(text);
                cmd.arg(&*text);
            }
        }
        Request::Job { verb, .. } => jobs::operation(cmd, verb),
        Request::Node(NodeVerb::Tick) => drop(cmd.arg("tick")),
        Request::Node(NodeVerb::Inspect) => drop(cmd.arg("inspect")),
        Request::Node(NodeVerb::Survey) => drop(cmd.arg("survey")),
        Request::Node(NodeVerb::Open {
            floor,
            since,
            horizon,
        }) => {
            let horizon = horizon.map(|horizon| digits(horizon.as_millis()));
            cmd.arg("open")
                .arg(digits(*floor))
                .arg(since.as_micros())
                .arg(horizon.unwrap_or_default());
        }
    }
}

/// Returns the wish of a writer's request, if it has one; a reader has none.
fn wish_of(verb: Verb, mode: Mode) -> Option<Duration> {
    match (verb, mode) {
        (Verb::Acquire { wish, .. }, Mode::Exclusive) => wish,
        _ => None,
    }
}
