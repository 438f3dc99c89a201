//! Where a node is, and the checks of the URL that says so.
//!
//! redis-rs passes over what it does not know: a client whose URL has `?db=2` would lock in another database than one
//! whose URL ends in `/2`, and `?tls=true` would not make TLS.

use std::{fmt, net::IpAddr};

use deadpool_redis::redis::{ConnectionAddr, ConnectionInfo, parse_redis_url};

/// Where a node is, without credentials; two nodes at one address would be one node with two votes.
///
/// `localhost` counts as 127.0.0.1, and `::1` is another address, where another server may listen.
/// The database number is no part of it: databases of one server live and die together.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(crate) struct Address(String);

impl Address {
    pub(crate) fn of(info: &ConnectionInfo) -> Self {
        Self(match info.addr() {
            ConnectionAddr::Tcp(host, port) | ConnectionAddr::TcpTls { host, port, .. } => {
                let host = host.trim_start_matches('[').trim_end_matches(']');
                match host.to_ascii_lowercase().as_str() {
                    "localhost" => format!("127.0.0.1:{port}"),
                    host => match host.parse::<IpAddr>().map(|host| host.to_canonical()) {
                        Ok(IpAddr::V4(host)) => format!("{host}:{port}"),
                        Ok(IpAddr::V6(host)) => format!("[{host}]:{port}"),
                        Err(_) => format!("{host}:{port}"),
                    },
                }
            }
            other => other.to_string(),
        })
    }
}

impl Address {
    /// Returns whether it leads each machine to itself.
    pub(crate) fn is_loopback(&self) -> bool {
        let (host, _) = self.0.rsplit_once(':').unwrap_or((&self.0, ""));
        let host = host.trim_start_matches('[').trim_end_matches(']');
        host.parse::<IpAddr>().is_ok_and(|host| host.is_loopback())
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Returns what is wrong with a URL that redis-rs might take, in words that repeat nothing of it.
pub(crate) fn refusal_of_url(url: &str) -> Option<&'static str> {
    let url = parse_redis_url(url)?;
    let is_socket = url.scheme().ends_with("unix");
    if is_socket && (!url.username().is_empty() || url.password().is_some()) {
        return Some(SOCKET);
    }
    if url.fragment().is_some() {
        return Some(FRAGMENT);
    }
    let database = url.path().strip_prefix('/').unwrap_or_else(|| url.path());
    if !is_socket && !database.is_empty() && !is_number(database) {
        return Some("has a path that is no number: the database is written as in redis://host/2");
    }
    let mut known: Vec<String> = Vec::new();
    for (name, value) in url.query_pairs() {
        let is_in_form = match &*name {
            "protocol" => matches!(&*value, "2" | "3" | "resp2" | "resp3"),
            "db" if is_socket => is_number(&value),
            "user" | "pass" => is_socket,
            _ => false,
        };
        if !is_in_form {
            return Some(parameter(&name, is_socket));
        }
        if known.iter().any(|known| **known == *name) {
            return Some("has a parameter twice");
        }
        known.push(name.into_owned());
    }
    None
}

/// Returns the form in which to say what this parameter was meant for.
fn parameter(name: &str, is_socket: bool) -> &'static str {
    let name = name.to_ascii_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
    if name == "protocol" {
        "has an unknown protocol: write ?protocol=resp2 or ?protocol=resp3, or nothing"
    } else if is_socket {
        SOCKET
    } else if has(&["cert", "key", "ca_", "cafile"]) {
        "has a parameter for certificates, which no URL has: SSL_CERT_FILE names those to trust, and a client certificate needs a pool of your own (NodeConfig::pool)"
    } else if has(&["ssl", "tls"]) {
        "has a parameter for TLS: write rediss:// instead of redis://"
    } else if has(&["db", "database"]) {
        "has a parameter for the database: write it behind the host, as in redis://host/2"
    } else if has(&["user", "pass", "auth"]) {
        "has a parameter for the user or the password: write them before the host, as in redis://user:password@host"
    } else if has(&["timeout"]) {
        "has a parameter for a time limit: set node_timeout or connect_timeout instead"
    } else {
        "has an unknown parameter: the only one is ?protocol=resp3"
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.len() <= 9 && text.bytes().all(|byte| byte.is_ascii_digit())
}

const FRAGMENT: &str = "has a fragment (`#…`), which means nothing: TLS always checks certificates, and SSL_CERT_FILE names those to trust";
const SOCKET: &str = "is not of the form unix:///path[?db=2&user=name&pass=password]";

/// Returns how to connect as the user that is given, also to a server that wants no password of it: without one, redis-rs
/// would not tell the server of the user.
pub(super) fn with_user(info: ConnectionInfo) -> ConnectionInfo {
    let settings = info.redis_settings();
    if settings.username().is_none() || settings.password().is_some() {
        return info;
    }
    let settings = settings.clone().set_password("");
    info.set_redis_settings(settings)
}

/// Returns what is wrong with a URL that could not be read.
pub(super) fn refused_url(url: &str, has_tls: bool) -> &'static str {
    let scheme = url.split_once("://").map(|(scheme, _)| scheme);
    let asks_for_tls = scheme
        .is_some_and(|s| s.eq_ignore_ascii_case("rediss") || s.eq_ignore_ascii_case("valkeys"));
    if asks_for_tls && !has_tls {
        "asks for TLS, which needs the feature `tls-rustls` of redlock-core"
    } else {
        "is not a URL like redis://[user:password@]host[:port][/db], rediss://…, unix:///path, redis+sentinel://host,host/master or redis+cluster://host,host"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use deadpool_redis::redis::IntoConnectionInfo;

    fn address(url: &str) -> String {
        Address::of(&url.into_connection_info().unwrap()).to_string()
    }

    #[test]
    fn s11_one_server_has_one_address_however_it_is_spelt() {
        for url in [
            "redis://127.0.0.1:6379",
            "redis://127.0.0.1",
            "redis://LOCALHOST/3",
            "redis://user:secret@localhost:6379/0",
            "redis://[::ffff:127.0.0.1]:6379",
        ] {
            assert_eq!(address(url), "127.0.0.1:6379", "{url}");
        }
        for url in ["redis://[::1]:6379", "redis://[0:0:0:0:0:0:0:1]"] {
            assert_eq!(address(url), "[::1]:6379", "{url}");
        }
        assert_ne!(
            address("redis://127.0.0.1:6380"),
            address("redis://127.0.0.1:6379")
        );
    }

    #[test]
    fn a_loopback_address_is_known() {
        let is_loopback =
            |url: &str| Address::of(&url.into_connection_info().unwrap()).is_loopback();
        for url in [
            "redis://localhost",
            "redis://127.0.5.1:7000",
            "redis://[::1]",
        ] {
            assert!(is_loopback(url), "{url}");
        }
        for url in ["redis://10.0.0.1", "redis://redis-1", "redis://[::2]"] {
            assert!(!is_loopback(url), "{url}");
        }
    }

    #[test]
    fn an_address_shows_no_credentials() {
        assert_eq!(
            address("redis://user:secret@Example.com:7000/1"),
            "example.com:7000"
        );
    }

    #[test]
    fn what_is_known_is_taken() {
        for url in [
            "redis://host",
            "redis://host/",
            "redis://user@host:7000/15",
            "redis://:p%23w@[::1]:7000?protocol=resp3",
            "rediss://user:pw@host/0?protocol=2",
            "valkeys://host",
            "unix:///run/redis.sock",
            "unix:///run/redis.sock?db=2&user=app&pass=a%26b@c&protocol=3",
            "redis+unix:///run/redis.sock",
        ] {
            assert_eq!(refusal_of_url(url), None, "{url}");
        }
    }

    #[test]
    fn what_is_not_known_is_refused_with_the_form_for_it() {
        for (url, form) in [
            ("redis://host?db=2", "redis://host/2"),
            ("redis://host/1?database=2", "redis://host/2"),
            ("redis://host?ssl=true", "rediss://"),
            ("redis://host?sslmode=require", "rediss://"),
            ("redis://host/0?tls=true", "rediss://"),
            ("rediss://host?ssl_cert_reqs=none", "SSL_CERT_FILE"),
            (
                "rediss://host?sslcert=/c.pem&sslkey=/k.pem",
                "NodeConfig::pool",
            ),
            ("rediss://host#insecure", "SSL_CERT_FILE"),
            ("redis://host/0#", "fragment"),
            (
                "redis://host?password=hunter2",
                "redis://user:password@host",
            ),
            ("redis://host?timeout=5s", "connect_timeout"),
            ("redis://host?hunter2", "unknown parameter"),
            ("redis://host?protocol=4", "resp3"),
            ("redis://host?protocol=2&protocol=3", "twice"),
            ("redis://host/two", "redis://host/2"),
            ("redis://host/2/", "redis://host/2"),
            ("redis://host//2", "redis://host/2"),
            ("redis://host/-1", "redis://host/2"),
            ("redis://host/+2", "redis://host/2"),
            ("unix:///run/redis.sock?db=two", "?db=2"),
            ("unix:///run/redis.sock?password=hunter2", "&pass="),
            ("unix:///run/redis.sock#2", "fragment"),
            ("unix://me:hunter2@localhost/run/redis.sock", "?db=2&user="),
        ] {
            let refused = refusal_of_url(url).unwrap_or_else(|| panic!("{url} is taken"));
            assert!(refused.contains(form), "{url}: {refused}");
            assert!(!refused.contains("hunter2"), "{url}: {refused}");
        }
    }

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
}
