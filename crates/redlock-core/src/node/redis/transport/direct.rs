use std::{
    io,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
    time::Duration,
};

use deadpool_redis::redis::{
    AsyncConnectionConfig, ConnectionAddr, ConnectionInfo, ProtocolVersion, RedisConnectionInfo,
    RedisError, RedisResult, aio::MultiplexedConnection,
};
use futures_util::future::select_ok;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpStream, lookup_host},
    time::timeout,
};

use super::pipe::{Pipe, Stream};

/// How to make a connection to a server without redis-rs's own.
#[derive(Clone)]
pub(in super::super) struct Direct {
    address: ConnectionAddr,
    greeting: RedisConnectionInfo,
    limit: Duration,
}

impl Direct {
    /// `None` for TLS and for RESP3, which are left to redis-rs.
    pub(in super::super) fn new(info: &ConnectionInfo, limit: Duration) -> Option<Self> {
        let greeting = info.redis_settings();
        let is_unix = matches!(info.addr(), ConnectionAddr::Unix(_)) && cfg!(unix);
        let is_plain = is_unix || matches!(info.addr(), ConnectionAddr::Tcp(..));
        let is_ours = is_plain && greeting.protocol() == ProtocolVersion::RESP2;
        is_ours.then(|| Self {
            address: info.addr().clone(),
            greeting: greeting.clone(),
            limit,
        })
    }

    /// Connects, and has redis-rs greet the server: user, password, database, and the name of the client.
    pub(in super::super) async fn connect(&self) -> RedisResult<Pipe> {
        let connected = timeout(self.limit, async {
            let lent = Lent(Arc::new(Mutex::new(self.stream().await?)));
            let settings = AsyncConnectionConfig::new().set_response_timeout(None);
            let (greeting, stream) = (&self.greeting, lent.clone());
            // The result is not used: every command so far has its answer, so redis-rs has read nothing beyond them.
            drop(MultiplexedConnection::new_with_config(greeting, stream, settings).await?);
            Ok::<_, RedisError>(lent)
        });
        let out_of_time = |_| RedisError::from(io::Error::from(io::ErrorKind::TimedOut));
        let Lent(stream) = connected.await.map_err(out_of_time)??;
        // invariant: this is the only handle of the stream now
        let stream =
            Arc::into_inner(stream).ok_or_else(|| io::Error::from(io::ErrorKind::BrokenPipe))?;
        let stream = stream.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok(Pipe::new(stream))
    }

    async fn stream(&self) -> RedisResult<Pin<Box<dyn Stream>>> {
        match &self.address {
            ConnectionAddr::Tcp(host, port) => {
                let addresses = lookup_host((host.as_str(), *port)).await?;
                let attempts: Vec<_> = addresses
                    .map(|at| Box::pin(TcpStream::connect(at)))
                    .collect();
                if attempts.is_empty() {
                    return Err(io::Error::from(io::ErrorKind::NotFound).into());
                }
                let (stream, _) = select_ok(attempts).await?;
                // Requests are small and each is waited for, so Nagle's algorithm would only delay them.
                stream.set_nodelay(true)?;
                Ok(Box::pin(stream))
            }
            #[cfg(unix)]
            ConnectionAddr::Unix(path) => {
                Ok(Box::pin(tokio::net::UnixStream::connect(path).await?))
            }
            // invariant: `new` makes none for other addresses
            _ => Err(io::Error::from(io::ErrorKind::Unsupported).into()),
        }
    }
}

/// A stream that redis-rs has while it greets the server.
#[derive(Clone)]
struct Lent(Arc<Mutex<Pin<Box<dyn Stream>>>>);

impl Lent {
    fn stream(&self) -> MutexGuard<'_, Pin<Box<dyn Stream>>> {
        // Nothing panics while the lock is held.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AsyncRead for Lent {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.stream().as_mut().poll_read(cx, buffer)
    }
}

impl AsyncWrite for Lent {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.stream().as_mut().poll_write(cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream().as_mut().poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream().as_mut().poll_shutdown(cx)
    }
}
