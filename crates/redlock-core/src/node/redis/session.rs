use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use deadpool_redis::{
    Connection, Pool,
    redis::{
        Cmd, RedisError, RedisResult, Value,
        aio::{ConnectionLike, MultiplexedConnection},
        cmd,
    },
};
use futures_util::{FutureExt, future::BoxFuture};

use super::{
    error::{NotOpened, call_error, not_opened, pool_error},
    wire::{self, SCRIPT},
};
use crate::node::{Answers, CallError, Request, Session, Space};

/// One multiplexed connection: calls are pipelined and answered in order.
pub(super) struct RedisSession {
    connection: MultiplexedConnection,
    /// Whether the server has the script in its cache, as far as is known.
    cached: Arc<AtomicBool>,
}

impl RedisSession {
    /// Takes a connection out of the pool for good.
    pub(super) async fn open(pool: &Pool) -> Result<Self, NotOpened> {
        let connection = pool.get().await.map_err(|error| pool_error(&error))?;
        let mut connection = Connection::take(connection);
        // A pool of the user's may have a limit of its own; the driver's is the one that counts.
        connection.set_response_timeout(LONGER_THAN_ANY_LIMIT);
        // A server that wants a password first says so to a short command only.
        ask(&mut connection, &cmd("PING"))
            .await
            .map_err(|error| not_opened(&error))?;
        Ok(Self {
            connection,
            // The client's first call hands the script over.
            cached: Arc::new(AtomicBool::new(false)),
        })
    }
}

impl Session for RedisSession {
    fn call(&mut self, space: &Arc<Space>, requests: &[Request]) -> BoxFuture<'static, Answers> {
        let cmd = SCRIPT.call(space, requests, self.cached.load(Ordering::Relaxed));
        let requests = requests.to_vec();
        let mut connection = self.connection.clone();
        let cached = Arc::clone(&self.cached);
        async move {
            match ask(&mut connection, &cmd).await {
                Ok(value) => {
                    cached.store(true, Ordering::Relaxed);
                    wire::answer(value, &requests)
                        .ok_or_else(|| CallError::lost("the server's answer makes no sense"))
                }
                Err(error) => {
                    // After SCRIPT FLUSH the next call carries the text again. This call is not
                    // repeated: those behind it are on their way, and it must not be overtaken.
                    if error.code() == Some("NOSCRIPT") {
                        cached.store(false, Ordering::Relaxed);
                    }
                    if is_unknown_command(&error) && is_sentinel(&mut connection).await {
                        return Err(CallError::lost(SENTINEL));
                    }
                    Err(call_error(&error))
                }
            }
        }
        .boxed()
    }
}

/// The server's answer; an error that it sent is an error here too.
async fn ask(connection: &mut MultiplexedConnection, cmd: &Cmd) -> RedisResult<Value> {
    connection.req_packed_command(cmd).await?.extract_error()
}

fn is_unknown_command(error: &RedisError) -> bool {
    let detail = error.detail().unwrap_or_default();
    error.code() == Some("ERR") && detail.starts_with("unknown command")
}

/// Sentinels speak the protocol, and have neither keys nor scripts.
async fn is_sentinel(connection: &mut MultiplexedConnection) -> bool {
    match ask(connection, cmd("INFO").arg("server")).await {
        Ok(Value::BulkString(info)) => {
            String::from_utf8_lossy(&info).contains("redis_mode:sentinel")
        }
        _ => false,
    }
}

const SENTINEL: &str = "it is a Sentinel; give independent masters instead";

const LONGER_THAN_ANY_LIMIT: Duration = Duration::from_secs(24 * 60 * 60);
