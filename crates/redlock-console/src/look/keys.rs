//! The keys that nodes have, and how one is taken away from its holder.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use futures_util::{StreamExt, future::join_all, stream};
use redlock_cron::job_remembered_under;
use redlock_proto::LineCaller;

use super::{
    clock::{millis, rounded},
    lookup::{
        self, KeyLook, KeyState, Owner,
        line::{self, Line},
    },
    probe::ProbedNode,
    settings::NodeSettings,
};
use crate::snapshot::{KeyKind, KeySnapshot};

/// The keys that nodes have, and the nodes that did not say, with the reason.
pub type KeyList = (Vec<HeldKey>, Vec<(Arc<str>, String)>);

/// Asks all nodes at once which keys they have.
///
/// `most` is how many keys of each node are looked at: the first by name.
pub async fn list(
    places: &[ProbedNode],
    settings: &NodeSettings,
    prefix: &str,
    most: usize,
) -> KeyList {
    let all = places.iter().map(|place| on_node(place, prefix, most));
    let found = join_all(all).await;
    let mut locks: BTreeMap<String, Vec<KeyLook>> = BTreeMap::new();
    let mut silent = Vec::new();
    // What is behind the last name of a node that has more is not known of all of them.
    let mut last: Option<String> = None;
    for (place, found) in places.iter().zip(found) {
        match found {
            Ok((keys, has_more)) => {
                let own = keys.last().filter(|_| has_more);
                last = match (last, own) {
                    (Some(last), Some((own, _))) => Some(last.min(own.clone())),
                    (last, own) => last.or_else(|| own.map(|(own, _)| own.clone())),
                };
                for (name, said) in keys {
                    locks.entry(name).or_default().push(said);
                }
            }
            Err(why) => silent.push((Arc::clone(&place.name), why)),
        }
    }
    if let Some(last) = last {
        locks.retain(|name, _| *name <= last);
    }
    for said in locks.values_mut() {
        lookup::unite(said);
    }
    let majority = settings.majority();
    let has_majority = places.len() - silent.len() >= majority;
    let held = locks
        .into_iter()
        .filter_map(|(key, said)| HeldKey::of(key, &said, majority, has_majority));
    (held.collect(), silent)
}

/// A key that some node has.
#[derive(Debug)]
#[non_exhaustive]
pub struct HeldKey {
    /// The resource.
    pub key: String,
    /// The owner on the most nodes.
    pub owner: Owner,
    /// The number of these nodes.
    pub votes: usize,
    /// Whether these are a majority.
    pub is_held: bool,
    /// How long it lasts at the most; `None` for ever.
    pub left: Option<Duration>,
    /// The callers in line; `None` if too few nodes have answered.
    pub line: Option<Line>,
}

impl HeldKey {
    /// Returns what nodes say of a key together; `None` if none has it.
    ///
    /// `has_majority` says whether enough nodes have answered to know the line.
    pub fn of(key: String, said: &[KeyLook], majority: usize, has_majority: bool) -> Option<Self> {
        let owned = said.iter().filter_map(|said| match &said.state {
            KeyState::Held(owner, left) => Some((owner, *left)),
            KeyState::Free | KeyState::Unknown(_) => None,
        });
        let owned: Vec<_> = owned.collect();
        let times_of = |owner: &Owner| -> Vec<Option<Duration>> {
            let of_owner = owned.iter().filter(|(its, _)| *its == owner);
            of_owner.map(|(_, left)| *left).collect()
        };
        let owners = owned.iter().map(|(owner, _)| *owner);
        let owner = owners.max_by_key(|owner| times_of(owner).len())?;
        let times = times_of(owner);
        let votes = times.len();
        let times: Option<Vec<Duration>> = times.into_iter().collect();
        Some(Self {
            key,
            owner: owner.clone(),
            votes,
            is_held: votes >= majority,
            left: times.and_then(|times| times.into_iter().max()),
            line: has_majority.then(|| Line::of(said, majority)),
        })
    }

    /// Returns the callers that are known to wait in line.
    pub fn in_line(&self) -> &[LineCaller] {
        self.line.as_ref().map_or(&[], Line::callers)
    }
}

/// Returns the resources whose keys one node has, with what it says of each, and whether it has more of them than `most`.
async fn on_node(
    place: &ProbedNode,
    prefix: &str,
    most: usize,
) -> Result<(Vec<(String, KeyLook)>, bool), String> {
    let mut probe = place.probe.clone()?;
    let mut found = Vec::new();
    let keys = probe.keys(place.keys.pattern(), "ls", most).await?;
    let has_more = keys.len() >= most;
    let named = keys.into_iter().filter_map(|key| {
        let name = place.keys.resource(&key)?;
        name.starts_with(prefix).then_some((key, name))
    });
    let looks = named.map(|(key, name)| {
        let mut probe = probe.clone();
        async move { (name, lookup::look(&mut probe, &place.keys, &key).await) }
    });
    let mut looks = stream::iter(looks).buffered(AT_ONCE);
    while let Some((name, said)) = looks.next().await {
        if said.owner().is_some() {
            found.push((name, said));
        }
    }
    Ok((found, has_more))
}

/// What has become of a key that was taken away from its holder.
#[derive(Debug)]
#[non_exhaustive]
pub struct Released {
    /// The holders before, in words.
    pub holders: Vec<String>,
    /// Each node on which the key had a holder, and whether it was deleted there, or why that is not known.
    pub nodes: Vec<(Arc<str>, Result<bool, String>)>,
    /// How many nodes did not say whether they have the key.
    pub unknown: usize,
    /// Whether no majority can have the key any more.
    pub is_free: bool,
}

impl Released {
    /// Returns on how many nodes it was deleted.
    pub fn count(&self) -> usize {
        let deleted = |(_, done): &&(Arc<str>, _)| matches!(done, Ok(true));
        self.nodes.iter().filter(deleted).count()
    }
}

/// Deletes a key where it still has the owner that was found there.
pub async fn release(
    places: &[ProbedNode],
    keys: &[String],
    said: &[KeyLook],
    majority: usize,
) -> Released {
    let claims = claims(said);
    let unknown = said.iter().filter(|said| !said.is_known()).count();
    let held = claims.iter().map(|(_, nodes, _)| nodes).sum::<usize>();
    let holders = claims.iter().map(|(owner, ..)| owner.holder());
    let mut released = Released {
        holders: holders.collect(),
        nodes: Vec::new(),
        unknown,
        is_free: false,
    };
    for ((place, key), said) in places.iter().zip(keys).zip(said) {
        if let (Some(owner), Ok(probe)) = (said.owner(), &place.probe) {
            let done = lookup::take_away(&mut probe.clone(), key, owner).await;
            released.nodes.push((Arc::clone(&place.name), done));
        }
    }
    released.is_free = held - released.count() + unknown < majority;
    released
}

/// Returns each owner of the key, on how many nodes it has the key, and for how long on the one where it lasts longest;
/// `None` if for ever.
pub fn claims(said: &[KeyLook]) -> Vec<(&Owner, usize, Option<Duration>)> {
    let mut claims: Vec<(&Owner, usize, Option<Duration>)> = Vec::new();
    for said in said {
        let KeyState::Held(owner, left) = &said.state else {
            continue;
        };
        match claims.iter_mut().find(|(known, ..)| *known == owner) {
            Some((_, nodes, longest)) => {
                *nodes += 1;
                *longest = longest.zip(*left).map(|(known, left)| known.max(left));
            }
            None => claims.push((owner, 1, *left)),
        }
    }
    claims
}

impl KeySnapshot {
    /// Returns a key for programs, which changed hands `changed` times, with the first `most` callers of its line.
    pub fn of(key: &HeldKey, changed: u64, nodes: usize, most: usize) -> Self {
        let job = job_remembered_under(&key.key);
        Self {
            key: key.key.clone(),
            kind: match key.key.rsplit_once('#') {
                _ if job.is_some() => KeyKind::Job,
                _ if key.owner.is_shared() => KeyKind::Shared,
                Some((_, place)) if place.parse::<u16>().is_ok() => KeyKind::Slot,
                _ => KeyKind::Exclusive,
            },
            holder: key.owner.shown(),
            votes: key.votes,
            held: key.is_held,
            held_since_ms: key.owner.since().map(millis),
            remaining_ms: key.left.map(millis),
            line: key.line.as_ref().map(|line| line.snapshot(most)),
            exclusive_awaited: key.owner.is_wished_for(),
            changed_hands: changed,
            why: key.why(job, nodes),
        }
    }
}

impl HeldKey {
    /// Returns why it is held, and when it ends without a renewal or a release.
    fn why(&self, job: Option<(&str, &str)>, nodes: usize) -> String {
        let holder = match job {
            Some((namespace, name)) => format!(
                "a run of the job {namespace}/{name} ({})",
                self.owner.holder()
            ),
            None => self.owner.holder(),
        };
        let votes = self.votes;
        let held = match self.is_held {
            true => format!("Held by {holder} on {votes} of {nodes} nodes."),
            false => format!(
                "No majority: {votes} of {nodes} nodes have it for {holder}, so it is not held."
            ),
        };
        let end = match self.left {
            Some(left) => format!("Free in {} unless it is renewed", rounded(left)),
            None => "It never expires: only its holder or a release by force ends it".to_owned(),
        };
        let next = self.in_line().first().map_or_else(String::new, |first| {
            format!("; {} is next", line::label(first))
        });
        format!("{held} {end}{next}.")
    }
}

/// How many keys a node is asked about at once.
const AT_ONCE: usize = 64;
