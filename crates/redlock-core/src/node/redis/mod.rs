//! Nodes that are Redis or Valkey masters.

mod address;
mod args;
mod error;
mod error_texts;
mod form;
mod functions;
mod predecessor;
mod probe;
mod script;
mod session;
mod transport;
mod wire;

use std::{fmt, pin::pin, sync::Arc, time::Duration};

use deadpool_redis::{
    Manager, Pool,
    redis::{AsyncConnectionConfig, ConnectionInfo, IntoConnectionInfo, io::tcp::TcpSettings},
};
use futures_util::{
    FutureExt,
    future::{BoxFuture, Either, select},
};
use tokio::time::timeout;

pub(crate) use self::{address::Address, wire::Encoder};
use self::{
    error::{NotOpened, reason},
    form::Forms,
    predecessor::Predecessor,
    probe::Probe,
    session::RedisSession,
    transport::Direct,
};
use super::{Node, Session};
use crate::BuildError;

/// A Redis or Valkey master, reached over one connection.
///
/// The builder makes one of a URL; it is public so that a node of your own can wrap it.
///
/// # Examples
///
/// ```
/// use redlock_core::{NodeConfig, Redlock, node::RedisNode};
///
/// let node = RedisNode::at("redis://10.0.0.1")?.without_functions();
/// let builder = Redlock::builder().node(NodeConfig::other(node));
/// # drop(builder);
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
// A pool is only a factory of connections, for TLS, for RESP3 and if it is the user's: a checkout per command would
// cost a round trip each, because deadpool pings what it hands out.
pub struct RedisNode {
    name: Arc<str>,
    pool: Pool,
    /// How to connect without the pool, where that is possible.
    direct: Option<Direct>,
    /// How to find out why there is no connection, if the address is known.
    probe: Option<Probe>,
    /// After how long without a connection the probe is used.
    probe_after: Duration,
    /// Whether functions may be loaded and called.
    functions: bool,
    encoder: Arc<Encoder>,
    predecessor: Predecessor,
}

/// Why a node's configuration was refused, in words that show no credentials.
#[derive(Debug)]
pub(crate) struct RedisNodeError(pub(crate) String);

impl RedisNode {
    /// The rights that a node's user needs, in the syntax of `ACL SETUSER`, beside the keys of the namespace, such as
    /// `~{redlock}:*`.
    ///
    /// The client uses three more if the user has them.
    /// With `+script|load`, a server of Redis 7.4 or later does not drop the script to make room for other scripts.
    /// With `+config|get`, and under
    /// [`dangerous_trust_persistence`](crate::Expert::dangerous_trust_persistence), a node whose `appendfsync`
    /// is not `always` does not vote.
    /// With `+getrange`, and under [`verbatim_keys`](crate::Expert::verbatim_keys), a node reads only the first
    /// 8 kB of another program's value, however long it is.
    pub const RIGHTS: &str =
        "+ping +eval +evalsha +info +mget +set +del +pttl +pexpire +zmscore +zadd +zrange";

    /// The rights that a node's user needs beside [`RIGHTS`](Self::RIGHTS) for most calls to cost the node a third.
    ///
    /// With the first three, the client acquires, extends and releases by transactions of the server's own commands.
    /// Without one of these, the client calls the node by the script.
    /// With the last two, the client ends a connection that it has given up at the server, too.
    /// Without them, a transaction that arrives late over such a connection may take a key that its owner has released;
    /// the key then ends by its time to live.
    pub const RIGHTS_FOR_TRANSACTIONS: &str = "+time +multi +exec +client|id +client|kill";

    /// The rights that a node's user needs beside [`RIGHTS`](Self::RIGHTS) under
    /// [`dangerous_trust_delayed_restarts`](crate::Expert::dangerous_trust_delayed_restarts).
    ///
    /// With these, the client calls a node of Redis 7 or later, or Valkey, by functions, and loads them if they are
    /// missing.
    /// Without one of these rights, the client calls the node by the script, and each restart costs a quarantine.
    /// A line at `DEBUG` under the target `redlock::node` says which it uses, and why.
    pub const RIGHTS_FOR_FUNCTIONS: &str = "+fcall +function|load";

    /// Makes a node at this URL, with a limit of one second to connect.
    ///
    /// # Errors
    ///
    /// The URL is malformed; the error does not repeat it.
    ///
    /// # Examples
    ///
    /// ```
    /// use redlock_core::node::{Node, RedisNode};
    ///
    /// assert_eq!(&*RedisNode::at("redis://10.0.0.1")?.name(), "10.0.0.1:6379");
    /// assert!(RedisNode::at("10.0.0.1").is_err());
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// ```
    pub fn at(url: &str) -> Result<Self, BuildError> {
        match Self::new(
            &deadpool_redis::Config::from_url(url),
            Duration::from_secs(1),
        ) {
            Ok((node, _)) => Ok(node),
            Err(RedisNodeError(message)) => Err(BuildError::misuse("url", message)),
        }
    }

    /// Makes a node at this URL or configuration.
    pub(crate) fn new(
        config: &deadpool_redis::Config,
        connect_timeout: Duration,
    ) -> Result<(Self, Address), RedisNodeError> {
        let info = connection_info(config)?;
        let address = Address::of(&info);
        let probe = Probe::of(&info);
        let direct = Direct::new(&info, connect_timeout);
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
            // Its time limits need one, and the client's thread is of one.
            .runtime(deadpool_redis::Runtime::Tokio1)
            .build()
            .map_err(|error| RedisNodeError(error.to_string()))?;
        let node = Self {
            direct,
            probe,
            probe_after: connect_timeout / 2,
            ..Self::from_pool(address.to_string().into(), pool)
        };
        Ok((node, address))
    }

    /// Makes a node whose connections a ready pool makes; it cannot be asked for its address.
    pub(crate) fn from_pool(name: Arc<str>, pool: Pool) -> Self {
        Self {
            name,
            pool,
            direct: None,
            probe: None,
            probe_after: Duration::MAX,
            functions: true,
            encoder: Arc::default(),
            predecessor: Predecessor::default(),
        }
    }

    /// Returns the node of a client, which shares its encoder with the client's other nodes.
    pub(crate) fn encoding_by(self, encoder: &Arc<Encoder>) -> Arc<dyn Node> {
        let encoder = Arc::clone(encoder);
        Arc::new(Self { encoder, ..self })
    }

    /// Returns the same node, which the client calls by the script only: it loads no functions into the node.
    ///
    /// It is meant for tests, and for servers on which the client must leave only keys: servers keep functions with their
    /// data.
    /// A user without [`RIGHTS_FOR_FUNCTIONS`](Self::RIGHTS_FOR_FUNCTIONS) has the same effect.
    /// Clients with and without functions can use one namespace.
    #[must_use]
    pub fn without_functions(self) -> Self {
        Self {
            functions: false,
            ..self
        }
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
        let (pool, direct) = (self.pool.clone(), self.direct.clone());
        let (probe, probe_after) = (self.probe.clone(), self.probe_after);
        let forms = Forms::new(self.name(), self.functions);
        let encoder = Arc::clone(&self.encoder);
        let predecessor = self.predecessor.clone();
        async move {
            let opening = RedisSession::open(direct.as_ref(), &pool, forms, encoder, &predecessor);
            let mut opening = pin!(opening);
            let finding = async || match &probe {
                Some(probe) => probe.finding().await,
                None => None,
            };
            let opened = match timeout(probe_after, &mut opening).await {
                Ok(opened) => opened,
                Err(_) => match select(opening, pin!(finding())).await {
                    Either::Left((opened, _)) => opened,
                    Either::Right((Some(finding), _)) => return Err(finding),
                    Either::Right((None, opening)) => opening.await,
                },
            };
            match opened {
                Ok(session) => Ok(Box::new(session) as Box<dyn Session>),
                Err(NotOpened { reason, is_vague }) if is_vague => {
                    Err(finding().await.unwrap_or(reason))
                }
                Err(NotOpened { reason, .. }) => Err(reason),
            }
        }
        .boxed()
    }
}

/// Returns how to connect to the server that is configured.
pub(crate) fn connection_info(
    config: &deadpool_redis::Config,
) -> Result<ConnectionInfo, RedisNodeError> {
    let info = match (&config.url, &config.connection) {
        (Some(url), None) if is_cut_short(url) => {
            let why = "has a `#` or a `?` in its user or password: write %23 or %3F there";
            return Err(RedisNodeError(why.to_owned()));
        }
        (Some(url), None) => {
            if let Some(why) = address::refusal_of_url(url) {
                return Err(RedisNodeError(why.to_owned()));
            }
            url.as_str().into_connection_info()
        }
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
    let info = info.map_err(|_| {
        let url = config.url.as_deref().unwrap_or_default();
        RedisNodeError(refused_url(url, cfg!(feature = "tls-rustls")).to_owned())
    })?;
    Ok(with_user(info))
}

/// Returns how to connect as the user that is given, also to a server that wants no password of it: without one, redis-rs
/// would not tell the server of the user.
fn with_user(info: ConnectionInfo) -> ConnectionInfo {
    let settings = info.redis_settings();
    if settings.username().is_none() || settings.password().is_some() {
        return info;
    }
    let settings = settings.clone().set_password("");
    info.set_redis_settings(settings)
}

/// Returns whether a parser would take what is before a `#` or a `?` of the user or the password for the host, which is
/// shown.
fn is_cut_short(url: &str) -> bool {
    let is_path = url
        .split_once("://")
        .is_some_and(|(scheme, _)| scheme.to_ascii_lowercase().contains("unix"));
    let end = url.find(['#', '?']);
    !is_path && end.is_some_and(|end| url[end..].contains('@'))
}

/// Returns what is wrong with a URL that could not be read.
fn refused_url(url: &str, has_tls: bool) -> &'static str {
    let scheme = url.split_once("://").map(|(scheme, _)| scheme);
    let asks_for_tls = scheme
        .is_some_and(|s| s.eq_ignore_ascii_case("rediss") || s.eq_ignore_ascii_case("valkeys"));
    if asks_for_tls && !has_tls {
        "asks for TLS, which needs the feature `tls-rustls` of redlock-core"
    } else {
        "is not a URL like redis://[user:password@]host[:port][/db], rediss://… or unix:///path"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_that_asks_for_tls_names_the_feature_that_is_missing() {
        for url in [
            "rediss://me:hunter2@host",
            "REDISS://host:6379",
            "valkeys://host",
        ] {
            let refused = refused_url(url, false);
            assert!(refused.contains("`tls-rustls`"), "{url}: {refused}");
        }
        for (url, has_tls) in [
            ("rediss://ho st", true),
            ("redis:/host", false),
            ("", false),
        ] {
            let refused = refused_url(url, has_tls);
            assert!(refused.starts_with("is not a URL"), "{url}: {refused}");
        }
    }

    #[cfg(not(feature = "tls-rustls"))]
    #[test]
    fn without_the_feature_tls_is_refused_by_its_name() {
        let config = deadpool_redis::Config::from_url("rediss://me:hunter2@host:6380");
        let RedisNodeError(refused) = connection_info(&config).unwrap_err();
        assert!(refused.contains("`tls-rustls`"), "{refused}");
        assert!(!refused.contains("hunter2"), "{refused}");
    }
}
