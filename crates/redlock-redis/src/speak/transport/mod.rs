//! The connection that commands travel over: ours, or one of redis-rs.
//!
//! | file | has |
//! |---|---|
//! | `mod` | connections that are made here, over TCP and Unix sockets; redis-rs greets the server on them |
//! | `pipe` | commands and answers over such a connection, without a task of its own |
//! | `resp` | answers as they are on the wire |
//! | `wakers` | the tasks to wake when there is more to read |
//!
//! A connection of redis-rs has a task and two channels, each of which costs a lone call a turn of its thread.
//! It stays where there is no other way to the stream: TLS, RESP3, and pools of the user's.

mod pipe;
mod resp;
#[cfg(test)]
mod tests;
mod wakers;

use std::{
    borrow::Cow,
    io,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
    time::Duration,
};

use deadpool_redis::redis::{
    AsyncConnectionConfig, Cmd, ConnectionAddr, ConnectionInfo, ProtocolVersion,
    RedisConnectionInfo, RedisError, RedisResult, Value,
    aio::{ConnectionLike, MultiplexedConnection},
};
use futures_util::future::select_ok;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpStream, lookup_host},
    time::timeout,
};

use self::pipe::{Pipe, Stream};
use super::{args::Args, wire::Block};

/// A command that a connection can send.
pub(crate) trait WireCommand: Send + Sync {
    /// Writes it behind what is to be sent.
    fn write(&self, output: &mut Vec<u8>);

    /// Returns it as redis-rs has it.
    fn to_redis(&self) -> Cow<'_, Cmd>;

    /// Returns how many answers come before the one that counts, if it is several commands.
    fn answers_before(&self) -> Option<usize> {
        None
    }
}

impl WireCommand for Args {
    fn write(&self, output: &mut Vec<u8>) {
        self.write(output);
    }

    fn to_redis(&self) -> Cow<'_, Cmd> {
        Cow::Owned(self.to_redis())
    }
}

impl WireCommand for Block {
    fn write(&self, output: &mut Vec<u8>) {
        self.write(output);
    }

    fn to_redis(&self) -> Cow<'_, Cmd> {
        unreachable!("it is a pipeline")
    }

    fn answers_before(&self) -> Option<usize> {
        Some(self.len() - 1)
    }
}

impl WireCommand for Cmd {
    fn write(&self, output: &mut Vec<u8>) {
        self.write_packed_command(output);
    }

    fn to_redis(&self) -> Cow<'_, Cmd> {
        Cow::Borrowed(self)
    }
}

/// One connection; cloning it gives another handle to it.
#[derive(Clone)]
pub(crate) enum Transport {
    /// Made here.
    Own(Pipe),
    /// Taken out of a pool.
    Pooled(MultiplexedConnection),
}

impl Transport {
    /// Has the present runtime wake the tasks that wait for answers; returns whether it does.
    pub(crate) fn move_here(&self) -> bool {
        match self {
            Self::Own(pipe) => pipe.move_here(),
            // Its task is on the runtime in which it was made.
            Self::Pooled(_) => false,
        }
    }

    /// Sends a command, and returns the server's answer; an error that it sent is an error here too.
    ///
    /// Commands take effect in the order in which their futures were first polled.
    pub(crate) async fn ask<C: WireCommand>(&mut self, command: &C) -> RedisResult<Value> {
        let answer = match self {
            Self::Own(pipe) => pipe.ask(command).await.map(|answered| answered.answer),
            Self::Pooled(connection) => connection.req_packed_command(&command.to_redis()).await,
        };
        answer?.extract_error()
    }
}

impl Transport {
    /// Sends commands, and returns the answer to the last of them, in which errors may be answers.
    pub(crate) async fn ask_all(&mut self, block: &Block) -> Result<Value, BlockError> {
        let answered = match self {
            Self::Own(pipe) => pipe.ask(block).await,
            Self::Pooled(connection) => {
                let (commands, pipeline) = (block.len(), block.to_redis());
                let answers = connection.req_packed_commands(&pipeline, 0, commands).await;
                answers.map(|mut answers| Answered {
                    answer: answers.pop().unwrap_or(Value::Nil),
                    cause: answers.into_iter().find(is_error),
                })
            }
        };
        let Answered { answer, cause } =
            answered.map_err(|error| BlockError { error, cause: None })?;
        match answer {
            Value::ServerError(error) => Err(BlockError {
                error: error.into(),
                cause: cause.and_then(|cause| cause.extract_error().err()),
            }),
            answer => Ok(answer),
        }
    }
}

/// What a server answered.
#[derive(Debug, PartialEq)]
struct Answered {
    /// The last answer to several commands, in which errors may be answers.
    answer: Value,
    /// The first error among the answers before it.
    cause: Option<Value>,
}

fn is_error(answer: &Value) -> bool {
    matches!(answer, Value::ServerError(_))
}

/// Why the last of several commands failed.
pub(crate) struct BlockError {
    pub(crate) error: RedisError,
    /// The first error among the answers before it.
    pub(crate) cause: Option<RedisError>,
}

/// How to make a connection to a server without redis-rs's own.
#[derive(Clone)]
pub(crate) struct Direct {
    address: ConnectionAddr,
    greeting: RedisConnectionInfo,
    limit: Duration,
}

impl Direct {
    /// `None` for TLS and for RESP3, which are left to redis-rs.
    pub(crate) fn new(info: &ConnectionInfo, limit: Duration) -> Option<Self> {
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
    pub(crate) async fn connect(&self) -> RedisResult<Pipe> {
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
