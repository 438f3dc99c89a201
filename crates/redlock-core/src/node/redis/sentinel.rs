//! A node behind Sentinels: the master that they name.
//!
//! The Sentinels are asked before each connection, and once a second while it stands, all at once.
//! A server counts for as long as a majority of them names it.
//! One Sentinel is not enough: one that was cut off from the others names a master that goes on beside the promoted one,
//! and the node would have two votes.
//!
//! Source: <https://redis.io/docs/latest/develop/reference/sentinel-clients/>, which asks one Sentinel after the other.

use std::{
    collections::HashMap,
    fmt::{self, Write as _},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use deadpool_redis::{
    PoolConfig,
    redis::{
        AsyncConnectionConfig, Client, ConnectionAddr, ConnectionInfo, IntoConnectionInfo,
        RedisError, RedisResult, aio::MultiplexedConnection, cmd, parse_redis_url,
    },
};
use futures_util::{StreamExt, stream::FuturesUnordered};
use redlock_proto::{Instant, Quarantine};
use tokio::{
    task::AbortHandle,
    time::{sleep, timeout},
};

use super::{
    Address, RedisNodeError, address,
    error::{NONSENSE, is_unknown_command, reason},
    reach::Server,
    refused_url, with_user,
};
use crate::clock::Clock;

/// A master, as Sentinels know it.
#[derive(Clone)]
pub(crate) struct Sentinel {
    /// The Sentinels, in the order given.
    sentinels: Vec<ConnectionInfo>,
    master: String,
    /// How to connect to the master; its address is a Sentinel's.
    settings: ConnectionInfo,
}

impl Sentinel {
    /// Reads a URL of this kind; `None` if it is of another.
    ///
    /// The parts of the URL that it has in common with others are read as these are.
    pub(super) fn read(url: &str) -> Option<Result<Self, String>> {
        let (scheme, rest) = url.split_once("://")?;
        let scheme = scheme.to_ascii_lowercase();
        let scheme = scheme.strip_suffix("+sentinel")?;
        matches!(scheme, "redis" | "rediss" | "valkey" | "valkeys")
            .then(|| Self::read_parts(scheme, rest))
    }

    fn read_parts(scheme: &str, rest: &str) -> Result<Self, String> {
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = place.split_once('/').unwrap_or((place, ""));
        let (master, database) = path.split_once('/').unwrap_or((path, ""));
        let is_of_a_name = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        if master.is_empty() || !master.chars().all(is_of_a_name) {
            return Err(NO_MASTER.to_owned());
        }
        let (user, hosts) = match authority.rsplit_once('@') {
            Some((user, hosts)) => (format!("{user}@"), hosts),
            None => (String::new(), authority),
        };
        let hosts: Vec<&str> = hosts.split(',').map(str::trim).collect();
        let options = SentinelOptions::read(query)?;
        let with_tls = scheme.ends_with('s') && scheme != "redis";
        let settings = format!("{scheme}://{user}{}/{database}{}", hosts[0], options.others);
        let settings = info_of(&settings)?;
        let scheme = if options.tls.unwrap_or(with_tls) {
            "rediss"
        } else {
            "redis"
        };
        let sentinels = hosts.iter().map(|host| {
            let has_port = host.rsplit_once(':').is_some_and(|(_, port)| is_port(port));
            let port = if has_port { "" } else { ":26379" };
            let mut url = parse_redis_url(&format!("{scheme}://{host}{port}"))
                .filter(|url| url.host_str().is_some_and(|host| !host.is_empty()))
                .ok_or_else(|| NO_SENTINEL.to_owned())?;
            let user = options.user.as_deref().unwrap_or_default();
            let set = url.set_username(user).is_ok()
                && url.set_password(options.password.as_deref()).is_ok();
            debug_assert!(set, "a URL with a host has a user");
            info_of(url.as_str())
        });
        Ok(Self {
            sentinels: sentinels.collect::<Result<_, _>>()?,
            master: master.to_owned(),
            settings,
        })
    }

    /// Returns what two nodes must not have in common: they would be one master with two votes.
    pub(super) fn identity(&self) -> String {
        let addresses = self
            .sentinels
            .iter()
            .map(|info| Address::of(info).to_string());
        let first = addresses.min().unwrap_or_default();
        format!("{}@{first}", self.master)
    }

    /// Returns how to connect to the master, if it is there.
    fn at(&self, host: &str, port: u16) -> ConnectionInfo {
        let host = host.to_owned();
        let address = match self.settings.addr().clone() {
            ConnectionAddr::TcpTls {
                insecure,
                tls_params,
                ..
            } => ConnectionAddr::TcpTls {
                host,
                port,
                insecure,
                tls_params,
            },
            _ => ConnectionAddr::Tcp(host, port),
        };
        self.settings.clone().set_addr(address)
    }

    /// Asks the Sentinels where the master is, within half of the limit.
    pub(crate) async fn master(&self, limit: Duration) -> Result<ConnectionInfo, Arc<str>> {
        let named = Inquiry::of(self.clone()).named(limit / 2).await?;
        Ok(self.at(&named.host, named.port))
    }
}

/// Connections to the Sentinels of a master, to ask them where it is.
struct Inquiry {
    sentinel: Sentinel,
    /// One for each Sentinel, once it was asked.
    connections: Vec<Option<MultiplexedConnection>>,
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
        let mut votes: Vec<(Named, usize)> = Vec::new();
        let (mut known, mut failed) = (sentinel.sentinels.len(), Vec::new());
        while let Some(answer) = asked.next().await {
            let named = match answer {
                Ok(named) => named,
                Err(why) => {
                    failed.push(why);
                    continue;
                }
            };
            known = known.max(named.sentinels);
            match votes.iter_mut().find(|(other, _)| other.is_at(&named)) {
                Some((_, count)) => *count += 1,
                None => votes.push((named, 1)),
            }
            if let Some(place) = votes.iter().position(|(_, count)| *count > known / 2) {
                return Ok(votes.swap_remove(place).0);
            }
        }
        let (given, needed) = (sentinel.sentinels.len(), known / 2 + 1);
        let mut why =
            format!("fewer than {needed} of {known} Sentinels name one server as {master}");
        if given < needed {
            let _ = write!(why, "; the URL must name {needed} of them at least");
        }
        for failed in failed {
            let _ = write!(why, ", {failed}");
        }
        Err(why.into())
    }
}

/// Asks one Sentinel.
async fn ask(
    info: &ConnectionInfo,
    connection: &mut Option<MultiplexedConnection>,
    master: &str,
    limit: Duration,
) -> Result<Named, Arc<str>> {
    let failed = |error: RedisError| match error.detail() {
        Some(words) if words.contains("No such master") => "it knows no such master".into(),
        _ if is_unknown_command(&error) => "it is no Sentinel".into(),
        _ => reason(&error),
    };
    let connection = match connection {
        Some(connection) => connection,
        None => {
            let settings = AsyncConnectionConfig::new()
                .set_connection_timeout(Some(limit))
                .set_response_timeout(Some(limit));
            let client = Client::open(info.clone()).map_err(failed)?;
            let made = client.get_multiplexed_async_connection_with_config(&settings);
            connection.insert(made.await.map_err(failed)?)
        }
    };
    let mut question = cmd("SENTINEL");
    question.arg("MASTER").arg(master);
    let answer: RedisResult<HashMap<String, String>> = question.query_async(connection).await;
    Named::read(&answer.map_err(failed)?).ok_or_else(|| NONSENSE.into())
}

impl fmt::Display for Sentinel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let first = self.sentinels.first().map(Address::of);
        write!(f, "{}", self.master)?;
        first.map_or(Ok(()), |first| write!(f, "@{first}"))
    }
}

/// The Sentinels of a node, and how long they have.
pub(super) struct Sentinels {
    sentinel: Sentinel,
    connect_timeout: Duration,
}

impl Sentinels {
    pub(super) const fn new(sentinel: Sentinel, connect_timeout: Duration) -> Self {
        Self {
            sentinel,
            connect_timeout,
        }
    }

    /// Returns the server that they name, its address, and what shows from now on whether they still name it.
    pub(super) async fn master(&self) -> Result<(Server, Address, Confirmation), Arc<str>> {
        let mut inquiry = Inquiry::of(self.sentinel.clone());
        let limit = self.connect_timeout / 2;
        let asked_at = CLOCK.now();
        let named = inquiry.named(limit).await?;
        let info = self.sentinel.at(&named.host, named.port);
        let address = Address::of(&info);
        let server = Server::at(info, PoolConfig::default(), self.connect_timeout);
        let server = server.map_err(|RedisNodeError(why)| why)?;
        let confirmation = Confirmation::start(inquiry, named, asked_at, limit);
        Ok((server, address, confirmation))
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

/// The parameters of a URL that are about the Sentinels, and the others as they were.
#[derive(Default)]
struct SentinelOptions {
    user: Option<String>,
    password: Option<String>,
    tls: Option<bool>,
    others: String,
}

impl SentinelOptions {
    fn read(query: &str) -> Result<Self, String> {
        let url = parse_redis_url(&format!("redis://host?{query}"));
        let mut options = Self::default();
        let mut others = Vec::new();
        for (name, value) in url.iter().flat_map(|url| url.query_pairs()) {
            let is_new = match &*name {
                "sentinel_user" => options.user.replace(value.into_owned()).is_none(),
                "sentinel_password" => options.password.replace(value.into_owned()).is_none(),
                "sentinel_tls" => {
                    let tls = match &*value {
                        "yes" => true,
                        "no" => false,
                        _ => return Err(SENTINEL_TLS.to_owned()),
                    };
                    options.tls.replace(tls).is_none()
                }
                _ => {
                    others.push(format!("{name}={value}"));
                    true
                }
            };
            if !is_new {
                return Err("has a parameter twice".to_owned());
            }
        }
        if !others.is_empty() {
            options.others = format!("?{}", others.join("&"));
        }
        Ok(options)
    }
}

fn info_of(url: &str) -> Result<ConnectionInfo, String> {
    if let Some(why) = address::refusal_of_url(url) {
        return Err(why.to_owned());
    }
    // The parser's own message may quote the URL, and with it the password.
    let info = url.into_connection_info();
    let info = info.map_err(|_| refused_url(url, cfg!(feature = "tls-rustls")).to_owned())?;
    Ok(with_user(info))
}

fn is_port(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

const NO_MASTER: &str = "names no master: write redis+sentinel://host:26379,host:26379/master, with the name by which the Sentinels know it";
const NO_SENTINEL: &str =
    "has an address of a Sentinel that cannot be read: write host:26379, with commas between them";
const SENTINEL_TLS: &str = "has a sentinel_tls that is neither yes nor no";

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

    fn read(url: &str) -> Result<Sentinel, String> {
        Sentinel::read(url).unwrap_or_else(|| panic!("{url} is of another kind"))
    }

    fn addresses(sentinel: &Sentinel) -> Vec<String> {
        let addresses = sentinel.sentinels.iter().map(Address::of);
        addresses.map(|address| address.to_string()).collect()
    }

    #[test]
    fn a_url_names_sentinels_and_their_master() {
        let sentinel = read("redis+sentinel://app:p%40w@s1,s2:7000,[::1]/orders.v2/3").unwrap();
        assert_eq!(addresses(&sentinel), ["s1:26379", "s2:7000", "[::1]:26379"]);
        assert_eq!(sentinel.to_string(), "orders.v2@s1:26379");
        let master = sentinel.at("10.0.0.9", 6379);
        assert_eq!(Address::of(&master).to_string(), "10.0.0.9:6379");
        let settings = master.redis_settings();
        assert_eq!(settings.db(), 3);
        assert_eq!(
            (settings.username(), settings.password()),
            (Some("app"), Some("p@w"))
        );
        let greeting = sentinel.sentinels[0].redis_settings();
        assert_eq!((greeting.username(), greeting.password()), (None, None));
    }

    #[test]
    fn sentinels_have_a_user_a_password_and_tls_of_their_own() {
        let url = "redis+sentinel://:secret@s1/m?sentinel_user=watch&sentinel_password=a%40b%2Fc&protocol=resp2";
        let sentinel = read(url).unwrap();
        let greeting = sentinel.sentinels[0].redis_settings();
        assert_eq!(
            (greeting.username(), greeting.password()),
            (Some("watch"), Some("a@b/c"))
        );
        assert_eq!(
            sentinel.at("h", 1).redis_settings().password(),
            Some("secret")
        );
    }

    #[cfg(feature = "tls-rustls")]
    #[test]
    fn tls_is_for_both_unless_it_is_said() {
        let is_tls = |info: &ConnectionInfo| matches!(info.addr(), ConnectionAddr::TcpTls { .. });
        for (url, tls) in [
            ("rediss+sentinel://s1/m", [true, true]),
            ("valkeys+sentinel://s1/m?sentinel_tls=no", [true, false]),
            ("redis+sentinel://s1/m?sentinel_tls=yes", [false, true]),
            ("redis+sentinel://s1/m", [false, false]),
        ] {
            let sentinel = read(url).unwrap();
            let found = [&sentinel.at("h", 1), &sentinel.sentinels[0]].map(is_tls);
            assert_eq!(found, tls, "{url}");
        }
    }

    #[test]
    fn what_cannot_be_meant_is_refused_with_the_form_for_it() {
        for (url, form) in [
            ("redis+sentinel://s1:26379", "/master"),
            ("redis+sentinel://s1:26379/", "/master"),
            ("redis+sentinel://s1,s2/my%20master", "/master"),
            ("redis+sentinel:///mymaster", "host:26379"),
            ("redis+sentinel://s1,,s2/mymaster", "host:26379"),
            ("redis+sentinel://s1/mymaster/two", "redis://host/2"),
            ("redis+sentinel://s1/m?sentinel_tls=maybe", "sentinel_tls"),
            ("redis+sentinel://s1/m?timeout=5s", "connect_timeout"),
            (
                "redis+sentinel://s1/m?sentinel_user=a&sentinel_user=b",
                "twice",
            ),
            (
                "redis+sentinel://:hunter2@s1/m?password=hunter2",
                "redis://user:password@host",
            ),
        ] {
            let refused = read(url).err().unwrap_or_else(|| panic!("{url} is taken"));
            assert!(refused.contains(form), "{url}: {refused}");
            assert!(!refused.contains("hunter2"), "{url}: {refused}");
        }
        for url in ["redis://s1/1", "http+sentinel://s1/m", "s1/m"] {
            assert!(Sentinel::read(url).is_none(), "{url}");
        }
    }

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
