//! By whom each node says that a key is held, and how to take it away.

use std::{sync::Arc, time::Duration};

use futures_util::future::join_all;
use redlock_core::{
    HolderLabel,
    deadpool_redis::redis::{Value, cmd},
};
use redlock_proto::OwnerId;

use crate::{
    clock,
    probe::{Place, Probe, words},
};

/// What one node says of a key.
#[derive(Clone, Debug)]
pub(crate) struct Said {
    pub(crate) node: Arc<str>,
    pub(crate) state: KeyState,
}

/// Whether a key is held at one node.
#[derive(Clone, Debug)]
pub(crate) enum KeyState {
    /// Nobody has it.
    Free,
    /// This owner has it, for so long; `None` if for ever.
    Held(Owner, Option<Duration>),
    /// The node did not say.
    Unknown(String),
}

/// The value under which a key is held: whoever knows it can release the key, so it is never shown.
#[derive(Clone, Eq, PartialEq)]
pub(crate) struct Owner(Vec<u8>);

impl Owner {
    /// Returns the public part.
    pub(crate) fn label(&self) -> Option<HolderLabel> {
        HolderLabel::of_value(str::from_utf8(&self.0).ok()?)
    }

    /// Returns since when it has the key, as the time since 1970 by its own clock; `None` if that is not told, as by clients
    /// of other libraries.
    pub(crate) fn since(&self) -> Option<Duration> {
        let since = OwnerId::drawn_at(str::from_utf8(&self.0).ok()?)?;
        // What is far from now was not meant as a time.
        (since < clock::wall() + CLOCKS_DIFFER).then_some(since)
    }
}

impl std::fmt::Debug for Owner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Owner(..)")
    }
}

/// Asks all nodes at once.
pub(crate) async fn ask(places: &[Place], key: &str) -> Vec<Said> {
    let all = places.iter().map(|place| async move {
        let state = match &place.probe {
            Ok(probe) => state(&mut probe.clone(), key).await,
            Err(why) => KeyState::Unknown(why.clone()),
        };
        Said {
            node: Arc::clone(&place.name),
            state,
        }
    });
    join_all(all).await
}

/// Returns what a node says of a key, by what every client's user may do.
pub(crate) async fn state(probe: &mut Probe, key: &str) -> KeyState {
    let mut script = cmd("EVAL");
    script.arg(READ).arg(1).arg(key);
    match probe.ask(&script).await {
        Ok(Value::Array(parts)) => match &*parts {
            [Value::Nil, Value::Int(-2)] => KeyState::Free,
            // A value of another type is in the way of every lock.
            [Value::Nil, Value::Int(left)] => KeyState::Held(Owner(Vec::new()), time(*left)),
            [Value::BulkString(owner), Value::Int(left)] => {
                KeyState::Held(Owner(owner.clone()), time(*left))
            }
            _ => KeyState::Unknown("its answer makes no sense".to_owned()),
        },
        Ok(_) => KeyState::Unknown("its answer makes no sense".to_owned()),
        Err(error) => KeyState::Unknown(words(&error)),
    }
}

/// Deletes a key if this owner still has it; returns whether it was so.
pub(crate) async fn take_away(probe: &mut Probe, key: &str, owner: &Owner) -> Result<bool, String> {
    let mut script = cmd("EVAL");
    script.arg(DELETE).arg(1).arg(key).arg(&owner.0);
    match probe.ask(&script).await {
        Ok(Value::Int(deleted)) => Ok(deleted == 1),
        Ok(_) => Err("its answer makes no sense".to_owned()),
        Err(error) => Err(words(&error)),
    }
}

fn time(left: i64) -> Option<Duration> {
    u64::try_from(left).ok().map(Duration::from_millis)
}

/// A holder's clock may be ahead by so much of this machine's.
const CLOCKS_DIFFER: Duration = Duration::from_secs(60);

const READ: &str = "return {redis.call('MGET', KEYS[1])[1], redis.call('PTTL', KEYS[1])}";
/// A value of another type has no owner, and is compared as the empty one.
const DELETE: &str = "if (redis.call('MGET', KEYS[1])[1] or '') == ARGV[1] then \
     return redis.call('DEL', KEYS[1]) else return 0 end";
