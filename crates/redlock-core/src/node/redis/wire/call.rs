//! Requests as the script and the functions take them.

use std::borrow::Cow;

use deadpool_redis::redis::Cmd;
use redlock_proto::{JobVerb, Keyspace, NodeVerb, Verb};

use super::{
    jobs,
    values::{digits, millis},
};
use crate::node::Request;

/// Returns a call with these requests, behind its head, which says by what they are done.
pub(in super::super) fn call(head: Cmd, keyspace: &Keyspace, requests: &[Request]) -> Cmd {
    let keys: Vec<Cow<'_, str>> = requests
        .iter()
        .flat_map(|request| keys_of(keyspace, request))
        .collect();
    let counters: Vec<u16> = requests.iter().filter_map(counter_of).collect();
    let mut cmd = head;
    cmd.arg(2 + keys.len());
    cmd.arg(keyspace.mark().as_str());
    for key in &keys {
        cmd.arg(&**key);
    }
    cmd.arg(keyspace.fence().as_str());
    let quarantine = keyspace.quarantine();
    if !requests.is_empty() && requests.iter().all(Request::is_release) {
        cmd.arg("").arg("")
    } else {
        let (length, step) = (millis(quarantine.length()), millis(quarantine.step()));
        let trusts = u8::from(quarantine.trusts_persistence());
        cmd.arg(quarantine.to_wire())
            .arg(format!("{length} {step} {trusts}"))
    };
    cmd.arg(match (has_twins(&keys), has_twins(&counters)) {
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
    for request in requests {
        operation(&mut cmd, request);
    }
    cmd
}

/// Returns the keys of a request, in the order in which the script expects them.
fn keys_of<'a>(keyspace: &'a Keyspace, request: &'a Request) -> Vec<Cow<'a, str>> {
    let tombstone = |owner| Cow::Owned(keyspace.tombstone(owner).as_str().to_owned());
    match request {
        Request::Node(NodeVerb::Open { .. }) => vec![keyspace.horizon().as_str().into()],
        Request::Node(_) => Vec::new(),
        Request::Job { verb, job } => jobs::keys_of(keyspace, verb, job),
        Request::Lock { verb, key, owner } => match verb {
            Verb::Acquire { .. } | Verb::Heal { .. } | Verb::Tombstone { .. } => {
                vec![key.as_str().into(), tombstone(*owner)]
            }
            Verb::Extend { .. } | Verb::Release { .. } => vec![key.as_str().into()],
        },
    }
}

/// Returns the shard whose counter a request needs.
fn counter_of(request: &Request) -> Option<u16> {
    match request {
        Request::Lock {
            verb:
                Verb::Acquire { shard, .. }
                | Verb::Heal { shard, .. }
                | Verb::Extend {
                    write_back: Some((shard, _)),
                    ..
                },
            ..
        }
        | Request::Job {
            verb: JobVerb::Claim { shard, .. } | JobVerb::Commit { shard, .. },
            ..
        } => Some(shard.number()),
        _ => None,
    }
}

fn is_opening(request: &Request) -> bool {
    matches!(request, Request::Node(NodeVerb::Open { .. }))
}

/// Returns whether two of a call's few items are the same.
fn has_twins<T: PartialEq>(items: &[T]) -> bool {
    let mut numbered = items.iter().enumerate();
    numbered.any(|(number, item)| items[..number].contains(item))
}

fn operation(cmd: &mut Cmd, request: &Request) {
    match request {
        Request::Lock { verb, owner, .. } => {
            let (name, ttl) = match verb {
                Verb::Acquire { ttl, .. } => ("acquire", Some(ttl)),
                Verb::Extend {
                    ttl,
                    write_back: None,
                } => ("extend", Some(ttl)),
                Verb::Extend { ttl, .. } => ("write_back", Some(ttl)),
                Verb::Heal { ttl, .. } => ("heal", Some(ttl)),
                Verb::Release { .. } => ("release", None),
                Verb::Tombstone { ttl } => ("tombstone", Some(ttl)),
            };
            cmd.arg(name).arg(owner.to_wire());
            if let Some(ttl) = ttl {
                // Servers have no use for less than a millisecond.
                cmd.arg(millis(*ttl).max(1));
            }
            match *verb {
                Verb::Acquire {
                    proposal, block, ..
                } => {
                    let last = proposal.saturating_add(u64::from(block.max(1)) - 1);
                    cmd.arg(digits(proposal)).arg(digits(last));
                }
                Verb::Extend {
                    write_back: Some((_, counter)),
                    ..
                }
                | Verb::Heal { counter, .. } => {
                    cmd.arg(digits(counter));
                }
                _ => {}
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
