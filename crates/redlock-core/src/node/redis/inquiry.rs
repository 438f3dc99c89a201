//! A node whose server others name: the Sentinels of a master, or the nodes of a Cluster.
//!
//! These informants are asked before each connection, and once a second while it stands, all at once.
//! A server counts for as long as a majority of them names it.
//! One of them is not enough: one that was cut off from the others names a server that goes on beside the promoted one,
//! and the node would have two votes.
//!
//! Sources: <https://redis.io/docs/latest/develop/reference/sentinel-clients/>, which asks one Sentinel after the other,
//! and <https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/>, which asks one node.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use deadpool_redis::redis::{
    AsyncConnectionConfig, Client, ConnectionAddr, ConnectionInfo, RedisError,
    aio::MultiplexedConnection, cmd,
};
use futures_util::{StreamExt, future::try_join, stream::FuturesUnordered};
use redlock_proto::{Instant, Quarantine};
use tokio::{
    task::AbortHandle,
    time::{self, sleep, timeout_at},
};

use super::{
    Address,
    directory::{Directory, Subject},
    error::{NONSENSE, is_unknown_command, reason},
    testimony::{NamedServer, Tally, Testimony},
};
use crate::{clock::Clock, credentials::CredentialsProvider};

/// The informants of a node, and how long they have.
pub(super) struct Informants {
    directory: Arc<Directory>,
    /// Whose owner is asked for, in a Cluster.
    slot: Option<u16>,
    /// What gives the credentials for the server, and for the nodes of a Cluster.
    pub(super) credentials: Option<CredentialsProvider>,
    pub(super) connect_timeout: Duration,
}

impl Informants {
    pub(super) fn new(
        directory: Directory,
        slot: Option<u16>,
        credentials: Option<CredentialsProvider>,
        connect_timeout: Duration,
    ) -> Self {
        Self {
            directory: Arc::new(directory),
            slot,
            credentials,
            connect_timeout,
        }
    }

    /// Returns how to connect to the server that they name, and what shows from now on whether they still name it.
    pub(super) async fn server(&self) -> Result<(ConnectionInfo, Confirmation), Arc<str>> {
        let mut inquiry = Inquiry::of(self);
        let limit = self.connect_timeout / 2;
        let asked_at = CLOCK.now();
        let server = inquiry.named(limit, Until::Majority).await?;
        let info = inquiry.directory.at(&server.host, server.port);
        let confirmation = Confirmation::start(inquiry, server, asked_at, limit);
        Ok((info, confirmation))
    }

    /// Returns how to connect to the server that they name.
    #[cfg(feature = "deadpool-redis")]
    pub(super) async fn located(&self) -> Result<ConnectionInfo, Arc<str>> {
        let mut inquiry = Inquiry::of(self);
        let server = inquiry
            .named(self.connect_timeout / 2, Until::Majority)
            .await?;
        Ok(inquiry.directory.at(&server.host, server.port))
    }
}

/// Whether a majority still names a server; they are asked once a second for as long as this is there.
///
/// Any two majorities have an informant in common, and none goes back to an earlier failover.
/// So once a client counts on the promoted server, no client sends the old one anything that counts after
/// [`FOLLOWED_WITHIN`].
pub(super) struct Confirmation {
    state: Arc<Mutex<Confirmed>>,
    /// Which servers are asked.
    pub(super) informants: &'static str,
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
    fn start(
        mut inquiry: Inquiry,
        server: NamedServer,
        asked_at: Instant,
        limit: Duration,
    ) -> Self {
        let state = Arc::new(Mutex::new(Confirmed::At(asked_at)));
        let told = Arc::clone(&state);
        let informants = inquiry.directory.subject.informants();
        let task = tokio::spawn(async move {
            loop {
                sleep(PAUSE).await;
                let asked_at = CLOCK.now();
                let Ok(now_named) = inquiry.named(limit, Until::All).await else {
                    continue;
                };
                let is_same = now_named == server;
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
            informants,
            task: task.abort_handle(),
        }
    }

    /// Returns why a call must not be sent to the server, if it must not.
    pub(super) fn refusal(&self) -> Option<Arc<str>> {
        let confirmed = *self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let informants = self.informants;
        match confirmed {
            Confirmed::At(asked_at) => {
                let age = CLOCK.now().saturating_since(asked_at);
                (age > FOLLOWED_WITHIN).then(|| {
                    format!("a majority of {informants} has not confirmed for five seconds that it is the master").into()
                })
            }
            Confirmed::Replaced => Some(format!("{informants} name another server").into()),
        }
    }
}

impl Drop for Confirmation {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Connections to the informants of a node, to ask them where its server is.
struct Inquiry {
    directory: Arc<Directory>,
    slot: Option<u16>,
    credentials: Option<CredentialsProvider>,
    /// Those of the URL first, and then those of which others have told.
    informants: Vec<Informant>,
}

#[derive(Clone)]
struct Informant {
    info: ConnectionInfo,
    /// There is one once it has answered.
    connection: Option<MultiplexedConnection>,
}

/// How long informants are waited for.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Until {
    /// Until a majority names a server.
    Majority,
    /// Until all have answered, or their time is over: so there is a connection to each the next time.
    All,
}

impl Inquiry {
    fn of(informants: &Informants) -> Self {
        let directory = Arc::clone(&informants.directory);
        let known = directory.informants.iter().cloned();
        Self {
            slot: informants.slot,
            // Sentinels have a user and a password of their own.
            credentials: informants
                .credentials
                .clone()
                .filter(|_| directory.is_cluster()),
            informants: known.map(Informant::at).collect(),
            directory,
        }
    }

    /// Asks all informants at once, and those of which they tell; returns the server that a majority names.
    async fn named(&mut self, limit: Duration, until: Until) -> Result<NamedServer, Arc<str>> {
        let Self {
            directory,
            slot,
            credentials,
            informants,
        } = self;
        // Sentinels are asked for no slot.
        let slot = slot.unwrap_or_default();
        let end = time::Instant::now() + limit;
        let ask = async |place: usize, informant: Informant| {
            let asked = informant.ask(directory, slot, credentials.as_ref(), limit);
            let answer = timeout_at(end, asked).await;
            let answer = answer.unwrap_or_else(|_| Err("it does not answer".into()));
            (place, answer)
        };
        let known = informants.iter().cloned().enumerate();
        let mut asked: FuturesUnordered<_> = known
            .map(|(place, informant)| ask(place, informant))
            .collect();
        let (mut tally, mut named) = (Tally::of(directory.informants.len()), None);
        while let Some((place, answer)) = asked.next().await {
            let informant = &mut informants[place];
            informant.connection = None;
            let testimony = match answer {
                Ok((connection, testimony)) => {
                    informant.connection = Some(connection);
                    testimony
                }
                Err(why) => {
                    tally.fail(format!("{}: {why}", Address::of(&informant.info)));
                    continue;
                }
            };
            for (host, port) in &testimony.others {
                let found = Informant::at(directory.at(host, *port));
                let address = Address::of(&found.info);
                if !informants
                    .iter()
                    .any(|known| Address::of(&known.info) == address)
                {
                    asked.push(ask(informants.len(), found.clone()));
                    informants.push(found);
                }
            }
            let majority = tally.count(testimony);
            named = named.or(majority);
            if named.is_some() && until == Until::Majority {
                break;
            }
        }
        if until == Until::All {
            // Those that are still members are told of again.
            let mut place = 0..;
            informants.retain(|informant| {
                let is_of_url = place.next() < Some(directory.informants.len());
                is_of_url || informant.connection.is_some()
            });
        }
        named.ok_or_else(|| tally.failure(&directory.subject).into())
    }
}

impl Informant {
    const fn at(info: ConnectionInfo) -> Self {
        Self {
            info,
            connection: None,
        }
    }

    /// Asks it, and returns the connection for the next time, too.
    async fn ask(
        self,
        directory: &Directory,
        slot: u16,
        credentials: Option<&CredentialsProvider>,
        limit: Duration,
    ) -> Result<(MultiplexedConnection, Testimony), Arc<str>> {
        let connection = match self.connection {
            Some(connection) => connection,
            None => {
                let settings = AsyncConnectionConfig::new()
                    .set_connection_timeout(Some(limit))
                    .set_response_timeout(Some(limit));
                let info = CredentialsProvider::completed(credentials, self.info.clone()).await?;
                let client = Client::open(info).map_err(|error| reason(&error))?;
                let made = client.get_multiplexed_async_connection_with_config(&settings);
                made.await.map_err(|error| reason(&error))?
            }
        };
        let mut one = connection.clone();
        let testimony = match &directory.subject {
            Subject::Master(name) => {
                let mut other = connection.clone();
                let (mut identity, mut question) = (cmd("SENTINEL"), cmd("SENTINEL"));
                identity.arg("MYID");
                question.arg("MASTER").arg(name);
                let asked = try_join(
                    identity.query_async(&mut one),
                    question.query_async(&mut other),
                );
                let (id, answer) = asked.await.map_err(|error| why_no_sentinel(&error))?;
                Testimony::of_sentinel(id, &answer)
            }
            Subject::SlotOwner(_) => {
                let mut question = cmd("CLUSTER");
                let asked = question.arg("NODES").query_async(&mut one).await;
                let answer: String = asked.map_err(|error| why_no_cluster(&error))?;
                let host = match self.info.addr() {
                    ConnectionAddr::Tcp(host, _) | ConnectionAddr::TcpTls { host, .. } => host,
                    _ => "",
                };
                Testimony::of_cluster_node(&answer, slot, host, directory.has_tls())
            }
        };
        Ok((connection, testimony.ok_or(NONSENSE)?))
    }
}

fn why_no_sentinel(error: &RedisError) -> Arc<str> {
    match error.detail() {
        Some(words) if words.contains("No such master") => "it knows no such master".into(),
        _ if is_unknown_command(error) => "it is no Sentinel".into(),
        _ => reason(error),
    }
}

fn why_no_cluster(error: &RedisError) -> Arc<str> {
    let is_alone = |words: &str| words.contains("cluster support disabled");
    if error.detail().is_some_and(is_alone) || is_unknown_command(error) {
        "it is no part of a Cluster".into()
    } else {
        reason(error)
    }
}

/// It counts the time in suspend, too.
const CLOCK: Clock = Clock::Boot;

/// How often a majority is asked.
const PAUSE: Duration = Duration::from_secs(1);

/// For how long the word of a majority counts.
const FOLLOWED_WITHIN: Duration = Quarantine::FOLLOWED_WITHIN;
