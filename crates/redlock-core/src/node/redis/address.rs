use std::{fmt, net::IpAddr};

use deadpool_redis::redis::{ConnectionAddr, ConnectionInfo};

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

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
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
    fn an_address_shows_no_credentials() {
        assert_eq!(
            address("redis://user:secret@Example.com:7000/1"),
            "example.com:7000"
        );
    }
}
