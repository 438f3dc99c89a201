//! The URL of a master that Sentinels name.

use std::fmt;

use deadpool_redis::redis::{ConnectionAddr, ConnectionInfo, IntoConnectionInfo, parse_redis_url};

use super::{Address, address, refused_url, with_user};

/// A master, as Sentinels know it.
#[derive(Clone)]
pub(crate) struct Sentinel {
    /// The Sentinels, in the order given.
    pub(super) sentinels: Vec<ConnectionInfo>,
    pub(super) master: String,
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
        if hosts.iter().any(|host| host.is_empty()) {
            return Err(NO_SENTINEL.to_owned());
        }
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
    pub(super) fn at(&self, host: &str, port: u16) -> ConnectionInfo {
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
}

impl fmt::Display for Sentinel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let first = self.sentinels.first().map(Address::of);
        write!(f, "{}", self.master)?;
        first.map_or(Ok(()), |first| write!(f, "@{first}"))
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
}
