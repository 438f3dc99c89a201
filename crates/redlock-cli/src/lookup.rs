//! The owner of a key on each node, and the deletion of the key there.

use std::{collections::BTreeSet, time::Duration};

use futures_util::future::join_all;
use redlock_core::{
    HolderLabel,
    deadpool_redis::redis::{Value, cmd},
};
use redlock_proto::OwnerId;

use crate::{
    clock,
    connection::NodeSettings,
    exit::CommandError,
    probe::{NodeProbe, ProbedNode, words},
};

/// Whether a key is held at one node.
#[derive(Clone)]
pub(crate) enum KeyState {
    /// The key has no owner.
    Free,
    /// This owner has the key, for this time; `None` if the key does not expire.
    Held(Owner, Option<Duration>),
    /// The node did not say.
    Unknown(String),
}

impl KeyState {
    /// Returns the owner of the key, if it has one.
    pub(crate) const fn owner(&self) -> Option<&Owner> {
        match self {
            Self::Held(owner, _) => Some(owner),
            Self::Free | Self::Unknown(_) => None,
        }
    }
}

/// The value of a held key.
///
/// A client that knows it can release the key, so it is never shown.
#[derive(Clone)]
pub(crate) struct Owner {
    value: Vec<u8>,
    /// The owners that share the key, if it is shared.
    shared: Option<SharedValue>,
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
    pub(crate) fn shown(&self) -> Option<String> {
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
            ", and somebody waits to have it alone"
        } else {
            ""
        };
        let (count, holders) = (holders.len(), holders.join(", "));
        Some(format!("{count} that share it ({holders}{wish})"))
    }

    /// Returns the holders in words, for people.
    pub(crate) fn holder(&self) -> String {
        self.shown().unwrap_or_else(|| UNLABELLED.to_owned())
    }

    /// Returns since when the owner has the key, as the time since 1970 by the owner's clock.
    ///
    /// `None` if the value has no time, as with clients of other libraries, or if the key is shared.
    pub(crate) fn since(&self) -> Option<Duration> {
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

/// Asks all nodes at once about a resource, and returns its key on each of them and what that says of it.
///
/// `ls` shows a hash for a name that is too long for a key.
/// The name is taken for such a hash if no resource of this name is held.
pub(crate) async fn find(
    places: &[ProbedNode],
    settings: &NodeSettings,
    resource: &str,
) -> Result<(Vec<String>, Vec<KeyState>), CommandError> {
    let name = settings.key(resource)?;
    let keys = places.iter().map(|place| place.keys.lock(&name));
    let keys = keys.collect::<Result<Vec<_>, _>>()?;
    let said = ask(places, &keys).await;
    let is_held = |said: &KeyState| said.owner().is_some();
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

/// Asks all nodes at once.
async fn ask(places: &[ProbedNode], keys: &[String]) -> Vec<KeyState> {
    let all = places.iter().zip(keys).map(|(place, key)| async move {
        match &place.probe {
            Ok(probe) => state(&mut probe.clone(), key).await,
            Err(why) => KeyState::Unknown(why.clone()),
        }
    });
    let mut said = join_all(all).await;
    let owners = said.iter_mut().filter_map(|said| match said {
        KeyState::Held(owner, _) => Some(owner),
        KeyState::Free | KeyState::Unknown(_) => None,
    });
    unite(owners.collect());
    said
}

/// Adds to each node's value of a shared key the owners that the other nodes name.
///
/// A node knows only the owners to which it granted the key, and each owner has a majority of its own.
pub(crate) fn unite(owners: Vec<&mut Owner>) {
    let mut shared: Vec<&mut SharedValue> = owners
        .into_iter()
        .filter_map(|owner| owner.shared.as_mut())
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
pub(crate) async fn state(probe: &mut NodeProbe, key: &str) -> KeyState {
    let mut script = cmd("EVAL");
    script.arg(READ).arg(1).arg(key);
    match probe.ask(&script).await {
        Ok(Value::Array(parts)) => match &*parts {
            [Value::Nil, Value::Int(-2)] => KeyState::Free,
            // A value of another type is in the way of every lock.
            [Value::Nil, Value::Int(left)] => KeyState::Held(Owner::new(&[], None), time(*left)),
            [Value::BulkString(owner), Value::Int(left)] => {
                let left = time(*left);
                let owner = Owner::new(owner, left);
                // The entry of a waiting caller may outlast the owners that shared the key.
                match &owner.shared {
                    Some(shared) if shared.owners.is_empty() => KeyState::Free,
                    _ => KeyState::Held(owner, left),
                }
            }
            _ => KeyState::Unknown(NO_SENSE.to_owned()),
        },
        Ok(_) => KeyState::Unknown(NO_SENSE.to_owned()),
        Err(error) => KeyState::Unknown(words(&error)),
    }
}

/// Deletes a key if this owner still has it; returns whether it was so.
pub(crate) async fn take_away(
    probe: &mut NodeProbe,
    key: &str,
    owner: &Owner,
) -> Result<bool, String> {
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

const READ: &str = concat!(value!(), "return {value, redis.call('PTTL', KEYS[1])}");
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
        let value = |lines: &str| Owner::new(format!("shared\n{lines}").as_bytes(), left);
        let (mut one, mut other) = (value("100 a\n"), value("100 b\n"));
        let mut alone = Owner::new(b"c", left);
        assert!(one != other);
        unite(vec![&mut one, &mut other, &mut alone]);
        assert!(one == other && one != alone);
        let told = one.shown().unwrap_or_default();
        assert!(told.starts_with("2 that share it"), "{told}");
        // Each node has its own value to be taken away.
        assert!(one.value != other.value);
    }
}
