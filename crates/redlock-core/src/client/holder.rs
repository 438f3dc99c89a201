//! A look at a key: its holder, or that it is free, or that too few nodes say.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime},
};

use futures_util::{StreamExt, future::BoxFuture, stream::FuturesUnordered};
use redlock_proto::{HolderLabel, KeyVerdict, OwnerId};
use tokio::time::{Instant, timeout};

use super::Redlock;
use crate::{
    InvalidKey, NodeAnswer, ResourceKey,
    node::{KeyEntry, Node, NodeKey, Session},
};

/// The holder of a resource at the time of a look.
///
/// [`Redlock::holder`] returns it.
/// It may be out of date when the caller reads it: no exclusion may rest on it.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
/// use redlock_core::Holder;
///
/// match redlock.holder("order:42").await? {
///     Holder::Held { label: Some(label), .. } => println!("{label} works on it"),
///     Holder::Held { .. } => println!("a holder without a label works on it"),
///     Holder::Free => println!("no holder has it"),
///     Holder::Unknown => println!("too few nodes have answered"),
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "it is held, free, or not known")]
pub enum Holder {
    /// A majority of the nodes votes, and has the key for one holder.
    #[non_exhaustive]
    Held {
        /// The label of the holder, if it has one.
        label: Option<HolderLabel>,
        /// The time at which the holder asked for the lease, by the holder's clock; `None` if the key does not say.
        since: Option<SystemTime>,
        /// The time after which a majority no longer has the key, by the nodes that have answered, unless the holder renews
        /// the lease or releases it; `None` if the key never expires.
        remaining: Option<Duration>,
    },
    /// A majority of the nodes votes, and does not have the key.
    Free,
    /// Neither is known: too few nodes have answered or vote, or the nodes have the key for different attempts.
    Unknown,
}

impl Redlock {
    /// Returns the holder of a resource, as a majority of voting nodes knows it.
    ///
    /// The look changes nothing: it creates, extends and deletes no key.
    /// It asks every node that the client reaches, over connections of its own, and then asks whether the node votes.
    /// A node that does not vote, as in quarantine, counts neither for a holder nor for [`Free`](Holder::Free): it takes
    /// keys for attempts that win nothing.
    /// If readers share the resource, the result is about one reader that a majority names.
    ///
    /// It ends as soon as the nodes that have not answered cannot change the result: a minority that hangs delays no look.
    /// It waits for the nodes' `connect_timeout` and twice the `node_timeout` at the longest.
    ///
    /// # Errors
    ///
    /// The name is not valid.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime with its timer enabled.
    ///
    /// # Cancel safety
    ///
    /// Dropping it has no effect.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
    /// use redlock_core::Holder;
    ///
    /// assert_eq!(redlock.holder("order:42").await?, Holder::Free);
    /// let guard = redlock.acquire("order:42").await?;
    /// assert!(matches!(redlock.holder("order:42").await?, Holder::Held { .. }));
    /// # drop(guard);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn holder<K>(&self, key: K) -> Result<Holder, InvalidKey>
    where
        K: TryInto<ResourceKey>,
        K::Error: Into<InvalidKey>,
    {
        let key = key.try_into().map_err(Into::into)?;
        let client = &*self.client;
        let lock = client.key_space.encode(&key)?;
        let job = client.key_space.encode_job(&key);
        let limit = client.settings.connect_timeout + client.settings.node_timeout;
        let standing = client.engine.standing().await;
        let is_down = |node| matches!(standing.get(node), Some(NodeAnswer::NotExecuted { .. }));
        let look = async |node: usize| {
            let session = &client.looks[node];
            // It cannot vote before the client has reached it, and may keep a connect waiting.
            if is_down(node) {
                session.close();
                return None;
            }
            let read = session.read(&*client.nodes[node], &lock, limit);
            let entry = timeout(limit, read).await.ok()?.ok()?;
            // Asked after the look: a node that lost its keys before the look does not vote now.
            let (_, answers) = client.engine.read_job(&job, &lock, Some(node)).await;
            Some((entry, answers.into_iter().nth(node)?))
        };
        let mut looks: FuturesUnordered<_> = (0..client.nodes.len()).map(look).collect();
        let mut seen = Vec::new();
        while let Some(entry) = looks.next().await {
            seen.extend(entry);
            let answers = seen
                .iter()
                .map(|(entry, standing): &(Option<KeyEntry>, _)| {
                    let owners = entry.as_ref().map(owners).unwrap_or_default();
                    (Some(owners), standing)
                });
            // A node that hangs keeps no look waiting which the others have decided.
            return Ok(
                match KeyVerdict::so_far(answers, self.majority(), looks.len()) {
                    None => continue,
                    Some(KeyVerdict::Held { owner, remaining }) => Holder::Held {
                        label: HolderLabel::of_value(owner),
                        since: OwnerId::drawn_at(owner)
                            .and_then(|since| SystemTime::UNIX_EPOCH.checked_add(since)),
                        remaining: (remaining != Duration::MAX).then_some(remaining),
                    },
                    Some(KeyVerdict::Free) => Holder::Free,
                    Some(KeyVerdict::Unknown) => Holder::Unknown,
                },
            );
        }
        Ok(Holder::Unknown)
    }
}

/// Returns the owners of a key, one or those that share it, and for how long each has it.
///
/// The value of a shared key has the end of each owner's time, by the node's clock.
/// The key lasts as long as the last of its owners, which tells that clock's time.
fn owners(entry: &KeyEntry) -> Vec<(&str, Duration)> {
    let left = entry.remaining;
    let Some(lines) = entry.value.strip_prefix("shared\n") else {
        return vec![(&entry.value, left.unwrap_or(Duration::MAX))];
    };
    let owners: Vec<(u64, &str)> = lines
        .lines()
        .filter_map(|line| line.split_once(' '))
        .filter_map(|(end, owner)| Some((end.parse().ok()?, owner)))
        .collect();
    let last = owners.iter().map(|(end, _)| *end).max().unwrap_or(0);
    let owners = owners.into_iter().filter_map(|(end, owner)| {
        let left = match left {
            Some(left) => left.checked_sub(Duration::from_millis(last - end))?,
            None => Duration::MAX,
        };
        // Neither a waiting writer nor an owner that upgrades is a holder of its own.
        (!owner.starts_with(['-', '+']) && !left.is_zero()).then_some((owner, left))
    });
    owners.collect()
}

/// The connection to a node for looks at keys, opened by the first of them.
#[derive(Default)]
pub(super) struct LookSession(Mutex<Option<Looking>>);

struct Looking {
    session: Box<dyn Session>,
    /// Since when a read waits for an answer, if no other has had one after it.
    awaited: Option<Instant>,
}

impl LookSession {
    /// Reads a key; connects again, once, if the connection was lost since the last look.
    ///
    /// A read that is dropped leaves the connection to the next one, unless it has waited for `limit`.
    async fn read(
        &self,
        node: &dyn Node,
        key: &NodeKey,
        limit: Duration,
    ) -> Result<Option<KeyEntry>, Arc<str>> {
        if let Some(read) = self.begin(key, limit)
            && let Ok(entry) = read.await
        {
            if let Some(kept) = &mut *self.looking() {
                kept.awaited = None;
            }
            return Ok(entry);
        }
        let mut session = node.connect().await?;
        let entry = session.read_key(key).await?;
        let awaited = None;
        *self.looking() = Some(Looking { session, awaited });
        Ok(entry)
    }

    /// Begins a read over the connection; `None` if there is none that answers.
    fn begin(&self, key: &NodeKey, limit: Duration) -> Option<ReadKey> {
        let mut looking = self.looking();
        let hangs = |kept: &mut Looking| kept.awaited.is_some_and(|at| at.elapsed() >= limit);
        drop(looking.take_if(hangs));
        let Looking { session, awaited } = looking.as_mut()?;
        awaited.get_or_insert_with(Instant::now);
        Some(session.read_key(key))
    }

    /// Closes the connection.
    fn close(&self) {
        drop(self.looking().take());
    }

    fn looking(&self) -> MutexGuard<'_, Option<Looking>> {
        // If a node's code panics while it is locked, the session is one that may hang.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

type ReadKey = BoxFuture<'static, Result<Option<KeyEntry>, Arc<str>>>;
