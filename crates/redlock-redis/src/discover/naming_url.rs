//! The URL of a server that others name: the Sentinels of a master, or the nodes of a Cluster.

use std::fmt;

use deadpool_redis::redis::{ConnectionAddr, ConnectionInfo, IntoConnectionInfo, parse_redis_url};

use super::{
    address::{self, Address, refused_url, with_user},
    cluster_vote::ClusterVote,
};

/// The URL of a node whose server others name.
#[derive(Clone)]
pub struct NamingUrl {
    /// Those of the URL, in its order.
    pub(crate) informants: Vec<ConnectionInfo>,
    pub(crate) subject: Subject,
    /// How to connect to the server that they name; its address is an informant's.
    pub(crate) settings: ConnectionInfo,
}

/// The server that they are asked for.
#[derive(Clone)]
pub(crate) enum Subject {
    /// The master that Sentinels call by this name.
    Master(String),
    /// The owner of the slot in which a Cluster has the keys of the namespace.
    SlotOwner(ClusterVotes),
}

/// The votes of a Cluster, as its URL says.
#[derive(Clone, Copy)]
pub(crate) enum ClusterVotes {
    /// It is one node.
    One,
    /// It has this number of votes, and the URL means all of them.
    All(u8),
    /// It is one of several nodes of the Cluster.
    This(ClusterVote),
}

impl Subject {
    /// Returns which servers are asked for it.
    pub(crate) const fn informants(&self) -> &'static str {
        match self {
            Self::Master(_) => "its Sentinels",
            Self::SlotOwner(_) => "the nodes of its Cluster",
        }
    }
}

impl NamingUrl {
    /// Reads a URL of this kind; `None` if it is of another.
    ///
    /// The parts of the URL that it has in common with others are read as these are.
    pub(crate) fn read(url: &str) -> Option<Result<Self, String>> {
        let (scheme, rest) = url.split_once("://")?;
        let scheme = scheme.to_ascii_lowercase();
        let (scheme, kind) = scheme.split_once('+')?;
        let read = match kind {
            "sentinel" => Self::read_sentinels,
            "cluster" => Self::read_cluster,
            _ => return None,
        };
        matches!(scheme, "redis" | "rediss" | "valkey" | "valkeys").then(|| read(scheme, rest))
    }

    /// Returns whether a URL is one of this kind that may go on with further hosts after a comma.
    pub fn has_open_list(url: &str) -> bool {
        let parts = url.split_once("://");
        parts.is_some_and(|(scheme, rest)| {
            let scheme = scheme.to_ascii_lowercase();
            let is_list = scheme.ends_with("+sentinel") || scheme.ends_with("+cluster");
            is_list && !rest.contains(['/', '?'])
        })
    }

    fn read_sentinels(scheme: &str, rest: &str) -> Result<Self, String> {
        let parts = Parts::of(rest);
        let (master, database) = parts.path.split_once('/').unwrap_or((parts.path, ""));
        let is_of_a_name = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        if master.is_empty() || !master.chars().all(is_of_a_name) {
            return Err(NO_MASTER.to_owned());
        }
        let options = SentinelOptions::read(parts.query)?;
        let settings = parts.url(scheme, parts.hosts()?[0], database, &options.others);
        let with_tls = scheme.ends_with('s') && scheme != "redis";
        let scheme = if options.tls.unwrap_or(with_tls) {
            "rediss"
        } else {
            "redis"
        };
        let sentinels = parts.hosts()?.into_iter().map(|host| {
            let mut url = parse_redis_url(&format!("{scheme}://{}", with_port(host, 26379)))
                .filter(|url| url.host_str().is_some_and(|host| !host.is_empty()))
                .ok_or_else(|| NO_HOST.to_owned())?;
            let user = options.user.as_deref().unwrap_or_default();
            let set = url.set_username(user).is_ok()
                && url.set_password(options.password.as_deref()).is_ok();
            debug_assert!(set, "a URL with a host has a user");
            info_of(url.as_str())
        });
        Ok(Self {
            informants: sentinels.collect::<Result<_, _>>()?,
            subject: Subject::Master(master.to_owned()),
            settings: info_of(&settings)?,
        })
    }

    fn read_cluster(scheme: &str, rest: &str) -> Result<Self, String> {
        let parts = Parts::of(rest);
        if !matches!(parts.path, "" | "0") {
            return Err(DATABASE.to_owned());
        }
        let (votes, others) = votes_of(parts.query)?;
        let nodes = parts.hosts()?.into_iter().map(|host| {
            let url = parts.url(scheme, &with_port(host, 6379), "", &others);
            info_of(&url)
        });
        let nodes = nodes.collect::<Result<Vec<_>, _>>()?;
        Ok(Self {
            settings: nodes[0].clone(),
            informants: nodes,
            subject: Subject::SlotOwner(votes),
        })
    }

    /// Returns what two nodes must not have in common: they would be one server with two votes.
    pub(crate) fn identity(&self) -> String {
        let addresses = self
            .informants
            .iter()
            .map(|info| Address::of(info).to_string());
        self.name_at(&addresses.min().unwrap_or_default())
    }

    /// Returns how to connect to the server that they name, or to another node of their Cluster.
    pub(crate) fn at(&self, host: &str, port: u16) -> ConnectionInfo {
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

    /// Returns the hash tag of the keys of a namespace; `None` if no Cluster distributes them.
    ///
    /// # Errors
    ///
    /// The URL means several nodes.
    pub(crate) fn tag(&self, namespace: &str) -> Result<Option<String>, String> {
        match self.subject {
            Subject::Master(_) => Ok(None),
            Subject::SlotOwner(ClusterVotes::One) => Ok(Some(namespace.to_owned())),
            Subject::SlotOwner(ClusterVotes::This(vote)) => Ok(Some(vote.tag(namespace))),
            Subject::SlotOwner(ClusterVotes::All(_)) => Err(SEVERAL.to_owned()),
        }
    }

    /// Returns the vote that it is of its Cluster, if that has several.
    pub const fn vote(&self) -> Option<ClusterVote> {
        match self.subject {
            Subject::SlotOwner(ClusterVotes::This(vote)) => Some(vote),
            _ => None,
        }
    }

    /// Returns the URL of each node that this URL means, if it means several.
    pub fn urls_of_votes(url: &str) -> Option<Vec<String>> {
        let Subject::SlotOwner(ClusterVotes::All(of)) = Self::read(url)?.ok()?.subject else {
            return None;
        };
        let (start, query) = url.split_once('?')?;
        let url_of = |vote: ClusterVote| {
            let its = format!("vote={vote}");
            let options = query.split('&');
            let options = options.map(|option| match option.starts_with("votes=") {
                true => &*its,
                false => option,
            });
            format!("{start}?{}", options.collect::<Vec<_>>().join("&"))
        };
        Some(ClusterVote::all(of)?.map(url_of).collect())
    }

    /// Returns whether two URLs are of one Cluster, as which user the same, whose nodes can be asked for both.
    pub(super) fn has_same_members(&self, other: &Self) -> bool {
        let users = |url: &Self| {
            let settings = url.settings.redis_settings();
            let (user, password) = (settings.username(), settings.password());
            (user.map(str::to_owned), password.map(str::to_owned))
        };
        let addresses =
            |url: &Self| -> Vec<Address> { url.informants.iter().map(Address::of).collect() };
        self.is_cluster()
            && other.is_cluster()
            && self.has_tls() == other.has_tls()
            && users(self) == users(other)
            && addresses(self) == addresses(other)
    }

    pub(crate) const fn is_cluster(&self) -> bool {
        matches!(self.subject, Subject::SlotOwner(_))
    }

    pub(crate) fn has_tls(&self) -> bool {
        matches!(self.settings.addr(), ConnectionAddr::TcpTls { .. })
    }

    /// Returns whether the URL has a user or a password of the Sentinels.
    pub(super) fn has_sentinel_password(&self) -> bool {
        let mut settings = self.informants.iter().map(ConnectionInfo::redis_settings);
        settings.any(|settings| settings.password().is_some() || settings.username().is_some())
    }

    fn name_at(&self, address: &str) -> String {
        match &self.subject {
            Subject::Master(name) => format!("{name}@{address}"),
            Subject::SlotOwner(ClusterVotes::This(vote)) => format!("{vote}@{address}"),
            Subject::SlotOwner(_) => format!("cluster@{address}"),
        }
    }
}

impl fmt::Display for NamingUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let first = self.informants.first().map(Address::of);
        let first = first.map_or_else(String::new, |first| first.to_string());
        f.write_str(&self.name_at(&first))
    }
}

impl fmt::Debug for NamingUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // It has passwords.
        write!(f, "NamingUrl({self})")
    }
}

/// The parts of a URL behind its scheme.
struct Parts<'a> {
    /// With the `@`, if there is one.
    user: &'a str,
    hosts: &'a str,
    path: &'a str,
    query: &'a str,
}

impl<'a> Parts<'a> {
    fn of(rest: &'a str) -> Self {
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = place.split_once('/').unwrap_or((place, ""));
        let (user, hosts) = authority.split_at(authority.rfind('@').map_or(0, |at| at + 1));
        Self {
            user,
            hosts,
            path,
            query,
        }
    }

    /// Returns the hosts, of which there is one at least.
    fn hosts(&self) -> Result<Vec<&'a str>, String> {
        let hosts: Vec<_> = self.hosts.split(',').map(str::trim).collect();
        if hosts.iter().any(|host| host.is_empty()) {
            return Err(NO_HOST.to_owned());
        }
        Ok(hosts)
    }

    /// Returns the URL of one server with these settings.
    fn url(&self, scheme: &str, host: &str, database: &str, query: &str) -> String {
        format!("{scheme}://{}{host}/{database}{query}", self.user)
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
        let mut options = Self::default();
        options.others = others_of(query, |name, value| {
            Ok(Some(match name {
                "sentinel_user" => options.user.replace(value.to_owned()).is_none(),
                "sentinel_password" => options.password.replace(value.to_owned()).is_none(),
                "sentinel_tls" => {
                    let tls = match value {
                        "yes" => true,
                        "no" => false,
                        _ => return Err(SENTINEL_TLS.to_owned()),
                    };
                    options.tls.replace(tls).is_none()
                }
                _ => return Ok(None),
            }))
        })?;
        Ok(options)
    }
}

/// Reads the votes of a Cluster from the parameters of its URL, and returns the other parameters as they were.
fn votes_of(query: &str) -> Result<(ClusterVotes, String), String> {
    let mut votes = ClusterVotes::One;
    let others = others_of(query, |name, value| {
        let read = match name {
            "votes" => {
                let of = value
                    .parse()
                    .ok()
                    .filter(|of| ClusterVote::all(*of).is_some());
                of.map(ClusterVotes::All)
            }
            "vote" => ClusterVote::read(value).map(ClusterVotes::This),
            _ => return Ok(None),
        };
        let is_new = matches!(votes, ClusterVotes::One);
        votes = read.ok_or_else(|| VOTES.to_owned())?;
        Ok(Some(is_new))
    })?;
    Ok((votes, others))
}

/// Reads the parameters of a URL by `read`, which returns whether one is new, or `None` if it is another's; returns the
/// others as they were.
fn others_of(
    query: &str,
    mut read: impl FnMut(&str, &str) -> Result<Option<bool>, String>,
) -> Result<String, String> {
    let url = parse_redis_url(&format!("redis://host?{query}"));
    let mut others = Vec::new();
    for (name, value) in url.iter().flat_map(|url| url.query_pairs()) {
        match read(&name, &value)? {
            Some(true) => {}
            Some(false) => return Err("has a parameter twice".to_owned()),
            None => others.push(format!("{name}={value}")),
        }
    }
    Ok(match &*others {
        [] => String::new(),
        others => format!("?{}", others.join("&")),
    })
}

/// Returns a host with its port.
fn with_port(host: &str, default: u16) -> String {
    let has_port = host.rsplit_once(':').is_some_and(|(_, port)| is_port(port));
    if has_port {
        host.to_owned()
    } else {
        format!("{host}:{default}")
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
const NO_HOST: &str = "has an address that cannot be read: write host:26379 for a Sentinel or host:6379 for a node of a Cluster, with commas between them";
const DATABASE: &str = "has a database or another path, which a Cluster has not: write redis+cluster://host:6379,host:6379";
const VOTES: &str = "has votes that cannot be: write ?votes=3 for a Cluster of three masters, or 5, 7 or 9, and nothing for one node";
const SEVERAL: &str = "means several nodes: ask each of them, as NodeConfig::votes returns them";
const SENTINEL_TLS: &str = "has a sentinel_tls that is neither yes nor no";

#[cfg(test)]
mod tests {
    use super::*;

    fn read(url: &str) -> Result<NamingUrl, String> {
        NamingUrl::read(url).unwrap_or_else(|| panic!("{url} is of another kind"))
    }

    fn addresses(url: &NamingUrl) -> Vec<String> {
        let addresses = url.informants.iter().map(Address::of);
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
        let greeting = sentinel.informants[0].redis_settings();
        assert_eq!((greeting.username(), greeting.password()), (None, None));
    }

    #[test]
    fn sentinels_have_a_user_a_password_and_tls_of_their_own() {
        let url = "redis+sentinel://:secret@s1/m?sentinel_user=watch&sentinel_password=a%40b%2Fc&protocol=resp2";
        let sentinel = read(url).unwrap();
        let greeting = sentinel.informants[0].redis_settings();
        assert_eq!(
            (greeting.username(), greeting.password()),
            (Some("watch"), Some("a@b/c"))
        );
        assert_eq!(
            sentinel.at("h", 1).redis_settings().password(),
            Some("secret")
        );
    }

    #[test]
    fn a_url_names_nodes_of_a_cluster_and_how_to_connect_to_all() {
        let cluster = read("REDIS+Cluster://app:p%40w@c1,c2:7000,[::1]?protocol=resp3").unwrap();
        assert_eq!(addresses(&cluster), ["c1:6379", "c2:7000", "[::1]:6379"]);
        assert_eq!(cluster.to_string(), "cluster@c1:6379");
        assert!(matches!(
            cluster.subject,
            Subject::SlotOwner(ClusterVotes::One)
        ));
        for info in [&cluster.informants[1], &cluster.at("10.0.0.9", 6379)] {
            let settings = info.redis_settings();
            assert_eq!(
                (settings.username(), settings.password()),
                (Some("app"), Some("p@w"))
            );
        }
        let same = read("redis+cluster://c2:7000,[::1]:6379,c1/").unwrap();
        assert_eq!(same.identity(), cluster.identity());
    }

    #[test]
    fn a_url_of_several_votes_is_as_many_nodes() {
        let url = "redis+cluster://:p%40w@c1,c2?protocol=resp3&votes=3";
        assert!(read(url).unwrap().tag("a").is_err());
        let urls = NamingUrl::urls_of_votes(url).unwrap();
        assert_eq!(
            urls[1],
            "redis+cluster://:p%40w@c1,c2?protocol=resp3&vote=2of3"
        );
        let nodes: Vec<_> = urls.iter().map(|url| read(url).unwrap()).collect();
        assert_eq!(nodes[2].to_string(), "3of3@c1:6379");
        assert_ne!(nodes[0].identity(), nodes[1].identity());
        let tag = nodes[1].tag("billing").unwrap().unwrap();
        assert!(tag.starts_with("billing:2of3:"), "{tag}");
        assert_eq!(NamingUrl::urls_of_votes(&urls[0]), None);
        let with_zero = NamingUrl::urls_of_votes("redis+cluster://c1?votes=03").unwrap();
        assert_eq!(with_zero[0], "redis+cluster://c1?vote=1of3");
        assert_eq!(NamingUrl::urls_of_votes("redis://c1?votes=3"), None);
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
            let found = [&sentinel.at("h", 1), &sentinel.informants[0]].map(is_tls);
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
            ("redis+cluster://c1,,c2", "host:6379"),
            ("redis+cluster://", "host:6379"),
            ("redis+cluster://c1,c2/2", "redis+cluster://host:6379"),
            ("redis+cluster://c1?db=2", "redis://host/2"),
            ("redis+cluster://c1?votes=2", "?votes=3"),
            ("redis+cluster://c1?vote=4of3", "?votes=3"),
            ("redis+cluster://c1?votes=3&vote=1of3", "twice"),
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
        for url in [
            "redis://s1/1",
            "http+sentinel://s1/m",
            "s1/m",
            "redis+unix:///socket",
        ] {
            assert!(NamingUrl::read(url).is_none(), "{url}");
        }
    }
}
