//! Nodes that are Redis or Valkey masters.

mod address;
#[cfg(test)]
mod any_input;
mod args;
mod error;
mod error_texts;
mod form;
mod messages;
mod naming;
mod predecessor;
mod probe;
mod reach;
mod replicas;
mod script;
mod session;
mod transport;
mod wire;

use std::{fmt, sync::Arc, time::Duration};

#[cfg(feature = "deadpool-redis")]
use deadpool_redis::Pool;
use deadpool_redis::redis::{ConnectionInfo, IntoConnectionInfo};
use futures_util::{FutureExt, future::BoxFuture};
use redlock_proto::{Keyspace, slot_of};

#[cfg(feature = "deadpool-redis")]
use self::naming::Informants;
#[cfg(feature = "deadpool-redis")]
pub use self::naming::{InformantAnswer, InformantReport, NamingReport};
use self::{
    address::Address,
    form::Forms,
    predecessor::Predecessor,
    reach::{Guarded, NamedPlace, Place, Server},
    replicas::WaitForReplicas,
    session::SessionParts,
};
pub(crate) use self::{
    naming::{Directory, Polls},
    wire::Encoder,
};
use super::{Node, Session};
use crate::{BuildError, credentials::CredentialsProvider};

/// A Redis or Valkey master, reached over one connection.
///
/// The builder makes one of a URL; it is public so that a node of your own can wrap it.
///
/// # Examples
///
/// ```
/// use redlock_core::{NodeConfig, Redlock, node::RedisNode};
///
/// let node = RedisNode::at("redis://10.0.0.1")?;
/// let builder = Redlock::builder().node(NodeConfig::other(node));
/// # drop(builder);
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
pub struct RedisNode {
    name: Arc<str>,
    place: Place,
    encoder: Arc<Encoder>,
    predecessor: Predecessor,
    replicas: Option<WaitForReplicas>,
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

    /// The rights that a node's user needs beside [`RIGHTS`](Self::RIGHTS) so that callers of different processes wait in
    /// line, beside the channels of the namespace, such as `&{redlock}:wake:*`.
    ///
    /// With these, the client hears in a second connection that a node has given a key to one of its callers.
    /// The client that releases the key publishes that, so the users of all clients need both rights.
    /// Without one of them, or where the server has renamed one of the commands, the client's callers ask again after random pauses for a quarter of a second, and then learn of their
    /// turn only when they ask.
    pub const RIGHTS_FOR_LINES: &str = "+publish +subscribe";

    /// The rights that a node's user needs beside [`RIGHTS`](Self::RIGHTS) on all nodes of a Cluster, where the URL names
    /// one.
    pub const RIGHTS_FOR_CLUSTERS: &str = "+cluster|nodes";

    /// The rights that the user of the Sentinels needs there, where the URL names a master by its Sentinels.
    ///
    /// It needs no keys and no channels.
    /// Without the last of these rights, Sentinels that are gone and not forgotten count as if they ran.
    /// With `+sentinel|masters`, an error about an unknown master names those that the Sentinel knows.
    pub const RIGHTS_FOR_SENTINELS: &str = "+sentinel|myid +sentinel|master +sentinel|sentinels";

    /// Makes a node at this URL, with a limit of one second to connect.
    ///
    /// # Errors
    ///
    /// The URL is malformed, or names Sentinels or a Cluster, whose mark depends on the namespace; the error does not
    /// repeat it.
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
        let config = deadpool_redis::Config::from_url(url);
        let second = Duration::from_secs(1);
        match Self::new((&config, None), None, &mut Polls::default(), second) {
            Ok((node, _)) => Ok(node),
            Err(RedisNodeError(message)) => Err(BuildError::misuse("url", message)),
        }
    }

    /// Makes a node at this URL or configuration; returns it with what no other node of the client may have.
    ///
    /// A Cluster has all keys of a namespace on one server, and has none for a client without one.
    /// The nodes of a client have their `polls` in common.
    pub(crate) fn new(
        (config, credentials): (&deadpool_redis::Config, Option<&CredentialsProvider>),
        space: Option<(Option<&str>, &Keyspace)>,
        polls: &mut Polls,
        connect_timeout: Duration,
    ) -> Result<(Self, String), RedisNodeError> {
        let mut encoder = Encoder::default();
        let location = Location::of(config, credentials)?;
        let credentials = credentials.cloned();
        let (name, identity, place) = match location {
            Location::Address(info) => {
                let address = Address::of(&info).to_string();
                let pool = config.get_pool_config();
                let place = match credentials {
                    Some(credentials) => Place::Guarded(Arc::new(Guarded {
                        info: *info,
                        credentials,
                        connect_timeout,
                    })),
                    None => Place::Fixed(Box::new(Server::at(*info, pool, connect_timeout)?)),
                };
                (address.clone(), address, place)
            }
            Location::Directory(directory) => {
                let Some((namespace, keyspace)) = space else {
                    return Err(RedisNodeError(NO_NAMESPACE.to_owned()));
                };
                let tag = match namespace {
                    Some(namespace) => directory.tag(namespace),
                    None if directory.is_cluster() => Err(NO_NAMESPACE.to_owned()),
                    None => Ok(None),
                };
                let tag = tag.map_err(RedisNodeError)?;
                let mut keyspace = keyspace.clone();
                if let (Some(tag), Some(_)) = (&tag, directory.vote()) {
                    encoder = Encoder::under(tag, &keyspace);
                    keyspace = keyspace.under(tag);
                }
                let (name, identity) = (directory.to_string(), directory.identity());
                let named = NamedPlace {
                    informants: polls.of(*directory, credentials, connect_timeout),
                    slot: tag.as_deref().map(slot_of).unwrap_or_default(),
                    keyspace: Arc::new(keyspace),
                    last_roll: Arc::default(),
                };
                (name, identity, Place::Named(Arc::new(named)))
            }
        };
        let node = Self::of(name.into(), place, encoder);
        Ok((node, identity))
    }

    /// Makes a node whose connections a ready pool makes; it cannot be asked for its address.
    #[cfg(feature = "deadpool-redis")]
    pub(crate) fn from_pool(name: Arc<str>, pool: Pool) -> Self {
        let place = Place::Fixed(Box::new(Server::of_pool(pool)));
        Self::of(name, place, Encoder::default())
    }

    fn of(name: Arc<str>, place: Place, encoder: Encoder) -> Self {
        Self {
            name,
            place,
            encoder: Arc::new(encoder),
            predecessor: Predecessor::default(),
            replicas: None,
        }
    }

    /// Returns the same node, whose grants count only once this many replicas have them, within a part of the limit of a
    /// call.
    pub(crate) fn waiting_for(self, replicas: u8, node_timeout: Duration) -> Self {
        let wanted = WaitForReplicas {
            count: replicas,
            // The caller hears of it before the call is given up.
            limit: node_timeout / 2,
        };
        Self {
            replicas: (replicas > 0).then_some(wanted),
            ..self
        }
    }

    /// Returns the node of a client, which shares its encoder with the client's other nodes if their keys are the same.
    pub(crate) fn encoding_by(self, encoder: &Arc<Encoder>) -> Arc<dyn Node> {
        let encoder = if self.encoder.is_for_all() {
            encoder
        } else {
            &self.encoder
        };
        let encoder = Arc::clone(encoder);
        Arc::new(Self { encoder, ..self })
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
        let place = self.place.clone();
        let parts = SessionParts {
            forms: Forms::default(),
            encoder: Arc::clone(&self.encoder),
            predecessor: self.predecessor.clone(),
            replicas: self.replicas.clone(),
        };
        async move {
            let session = place.open(parts).await?;
            Ok(Box::new(session) as Box<dyn Session>)
        }
        .boxed()
    }
}

/// What a configuration says of where a node is.
#[derive(Clone)]
pub(crate) enum Location {
    Address(Box<ConnectionInfo>),
    Directory(Box<Directory>),
}

impl Location {
    /// Reads it from a configuration, which has no credentials if a provider gives them.
    pub(crate) fn of(
        config: &deadpool_redis::Config,
        credentials: Option<&CredentialsProvider>,
    ) -> Result<Self, RedisNodeError> {
        let url = config.url.as_deref().filter(|url| !is_cut_short(url));
        let url = url.filter(|_| config.connection.is_none());
        let location = match url.and_then(Directory::read) {
            Some(directory) => Self::Directory(Box::new(directory.map_err(RedisNodeError)?)),
            None => Self::Address(Box::new(connection_info(config)?)),
        };
        let settings = match &location {
            Self::Address(info) => info.redis_settings(),
            Self::Directory(directory) => directory.settings.redis_settings(),
        };
        let has_its_own = settings.username().is_some() || settings.password().is_some();
        if has_its_own && credentials.is_some() {
            let why =
                "has a user or a password in its URL, and a provider of credentials; give one";
            return Err(RedisNodeError(why.to_owned()));
        }
        Ok(location)
    }

    /// Returns how to connect to the server that is there now, for a client of this namespace.
    #[cfg(feature = "deadpool-redis")]
    pub(crate) async fn locate(
        self,
        credentials: Option<&CredentialsProvider>,
        namespace: &str,
        limit: Duration,
    ) -> Result<ConnectionInfo, Arc<str>> {
        let info = match self {
            Self::Address(info) => *info,
            Self::Directory(directory) => {
                let slot = directory.tag(namespace)?.as_deref().map(slot_of);
                let informants = naming::Informants::new(*directory, credentials.cloned(), limit);
                informants.located(slot.unwrap_or_default()).await?
            }
        };
        CredentialsProvider::completed(credentials, info).await
    }
}

#[cfg(feature = "deadpool-redis")]
impl Location {
    /// Returns what each of those says that name the server; `None` if none does.
    pub(crate) async fn naming(
        self,
        credentials: Option<&CredentialsProvider>,
        namespace: &str,
        limit: Duration,
    ) -> Result<Option<NamingReport>, Arc<str>> {
        let Self::Directory(directory) = self else {
            return Ok(None);
        };
        let slot = directory.tag(namespace)?.as_deref().map(slot_of);
        let informants = Informants::new(*directory, credentials.cloned(), limit);
        informants.report(slot.unwrap_or_default()).await.map(Some)
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(info) => write!(f, "{}", Address::of(info)),
            Self::Directory(directory) => write!(f, "{directory}"),
        }
    }
}

/// Returns how to connect to the server that is configured.
fn connection_info(config: &deadpool_redis::Config) -> Result<ConnectionInfo, RedisNodeError> {
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
        "is not a URL like redis://[user:password@]host[:port][/db], rediss://…, unix:///path, redis+sentinel://host,host/master or redis+cluster://host,host"
    }
}

const NO_NAMESPACE: &str = "is of a server that others name, whose mark depends on the namespace: give it to the builder, and for a Cluster leave verbatim_keys out";

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
