use std::fmt;

use deadpool_redis::redis::{ConnectionAddr, ConnectionInfo};

/// Where a node is, without credentials; two nodes at one address would be one node with two votes.
///
/// The database number is no part of it: databases of one server live and die together.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(crate) struct Address(String);

impl Address {
    pub(super) fn of(info: &ConnectionInfo) -> Self {
        Self(match info.addr() {
            ConnectionAddr::Tcp(host, port) | ConnectionAddr::TcpTls { host, port, .. } => {
                match host.to_ascii_lowercase().as_str() {
                    "localhost" | "::1" | "[::1]" => format!("127.0.0.1:{port}"),
                    host if host.contains(':') && !host.starts_with('[') => {
                        format!("[{host}]:{port}")
                    }
                    host => format!("{host}:{port}"),
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
            "redis://[::1]:6379",
        ] {
            assert_eq!(address(url), "127.0.0.1:6379", "{url}");
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
