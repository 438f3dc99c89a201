//! A look at what answers at an address where no connection could be made.

use std::{sync::Arc, time::Duration};

use deadpool_redis::redis::{ConnectionAddr, ConnectionInfo};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

use super::error::{HTTP_SERVER, NOT_REDIS, TLS_ALERT, TLS_SERVER, explained};

/// Where to look, and whether TLS is expected there.
///
/// The client library loses what a server says that hangs up at once, and waits in vain for a TLS handshake with a
/// server that does not speak it.
#[derive(Clone, Debug)]
pub(crate) struct Probe {
    host: String,
    port: u16,
    tls: bool,
}

impl Probe {
    /// `None` for sockets, at which nothing but the server answers.
    pub(crate) fn of(info: &ConnectionInfo) -> Option<Self> {
        let (host, port, tls) = match info.addr() {
            ConnectionAddr::Tcp(host, port) => (host, port, false),
            ConnectionAddr::TcpTls { host, port, .. } => (host, port, true),
            _ => return None,
        };
        Some(Self {
            host: host.clone(),
            port: *port,
            tls,
        })
    }

    /// Returns what is wrong there, if it shows; asks for nothing but `PING`.
    pub(crate) async fn finding(&self) -> Option<Arc<str>> {
        let address = (self.host.as_str(), self.port);
        let connected = timeout(PATIENCE, TcpStream::connect(address)).await;
        let mut stream = connected.ok()?.ok()?;
        let mut answer = [0; 512];
        // A server that refuses a connection says so at once.
        let greeted = timeout(PATIENCE / 4, stream.read(&mut answer)).await;
        let length = match greeted {
            Ok(length) => length.ok()?,
            Err(_) => {
                stream.write_all(b"PING\r\n").await.ok()?;
                let answered = timeout(PATIENCE, stream.read(&mut answer)).await.ok()?;
                // A server that cannot read the `PING` may hang up without an answer.
                answered.unwrap_or(0)
            }
        };
        self.judge(&answer[..length])
    }

    fn judge(&self, answer: &[u8]) -> Option<Arc<str>> {
        let text = String::from_utf8_lossy(answer);
        let line = text.lines().next().unwrap_or_default();
        match answer.first() {
            Some(&TLS_ALERT) => (!self.tls).then(|| TLS_SERVER.into()),
            Some(b'+' | b'-') if self.tls => Some(NO_TLS.into()),
            Some(b'+') => None,
            Some(b'-') => Some(explained(&line[1..])),
            Some(_) if line.starts_with("HTTP/") => Some(HTTP_SERVER.into()),
            Some(_) => Some(NOT_REDIS.into()),
            None => (!self.tls).then(|| HANGS_UP.into()),
        }
    }
}

pub(crate) const NO_TLS: &str = "it does not speak TLS; give a redis:// URL";
pub(crate) const HANGS_UP: &str = "it hangs up without an answer; a TLS port takes a rediss:// URL, and a proxy needs a server behind it";

/// How long each step may take.
const PATIENCE: Duration = Duration::from_millis(200);

#[cfg(test)]
mod tests {
    use super::*;
    use deadpool_redis::redis::IntoConnectionInfo;

    #[test]
    fn an_answer_is_judged_by_what_was_expected() {
        let probe = |tls| Probe {
            tls,
            ..Probe::of(&"redis://h:1".into_connection_info().unwrap()).unwrap()
        };
        let judge = |tls, answer: &[u8]| probe(tls).judge(answer).unwrap_or_default();
        assert_eq!(&*judge(false, b"+PONG\r\n"), "");
        assert_eq!(&*judge(true, b"+PONG\r\n"), NO_TLS);
        assert_eq!(
            &*judge(true, b"-NOAUTH Authentication required.\r\n"),
            NO_TLS
        );
        assert_eq!(&*judge(false, b"\x15\x03\x03\0\x02"), TLS_SERVER);
        assert_eq!(&*judge(true, b"\x15\x03\x03\0\x02"), "");
        assert_eq!(&*judge(false, b""), HANGS_UP);
        assert_eq!(&*judge(true, b""), "");
        assert_eq!(&*judge(false, b"SSH-2.0-secret\r\n"), NOT_REDIS);
        assert!(judge(false, b"-ERR max number of clients reached\r\n").contains("maxclients"));
        assert!(!judge(false, b"-ERR secret\r\n").contains("secret"));
    }
}
