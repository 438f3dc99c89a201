//! Nodes that are Redis or Valkey masters.

use std::{fmt, sync::Arc, time::Duration};

#[cfg(feature = "deadpool-redis")]
use deadpool_redis::Pool;
use futures_util::{FutureExt, future::BoxFuture};
use redlock_proto::Keyspace;

use crate::{
    CredentialsProvider, Encoder, Location, Node, Polls, RedisNodeError, Session,
    connect::{Guarded, NamedPlace, Place, Server, SessionParts},
    discover::{Address, slot_of},
    speak::{form::Forms, predecessor::Predecessor, replicas::WaitForReplicas, rights},
};

/// A Redis or Valkey master, reached over one connection.
///
/// The builder makes one of a URL; it is public so that a node of your own can wrap it.
///
/// # Examples
///
/// ```
/// use redlock_redis::{Node, RedisNode};
///
/// // With `redlock-core`: NodeConfig::other(node)
/// let node = RedisNode::at("redis://10.0.0.1")?;
/// assert_eq!(&*node.name(), "10.0.0.1:6379");
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
pub struct RedisNode {
    name: Arc<str>,
    place: Place,
    encoder: Arc<Encoder>,
    predecessor: Predecessor,
    replicas: Option<WaitForReplicas>,
}

impl RedisNode {
    /// The rights that a node's user needs, in the syntax of `ACL SETUSER`, beside the keys of the namespace, such as
    /// `~{redlock}:*`.
    ///
    /// The client uses three more if the user has them.
    /// With `+script|load`, a server of Redis 7.4 or later does not drop the script to make room for other scripts.
    /// With `+config|get`, and under
    /// `dangerous_trust_persistence`, a node whose `appendfsync`
    /// is not `always` does not vote.
    /// With `+getrange`, and under `verbatim_keys`, a node reads only the first
    /// 8 kB of another program's value, however long it is.
    pub const RIGHTS: &str = rights::OF_NODES;

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
    pub const RIGHTS_FOR_CLUSTERS: &str = rights::FOR_CLUSTERS;

    /// The rights that the user of the Sentinels needs there, where the URL names a master by its Sentinels.
    ///
    /// It needs no keys and no channels.
    /// Without the last of these rights, Sentinels that are gone and not forgotten count as if they ran.
    /// With `+sentinel|masters`, an error about an unknown master names those that the Sentinel knows.
    pub const RIGHTS_FOR_SENTINELS: &str = rights::FOR_SENTINELS;

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
    /// use redlock_redis::{Node, RedisNode};
    ///
    /// assert_eq!(&*RedisNode::at("redis://10.0.0.1")?.name(), "10.0.0.1:6379");
    /// assert!(RedisNode::at("10.0.0.1").is_err());
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// ```
    pub fn at(url: &str) -> Result<Self, RedisNodeError> {
        let config = deadpool_redis::Config::from_url(url);
        let second = Duration::from_secs(1);
        let made = Self::new((&config, None), None, &mut Polls::default(), second);
        made.map(|(node, _)| node)
    }

    /// Makes a node at this URL or configuration; returns it with what no other node of the client may have.
    ///
    /// A Cluster has all keys of a namespace on one server, and has none for a client without one.
    /// The nodes of a client have their `polls` in common.
    #[doc(hidden)]
    pub fn new(
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
            Location::Named(url) => {
                let Some((namespace, keyspace)) = space else {
                    return Err(RedisNodeError::new(NO_NAMESPACE));
                };
                let tag = match namespace {
                    Some(namespace) => url.tag(namespace),
                    None if url.is_cluster() => Err(NO_NAMESPACE.to_owned()),
                    None => Ok(None),
                };
                let tag = tag.map_err(RedisNodeError::new)?;
                let mut keyspace = keyspace.clone();
                if let (Some(tag), Some(_)) = (&tag, url.vote()) {
                    encoder = Encoder::under(tag, &keyspace);
                    keyspace = keyspace.under(tag);
                }
                let (name, identity) = (url.to_string(), url.identity());
                let named = NamedPlace {
                    informants: polls.of(*url, credentials, connect_timeout),
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
    #[doc(hidden)]
    pub fn from_pool(name: Arc<str>, pool: Pool) -> Self {
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
    #[doc(hidden)]
    pub fn waiting_for(self, replicas: u8, node_timeout: Duration) -> Self {
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
    #[doc(hidden)]
    pub fn encoding_by(self, encoder: &Arc<Encoder>) -> Arc<dyn Node> {
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

const NO_NAMESPACE: &str = "is of a server that others name, whose mark depends on the namespace: give it to the builder, and for a Cluster leave verbatim_keys out";
