//! The owner of a key on each node, the callers that wait there, and the deletion of the key.

pub mod line;

use std::{collections::BTreeSet, fmt, time::Duration};

use futures_util::future::join_all;
use redlock_core::{
    HolderLabel, InvalidKey, NodeKeys, ResourceKey, Slots,
    deadpool_redis::redis::{Value, cmd, from_redis_value},
};
use redlock_proto::{LineCaller, OwnerId};

use crate::look::{
    clock,
    probe::{NodeProbe, ProbedNode, words},
    settings::NodeSettings,
};

/// What one node says of a key.
#[derive(Debug)]
#[non_exhaustive]
pub struct KeyLook {
    /// Whether it is held there.
    pub state: KeyState,
    /// The callers that wait in line for the key there, the first one first.
    pub line: Vec<LineCaller>,
}

/// Whether a key is held at one node.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_enums, reason = "it is free, held, or not known")]
pub enum KeyState {
    /// The key has no owner.
    Free,
    /// This owner has the key, for this time; `None` if the key does not expire.
    Held(Owner, Option<Duration>),
    /// The node did not say.
    Unknown(String),
}

impl KeyLook {
    fn unknown(why: &str) -> Self {
        Self {
            state: KeyState::Unknown(why.to_owned()),
            line: Vec::new(),
        }
    }

    /// Returns the owner of the key, if it has one.
    pub const fn owner(&self) -> Option<&Owner> {
        match &self.state {
            KeyState::Held(owner, _) => Some(owner),
            KeyState::Free | KeyState::Unknown(_) => None,
        }
    }

    /// Returns whether the node has answered.
    pub const fn is_known(&self) -> bool {
        !matches!(self.state, KeyState::Unknown(_))
    }
}

/// The value of a held key.
///
/// A client that knows it can release the key, so it is never shown.
#[derive(Clone)]
pub struct Owner {
    value: Vec<u8>,
    /// The owners that share the key, if it is shared.
    shared: Option<SharedValue>,
}

impl fmt::Debug for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Owner").field(&self.holder()).finish()
    }
}

/// What the value of a shared key says.
#[derive(Clone)]
struct SharedValue {
    /// The values of the owners that share it.
    owners: BTreeSet<String>,
    /// Set if a caller waits for exclusive ownership.
    is_wished_for: bool,
}

impl Owner {
    fn new(value: &[u8], left: Option<Duration>) -> Self {
        Self {
            value: value.to_vec(),
            shared: SharedValue::of(value, left),
        }
    }

    /// Returns the labels of the holders, for output.
    ///
    /// `None` if the key is exclusive and its holder has no label.
    pub fn shown(&self) -> Option<String> {
        let label = |value: &str| HolderLabel::of_value(value).map(|label| label.to_string());
        let Some(shared) = &self.shared else {
            return label(str::from_utf8(&self.value).ok()?);
        };
        let holders = shared.owners.iter().map(|value| label(value));
        let mut holders: Vec<_> = holders
            .map(|label| label.unwrap_or_else(|| UNLABELLED.to_owned()))
            .collect();
        holders.sort();
        let wish = if shared.is_wished_for {
            ", and a caller waits to hold it exclusively"
        } else {
            ""
        };
        let (count, holders) = (holders.len(), holders.join(", "));
        Some(format!("{count} that share it ({holders}){wish}"))
    }

    /// Returns whether the key is shared.
    pub fn is_shared(&self) -> bool {
        self.shared.is_some()
    }

    /// Returns whether the key is shared, and a caller waits for exclusive ownership.
    pub fn is_wished_for(&self) -> bool {
        let shared = self.shared.as_ref();
        shared.is_some_and(|shared| shared.is_wished_for)
    }

    /// Returns the holders in words, for people.
    pub fn holder(&self) -> String {
        self.shown().unwrap_or_else(|| UNLABELLED.to_owned())
    }

    /// Returns since when the owner has the key, as the time since 1970 by the owner's clock.
    ///
    /// `None` if the value has no time, as with clients of other libraries, or if the key is shared.
    pub fn since(&self) -> Option<Duration> {
        let since = OwnerId::drawn_at(str::from_utf8(&self.value).ok()?)?;
        // What is far from now was not meant as a time.
        (since < clock::wall() + CLOCKS_DIFFER).then_some(since)
    }
}

/// Two values of a shared key are equal if the same owners share it: the times of an owner differ between nodes.
impl PartialEq for Owner {
    fn eq(&self, other: &Self) -> bool {
        match (&self.shared, &other.shared) {
            (Some(own), Some(other)) => own.owners == other.owners,
            _ => self.value == other.value,
        }
    }
}

impl Eq for Owner {}

impl SharedValue {
    /// Reads the value of a key that expires after `left`; `None` if the key is not shared.
    ///
    /// Each line has the end of an owner's time, by the node's clock, and the value of the owner.
    /// The key lasts as long as the last of its owners.
    fn of(value: &[u8], left: Option<Duration>) -> Option<Self> {
        let lines = str::from_utf8(value).ok()?.strip_prefix(SHARED)?.lines();
        let lines: Option<Vec<(u128, &str)>> = lines
            .map(|line| {
                let (end, owner) = line.split_once(' ')?;
                Some((end.parse().ok()?, owner))
            })
            .collect();
        let lines = lines?;
        let last = lines.iter().map(|(end, _)| *end).max()?;
        let now = last.saturating_sub(left?.as_millis());
        let live = lines.iter().filter(|(end, _)| *end >= now);
        let (wishes, owners): (Vec<_>, Vec<_>) = live.partition(|(_, owner)| *owner == WISH);
        let owners = owners.into_iter().map(|(_, owner)| (*owner).to_owned());
        Some(Self {
            owners: owners.collect(),
            is_wished_for: !wishes.is_empty(),
        })
    }
}

/// Asks all nodes at once about a resource, and returns its key on each of them and what the node says of it.
///
/// `ls` shows a hash for a name that is too long for a key.
/// The name is taken for such a hash if no resource of this name is held.
pub async fn find(
    places: &[ProbedNode],
    settings: &NodeSettings,
    resource: &str,
) -> Result<(Vec<String>, Vec<KeyLook>), InvalidKey> {
    let name = settings.key(resource)?;
    let keys = places.iter().map(|place| place.keys.lock(&name));
    let keys = keys.collect::<Result<Vec<_>, _>>()?;
    let said = ask(places, &keys).await;
    let is_held = |said: &KeyLook| said.owner().is_some();
    if !said.iter().any(is_held) {
        let hashed = places.iter().map(|place| place.keys.lock_of_hash(resource));
        let hashed: Vec<String> = hashed.flatten().collect();
        let of_hash = ask(places, &hashed).await;
        if of_hash.iter().any(is_held) {
            return Ok((hashed, of_hash));
        }
    }
    Ok((keys, said))
}

/// Returns how many slots a resource has, as the most nodes remember it; `None` if no node remembers any.
pub async fn slots(places: &[ProbedNode], resource: &ResourceKey) -> Option<usize> {
    let counts = places.iter().map(async |place| {
        let key = place.keys.slots(resource);
        let answer = place.probe.clone().ok()?.ask(cmd("MGET").arg(key)).await;
        let [count]: [Option<String>; 1] = from_redis_value(answer.ok()?).ok()?;
        let count = count?.parse().ok()?;
        (1..=Slots::MAX_COUNT).contains(&count).then_some(count)
    });
    let counts: Vec<usize> = join_all(counts).await.into_iter().flatten().collect();
    let nodes = |count: &usize| counts.iter().filter(|other| *other == count).count();
    counts.iter().copied().max_by_key(nodes)
}

/// Asks all nodes at once.
async fn ask(places: &[ProbedNode], keys: &[String]) -> Vec<KeyLook> {
    let all = places.iter().zip(keys).map(|(place, key)| async move {
        match &place.probe {
            Ok(probe) => look(&mut probe.clone(), &place.keys, key).await,
            Err(why) => KeyLook::unknown(why),
        }
    });
    let mut said = join_all(all).await;
    unite(&mut said);
    said
}

/// Adds to each node's value of a shared key the owners that the other nodes name.
///
/// A node knows only the owners to which it granted the key, and each owner has a majority of its own.
pub fn unite(said: &mut [KeyLook]) {
    let mut shared: Vec<&mut SharedValue> = said
        .iter_mut()
        .filter_map(|said| match &mut said.state {
            KeyState::Held(owner, _) => owner.shared.as_mut(),
            KeyState::Free | KeyState::Unknown(_) => None,
        })
        .collect();
    let all: BTreeSet<String> = shared
        .iter()
        .flat_map(|shared| shared.owners.iter().cloned())
        .collect();
    let is_wished_for = shared.iter().any(|shared| shared.is_wished_for);
    for shared in &mut shared {
        shared.owners.clone_from(&all);
        shared.is_wished_for = is_wished_for;
    }
}

/// Returns what a node says of a key, by what every client's user may do.
pub async fn look(probe: &mut NodeProbe, keys: &NodeKeys, key: &str) -> KeyLook {
    let mut script = cmd("EVAL");
    script.arg(READ).arg(2).arg(key).arg(keys.line(key));
    let parts = match probe.ask(&script).await {
        Ok(Value::Array(parts)) => parts,
        Ok(_) => return KeyLook::unknown(NO_SENSE),
        Err(error) => return KeyLook::unknown(&words(&error)),
    };
    let [value, Value::Int(left), line, Value::Int(line_left)] = &*parts else {
        return KeyLook::unknown(NO_SENSE);
    };
    let Some(state) = state(value, *left) else {
        return KeyLook::unknown(NO_SENSE);
    };
    let line = match line {
        Value::BulkString(line) => {
            let left = time(*line_left).unwrap_or_default();
            LineCaller::all_of(&String::from_utf8_lossy(line), left)
        }
        _ => Vec::new(),
    };
    KeyLook { state, line }
}

/// Returns what the value of a key and its time to live in milliseconds say; `None` if they make no sense.
fn state(value: &Value, left: i64) -> Option<KeyState> {
    match (value, left) {
        (Value::Nil, -2) => Some(KeyState::Free),
        // A value of another type is in the way of every lock.
        (Value::Nil, left) => Some(KeyState::Held(Owner::new(&[], None), time(left))),
        (Value::BulkString(owner), left) => {
            let left = time(left);
            let owner = Owner::new(owner, left);
            // The entry of a waiting caller may outlast the owners that shared the key.
            Some(match &owner.shared {
                Some(shared) if shared.owners.is_empty() => KeyState::Free,
                _ => KeyState::Held(owner, left),
            })
        }
        _ => None,
    }
}

/// Deletes a key if this owner still has it; returns whether it was so.
pub async fn take_away(probe: &mut NodeProbe, key: &str, owner: &Owner) -> Result<bool, String> {
    let mut script = cmd("EVAL");
    script.arg(DELETE).arg(1).arg(key).arg(&owner.value);
    match probe.ask(&script).await {
        Ok(Value::Int(deleted)) => Ok(deleted == 1),
        Ok(_) => Err(NO_SENSE.to_owned()),
        Err(error) => Err(words(&error)),
    }
}

fn time(left: i64) -> Option<Duration> {
    u64::try_from(left).ok().map(Duration::from_millis)
}

/// The most by which a holder's clock may be ahead of this machine's.
const CLOCKS_DIFFER: Duration = Duration::from_secs(60);

const NO_SENSE: &str = "its answer makes no sense";

/// The words for a holder without a label.
const UNLABELLED: &str = "a holder without a label";

/// How the value of a shared key begins.
const SHARED: &str = "shared\n";
/// Stands in such a value for a caller that waits for exclusive ownership.
const WISH: &str = "--------------------------------";

/// A script's part that reads the first 8 KiB of a value, because another program's value may have any length.
///
/// No owner is longer. A user without the right to read a part reads the whole value.
macro_rules! value {
    () => {
        "local value = redis.pcall('GETRANGE', KEYS[1], 0, 8191) \
         if value == '' or type(value) == 'table' then value = redis.call('MGET', KEYS[1])[1] end "
    };
}

const READ: &str = concat!(
    value!(),
    "return {value, redis.call('PTTL', KEYS[1]), redis.call('MGET', KEYS[2])[1], redis.call('PTTL', KEYS[2])}"
);
/// A value of another type has no owner, and is compared as the empty one.
const DELETE: &str = concat!(
    value!(),
    "if (value or '') == ARGV[1] then return redis.call('DEL', KEYS[1]) else return 0 end"
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_who_share_a_key_on_different_majorities_are_told_together() {
        let left = Some(Duration::from_millis(50));
        let look = |value: String| KeyLook {
            state: KeyState::Held(Owner::new(value.as_bytes(), left), left),
            line: Vec::new(),
        };
        let shared = |lines: &str| look(format!("shared\n{lines}"));
        let mut said = [shared("100 a\n"), shared("100 b\n"), look("c".to_owned())];
        assert!(said[0].owner() != said[1].owner());
        unite(&mut said);
        let [one, other, alone] = said.each_ref().map(|said| said.owner().unwrap());
        assert!(one == other && one != alone);
        let told = one.shown().unwrap_or_default();
        assert!(told.starts_with("2 that share it"), "{told}");
        // Each node has its own value to be taken away.
        assert!(one.value != other.value);
    }
}
