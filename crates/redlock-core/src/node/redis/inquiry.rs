//! A node behind Sentinels: the master that they name.
//!
//! The Sentinels are asked before each connection, and once a second while it stands, all at once.
//! A server counts for as long as a majority of them names it.
//! One Sentinel is not enough: one that was cut off from the others names a master that goes on beside the promoted one,
//! and the node would have two votes.
//!
//! Source: <https://redis.io/docs/latest/develop/reference/sentinel-clients/>, which asks one Sentinel after the other.

use std::{
    collections::{HashMap, HashSet},
    fmt::Write as _,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use deadpool_redis::redis::{
    AsyncConnectionConfig, Client, ConnectionInfo, RedisError, RedisResult,
    aio::MultiplexedConnection, cmd,
};
use futures_util::{StreamExt, stream::FuturesUnordered};
use redlock_proto::{Instant, Quarantine};
use tokio::{
    task::AbortHandle,
    time::{sleep, timeout},
};

use super::{
    Address,
    error::{NONSENSE, is_unknown_command, reason},
    sentinel::Sentinel,
};
use crate::clock::Clock;

impl Sentinel {
    /// Asks the Sentinels where the master is, within half of the limit.
    pub(crate) async fn master(&self, limit: Duration) -> Result<ConnectionInfo, Arc<str>> {
        let named = Inquiry::of(self.clone()).named(limit / 2).await?;
        Ok(self.at(&named.host, named.port))
    }
}

/// The Sentinels of a node, and how long they have.
pub(super) struct Sentinels {
    sentinel: Sentinel,
    pub(super) connect_timeout: Duration,
}

impl Sentinels {
    pub(super) const fn new(sentinel: Sentinel, connect_timeout: Duration) -> Self {
        Self {
            sentinel,
            connect_timeout,
        }
    }

    /// Returns how to connect to the server that they name, and what shows from now on whether they still name it.
    pub(super) async fn master(&self) -> Result<(ConnectionInfo, Confirmation), Arc<str>> {
        let mut inquiry = Inquiry::of(self.sentinel.clone());
        let limit = self.connect_timeout / 2;
        let asked_at = CLOCK.now();
        let named = inquiry.named(limit).await?;
        let info = self.sentinel.at(&named.host, named.port);
        let confirmation = Confirmation::start(inquiry, named, asked_at, limit);
        Ok((info, confirmation))
    }
}

/// Whether a majority of the Sentinels still names a server; they are asked once a second for as long as this is there.
///
/// Any two majorities have a Sentinel in common, and none goes back to an earlier failover.
/// So once a client counts on the promoted server, no client sends the old one anything that counts after
/// [`FOLLOWED_WITHIN`].
pub(super) struct Confirmation {
    state: Arc<Mutex<Confirmed>>,
    task: AbortHandle,
}

#[derive(Clone, Copy)]
enum Confirmed {
    /// A majority named it in answer to a question of this moment.
    At(Instant),
    /// A majority names another server.
    Replaced,
}

impl Confirmation {
    #[expect(
        clippy::disallowed_methods,
        reason = "it ends with its session, which the driver closes"
    )]
    fn start(mut inquiry: Inquiry, named: Named, asked_at: Instant, limit: Duration) -> Self {
        let state = Arc::new(Mutex::new(Confirmed::At(asked_at)));
        let told = Arc::clone(&state);
        let task = tokio::spawn(async move {
            loop {
                sleep(PAUSE).await;
                let asked_at = CLOCK.now();
                let Ok(now_named) = inquiry.named(limit).await else {
                    continue;
                };
                let is_same = now_named.is_at(&named);
                let confirmed = if is_same {
                    Confirmed::At(asked_at)
                } else {
                    Confirmed::Replaced
                };
                // Nothing panics while the lock is held.
                *told.lock().unwrap_or_else(PoisonError::into_inner) = confirmed;
                if !is_same {
                    return;
                }
            }
        });
        Self {
            state,
            task: task.abort_handle(),
        }
    }

    /// Returns why a call must not be sent to the server, if it must not.
    pub(super) fn refusal(&self) -> Option<Arc<str>> {
        let confirmed = *self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match confirmed {
            Confirmed::At(asked_at) => {
                let age = CLOCK.now().saturating_since(asked_at);
                (age > FOLLOWED_WITHIN).then(|| UNCONFIRMED.into())
            }
            Confirmed::Replaced => Some(REPLACED.into()),
        }
    }
}

impl Drop for Confirmation {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Connections to the Sentinels of a master, to ask them where it is.
struct Inquiry {
    sentinel: Sentinel,
    /// One for each Sentinel, once it was asked.
    connections: Vec<Option<Known>>,
}

/// A connection to a Sentinel, and the identity that this has given itself.
struct Known {
    connection: MultiplexedConnection,
    id: String,
}

impl Inquiry {
    fn of(sentinel: Sentinel) -> Self {
        let connections = sentinel.sentinels.iter().map(|_| None).collect();
        Self {
            sentinel,
            connections,
        }
    }

    /// Asks all Sentinels at once, and returns the server that a majority of them names.
    async fn named(&mut self, limit: Duration) -> Result<Named, Arc<str>> {
        let Self {
            sentinel,
            connections,
        } = self;
        let master = &*sentinel.master;
        let asked = sentinel.sentinels.iter().zip(connections);
        let mut asked: FuturesUnordered<_> = asked
            .map(async |(info, connection)| {
                let answer = timeout(limit, ask(info, connection, master, limit)).await;
                let answer = answer.unwrap_or_else(|_| Err("it does not answer".into()));
                if answer.is_err() {
                    *connection = None;
                }
                answer.map_err(|why| format!("{}: {why}", Address::of(info)))
            })
            .collect();
        // The address that Sentinels name, and which Sentinels these are: two addresses may lead to one of them.
        let mut votes: Vec<(Named, HashSet<String>)> = Vec::new();
        let (mut known, mut failed) = (sentinel.sentinels.len(), Vec::new());
        while let Some(answer) = asked.next().await {
            let (id, named) = match answer {
                Ok(answer) => answer,
                Err(why) => {
                    failed.push(why);
                    continue;
                }
            };
            known = known.max(named.sentinels);
            match votes.iter_mut().find(|(other, _)| other.is_at(&named)) {
                Some((_, by)) => _ = by.insert(id),
                None => votes.push((named, HashSet::from([id]))),
            }
            if let Some(place) = votes.iter().position(|(_, by)| by.len() > known / 2) {
                return Ok(votes.swap_remove(place).0);
            }
        }
        let answered = votes.iter().map(|(_, by)| by.len()).sum::<usize>();
        let (given, needed) = (answered + failed.len(), known / 2 + 1);
        let mut why =
            format!("fewer than {needed} of {known} Sentinels name one server as {master}");
        if given < needed {
            let _ = write!(why, "; the URL must name {needed} different ones at least");
        }
        for failed in failed {
            let _ = write!(why, ", {failed}");
        }
        Err(why.into())
    }
}

/// Asks one Sentinel; returns its identity and its answer.
async fn ask(
    info: &ConnectionInfo,
    known: &mut Option<Known>,
    master: &str,
    limit: Duration,
) -> Result<(String, Named), Arc<str>> {
    let failed = |error: RedisError| match error.detail() {
        Some(words) if words.contains("No such master") => "it knows no such master".into(),
        _ if is_unknown_command(&error) => "it is no Sentinel".into(),
        _ => reason(&error),
    };
    let known = match known {
        Some(known) => known,
        None => {
            let settings = AsyncConnectionConfig::new()
                .set_connection_timeout(Some(limit))
                .set_response_timeout(Some(limit));
            let client = Client::open(info.clone()).map_err(failed)?;
            let made = client.get_multiplexed_async_connection_with_config(&settings);
            let mut connection = made.await.map_err(failed)?;
            let mut identity = cmd("SENTINEL");
            let id = identity.arg("MYID").query_async(&mut connection).await;
            let id = id.map_err(failed)?;
            known.insert(Known { connection, id })
        }
    };
    let mut question = cmd("SENTINEL");
    question.arg("MASTER").arg(master);
    let answer: RedisResult<HashMap<String, String>> =
        question.query_async(&mut known.connection).await;
    let named = Named::read(&answer.map_err(failed)?).ok_or(NONSENSE)?;
    Ok((known.id.clone(), named))
}

/// The answer of a Sentinel.
#[derive(Debug, Eq, PartialEq)]
struct Named {
    host: String,
    port: u16,
    /// How many Sentinels watch the master, as far as this one knows.
    sentinels: usize,
}

impl Named {
    fn read(answer: &HashMap<String, String>) -> Option<Self> {
        let host = answer.get("ip")?;
        // It is shown to operators.
        let is_shown = |c: char| c.is_ascii_alphanumeric() || ".:_-".contains(c);
        let others: usize = answer.get("num-other-sentinels")?.parse().ok()?;
        Some(Self {
            host: Some(host)
                .filter(|host| host.chars().all(is_shown))?
                .clone(),
            port: answer.get("port")?.parse().ok()?,
            sentinels: others + 1,
        })
    }

    fn is_at(&self, other: &Self) -> bool {
        (&self.host, self.port) == (&other.host, other.port)
    }
}

const REPLACED: &str = "its Sentinels name another server";
const UNCONFIRMED: &str =
    "a majority of its Sentinels has not confirmed for five seconds that it is the master";

/// It counts the time in suspend, too.
const CLOCK: Clock = Clock::Boot;

/// How often a majority is asked.
const PAUSE: Duration = Duration::from_secs(1);

/// For how long the word of a majority counts.
const FOLLOWED_WITHIN: Duration = Quarantine::FOLLOWED_WITHIN;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_that_a_sentinel_names_is_read() {
        let answer = |host: &str| {
            let pairs = [("ip", host), ("port", "6379"), ("num-other-sentinels", "2")];
            HashMap::from(pairs.map(|(name, value)| (name.to_owned(), value.to_owned())))
        };
        let named = Named::read(&answer("10.0.0.9")).unwrap();
        assert_eq!(
            (&*named.host, named.port, named.sentinels),
            ("10.0.0.9", 6379, 3)
        );
        assert_eq!(Named::read(&answer("a b\r\nc")), None);
        assert_eq!(Named::read(&HashMap::new()), None);
    }
}
