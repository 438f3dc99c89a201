//! Where a node's server is, and how to connect to it.

use std::{pin::pin, sync::Arc, time::Duration};

use deadpool_redis::{
    Manager, Pool, PoolConfig,
    redis::{
        AsyncConnectionConfig, ConnectionInfo,
        io::tcp::{TcpSettings, socket2::TcpKeepalive},
    },
};
use futures_util::future::{Either, select};
use redlock_proto::Keyspace;
use tokio::time::{Instant, timeout, timeout_at};

use super::session::{RedisSession, SessionParts};
use crate::{
    CredentialsProvider, RedisNodeError,
    discover::{Address, Informants, LastRoll, Named},
    speak::{
        error::{NotOpened, reason},
        error_texts::of_named,
        messages::Messages,
        probe::Probe,
        transport::Direct,
    },
};

/// Where a node's server is.
#[derive(Clone)]
pub(crate) enum Place {
    /// Always at the same address or name, or in the user's pool.
    Fixed(Box<Server>),
    /// Always at the same address or name, with credentials that are asked for before each connection.
    Guarded(Arc<Guarded>),
    /// Where Sentinels or the nodes of a Cluster say; they are asked before each connection.
    Named(Arc<NamedPlace>),
}

/// A server that others name.
pub(crate) struct NamedPlace {
    pub(crate) informants: Arc<Informants>,
    /// Whose owner is asked for, in a Cluster.
    pub(crate) slot: u16,
    /// Of the client, as the node has it; the term of a session is put into it.
    pub(crate) keyspace: Arc<Keyspace>,
    pub(crate) last_roll: LastRoll,
}

/// A server that wants credentials which a provider gives.
pub(crate) struct Guarded {
    pub(crate) info: ConnectionInfo,
    pub(crate) credentials: CredentialsProvider,
    pub(crate) connect_timeout: Duration,
}

/// How to connect to a server.
// A pool is only a factory of connections, for TLS, for RESP3 and if it is the user's: a checkout per command would
// cost a round trip each, because deadpool pings what it hands out.
#[derive(Clone)]
pub(crate) struct Server {
    pool: Pool,
    /// How to connect without the pool, where that is possible.
    direct: Option<Direct>,
    /// How to hear its messages, if the address is known.
    messages: Option<Messages>,
    /// How to find out why there is no connection, if the address is known.
    probe: Option<Probe>,
    /// After how long without a connection the probe is used.
    probe_after: Duration,
}

impl Place {
    /// Opens a connection.
    pub(crate) async fn open(&self, parts: SessionParts) -> Result<RedisSession, Arc<str>> {
        match self {
            Self::Fixed(server) => server.open(parts).await.map_err(|why| why.reason),
            Self::Guarded(guarded) => {
                let Guarded {
                    info,
                    credentials,
                    connect_timeout,
                } = &**guarded;
                let server =
                    Server::with(Some(credentials), info.clone(), *connect_timeout).await?;
                server.open(parts).await.map_err(|why| why.reason)
            }
            Self::Named(place) => {
                let NamedPlace {
                    informants,
                    slot,
                    keyspace,
                    last_roll,
                } = &**place;
                let (credentials, limit) = (&informants.credentials, informants.connect_timeout);
                // A little before the link gives up, which does not know of the server.
                let end = Instant::now() + limit * 9 / 10;
                let named = Named::ask(informants, *slot, last_roll).await?;
                let info = named.info();
                let address = Address::of(&info);
                let opening = async {
                    let server = Server::with(credentials.as_ref(), info, limit).await;
                    let session = server.map_err(NotOpened::clear)?.open(parts).await?;
                    let session = session.under(named, keyspace).await;
                    session.map_err(|why| NotOpened::clear(of_named(&why)))
                };
                let opened = timeout_at(end, opening).await;
                let opened = opened.unwrap_or_else(|_| Err(NotOpened::silent()));
                opened.map_err(|why| informants.not_opened(&address, &why).into())
            }
        }
    }
}

impl Server {
    /// Makes a server at this address.
    pub(crate) fn at(
        info: ConnectionInfo,
        pool: PoolConfig,
        connect_timeout: Duration,
    ) -> Result<Self, RedisNodeError> {
        let probe = Probe::of(&info);
        let direct = Direct::new(&info, connect_timeout);
        // Requests are small and each is waited for, so Nagle's algorithm would only delay them.
        let tcp = TcpSettings::default().set_nodelay(true);
        // Nothing is asked over a connection for messages, so only the system can tell that it was cut in silence.
        let keepalive = TcpKeepalive::new()
            .with_time(SILENCE_OF_MESSAGES)
            .with_interval(Duration::from_secs(1));
        let for_messages = tcp.clone().set_keepalive(keepalive);
        let for_messages = info.clone().set_tcp_settings(for_messages);
        let info = info.set_tcp_settings(tcp);
        let messages = Messages::of(for_messages, connect_timeout)
            .map_err(|error| RedisNodeError::new(&*reason(&error)))?;
        let settings = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(connect_timeout))
            // The driver has its own limits, and must learn of late replies.
            .set_response_timeout(None);
        let manager = Manager::new_with_config(info, settings)
            .map_err(|error| RedisNodeError::new(&*reason(&error)))?;
        let pool = Pool::builder(manager)
            .config(pool)
            // Its time limits need one, and the client's thread is of one.
            .runtime(deadpool_redis::Runtime::Tokio1)
            .build()
            .map_err(|error| RedisNodeError::new(error.to_string()))?;
        Ok(Self {
            direct,
            messages: Some(messages),
            probe,
            probe_after: connect_timeout / 2,
            ..Self::of_pool(pool)
        })
    }

    /// Makes a server at this address, with the credentials of now if a provider gives them.
    async fn with(
        credentials: Option<&CredentialsProvider>,
        info: ConnectionInfo,
        connect_timeout: Duration,
    ) -> Result<Self, Arc<str>> {
        let info = CredentialsProvider::completed(credentials, info).await?;
        let server = Self::at(info, PoolConfig::default(), connect_timeout);
        server.map_err(|refused| refused.to_string().into())
    }

    /// Makes the server of a ready pool; it cannot be asked for its address.
    pub(crate) const fn of_pool(pool: Pool) -> Self {
        Self {
            pool,
            direct: None,
            messages: None,
            probe: None,
            probe_after: Duration::MAX,
        }
    }

    async fn open(&self, parts: SessionParts) -> Result<RedisSession, NotOpened> {
        let mut opening = pin!(RedisSession::open(&self.pool, self.direct.as_ref(), parts));
        let finding = async || match &self.probe {
            Some(probe) => probe.finding().await,
            None => None,
        };
        let opened = match timeout(self.probe_after, &mut opening).await {
            Ok(opened) => opened,
            Err(_) => match select(opening, pin!(finding())).await {
                Either::Left((opened, _)) => opened,
                Either::Right((Some(finding), _)) => return Err(NotOpened::clear(finding)),
                Either::Right((None, opening)) => opening.await,
            },
        };
        match opened {
            Ok(session) => Ok(session.hearing(self.messages.clone())),
            Err(vague) if vague.is_vague => Err(finding().await.map_or(vague, NotOpened::clear)),
            Err(clear) => Err(clear),
        }
    }
}

/// After how long a silence the system looks whether a connection for messages is there.
const SILENCE_OF_MESSAGES: Duration = Duration::from_secs(5);
