//! Nodes that are Redis or Valkey masters.

mod address;
mod error;
mod info;
mod jobs;
mod session;
mod wire;
mod words;

use std::{fmt, sync::Arc, time::Duration};

use deadpool_redis::{
    Manager, Pool,
    redis::{AsyncConnectionConfig, ConnectionInfo, IntoConnectionInfo, io::tcp::TcpSettings},
};
use futures_util::{FutureExt, future::BoxFuture};

pub(crate) use self::address::Address;
use self::{error::reason, session::RedisSession};
use super::{Node, Session};
use crate::BuildError;

/// A Redis or Valkey master, reached over one connection that is taken from a pool.
///
/// The builder makes one of a URL; it is public for those who wrap it.
// The pool is only a factory of connections: a checkout per command would cost a round trip each,
// because deadpool pings what it hands out.
pub struct RedisNode {
    name: Arc<str>,
    pool: Pool,
}

/// Why a node's configuration was refused, in words that show no credentials.
#[derive(Debug)]
pub(crate) struct RedisNodeError(pub(crate) String);

impl RedisNode {
    /// What a node's user must be allowed to do, in the words of `ACL SETUSER`, beside the keys of the namespace,
    /// such as `~{redlock}:*`.
    pub const RIGHTS: &str =
        "+ping +eval +evalsha +info +mget +set +del +pttl +pexpire +hmget +hset +hvals";

    /// A node at this URL, with a second for a connection to be made.
    ///
    /// # Errors
    ///
    /// The URL is malformed; the error does not repeat it.
    pub fn at(url: &str) -> Result<Self, BuildError> {
        match Self::new(
            &deadpool_redis::Config::from_url(url),
            Duration::from_secs(1),
        ) {
            Ok((node, _)) => Ok(node),
            Err(RedisNodeError(message)) => Err(BuildError::misuse("url", message)),
        }
    }

    /// A node at this URL or configuration.
    pub(crate) fn new(
        config: &deadpool_redis::Config,
        connect_timeout: Duration,
    ) -> Result<(Self, Address), RedisNodeError> {
        let info = connection_info(config)?;
        let address = Address::of(&info);
        // Requests are small and each is waited for, so Nagle's algorithm would only delay them.
        let info = info.set_tcp_settings(TcpSettings::default().set_nodelay(true));
        let settings = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(connect_timeout))
            // The driver has its own limits, and must learn of late replies.
            .set_response_timeout(None);
        let manager = Manager::new_with_config(info, settings)
            .map_err(|error| RedisNodeError(reason(&error).to_string()))?;
        let pool = Pool::builder(manager)
            .config(config.get_pool_config())
            .build()
            .map_err(|error| RedisNodeError(error.to_string()))?;
        Ok((Self::from_pool(address.to_string().into(), pool), address))
    }

    /// A node whose connections a ready pool makes; it cannot be asked for its address.
    pub(crate) fn from_pool(name: Arc<str>, pool: Pool) -> Self {
        Self { name, pool }
    }
}

impl fmt::Debug for RedisNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The pool's manager holds the password.
        f.debug_struct("RedisNode")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl Node for RedisNode {
    fn name(&self) -> Arc<str> {
        Arc::clone(&self.name)
    }

    fn connect(&self) -> BoxFuture<'static, Result<Box<dyn Session>, Arc<str>>> {
        let pool = self.pool.clone();
        async move {
            let session = RedisSession::open(&pool).await?;
            Ok(Box::new(session) as Box<dyn Session>)
        }
        .boxed()
    }
}

fn connection_info(config: &deadpool_redis::Config) -> Result<ConnectionInfo, RedisNodeError> {
    let info = match (&config.url, &config.connection) {
        (Some(url), None) => url.as_str().into_connection_info(),
        (None, Some(connection)) => connection.clone().into_connection_info(),
        (None, None) => {
            return Err(RedisNodeError(
                "has neither a url nor a connection".to_owned(),
            ));
        }
        (Some(_), Some(_)) => {
            return Err(RedisNodeError(
                "has both a url and a connection; give one".to_owned(),
            ));
        }
    };
    // The parser's own message may quote the URL, and with it the password.
    info.map_err(|_| {
        RedisNodeError(
            "is not a URL like redis://[user:password@]host[:port][/db], rediss://… or unix:///path"
                .to_owned(),
        )
    })
}
