use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use deadpool_redis::{
    Connection, Pool,
    redis::{
        Cmd, RedisError, RedisResult, Value,
        aio::{ConnectionLike, MultiplexedConnection},
        cmd, from_redis_value,
    },
};
use futures_util::{
    FutureExt,
    future::{BoxFuture, join},
};
use redlock_proto::NodeVerb;

use super::{
    error::{NotOpened, call_error, not_opened, pool_error},
    script, wire,
};
use crate::node::{Answer, CallError, CallResult, Keyspace, Reply, Request, Session};

/// One multiplexed connection: calls are pipelined and answered in order.
pub(super) struct RedisSession {
    connection: MultiplexedConnection,
    /// Whether the server has the script in its cache, as far as is known.
    cached: Arc<AtomicBool>,
    /// How many calls were begun.
    calls: Arc<AtomicU64>,
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
        // What `EVAL` brings, a server of 7.4 or later may drop again to make room. If this is not allowed, the first
        // call brings it all the same.
        let loaded = ask(&mut connection, &script::load()).await.is_ok();
        Ok(Self {
            connection,
            cached: Arc::new(AtomicBool::new(loaded)),
            calls: Arc::default(),
        })
    }
}

impl Session for RedisSession {
    fn call(
        &mut self,
        keyspace: &Arc<Keyspace>,
        requests: &[Request],
    ) -> BoxFuture<'static, CallResult> {
        let cmd = wire::call(keyspace, requests, self.cached.load(Ordering::Relaxed));
        let requests = requests.to_vec();
        let keyspace = Arc::clone(keyspace);
        let mut connection = self.connection.clone();
        let (cached, calls) = (Arc::clone(&self.cached), Arc::clone(&self.calls));
        let number = calls.fetch_add(1, Ordering::Relaxed) + 1;
        async move {
            let policy = sync_policy(&keyspace, &requests, connection.clone());
            let (mut answered, policy) = join(ask(&mut connection, &cmd), policy).await;
            if let Err(error) = &answered
                && error.code() == Some("NOSCRIPT")
            {
                cached.store(false, Ordering::Relaxed);
                // It did not run. It is made again unless others are on their way, which it must not be overtaken by.
                if calls.load(Ordering::Relaxed) == number {
                    let again = wire::call(&keyspace, &requests, false);
                    answered = ask(&mut connection, &again).await;
                }
            }
            match answered {
                Ok(value) => {
                    cached.store(true, Ordering::Relaxed);
                    let answer = wire::answer(value, &requests)
                        .ok_or_else(|| CallError::lost("the server's answer makes no sense"))?;
                    Ok(with_policy(answer, policy.as_ref()))
                }
                Err(error) => {
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

/// When a server makes sure that what it wrote is on disk, where that matters and it lets itself be asked.
async fn sync_policy(
    keyspace: &Keyspace,
    requests: &[Request],
    mut connection: MultiplexedConnection,
) -> Option<Arc<str>> {
    let is_inspection = |request: &Request| matches!(request, Request::Node(NodeVerb::Inspect));
    if !keyspace.quarantine().trusts_persistence() || !requests.iter().any(is_inspection) {
        return None;
    }
    let mut config = cmd("CONFIG");
    config.arg("GET").arg("appendfsync");
    let answer = ask(&mut connection, &config).await.ok()?;
    let pairs: HashMap<String, String> = from_redis_value(answer).ok()?;
    pairs
        .get("appendfsync")
        .map(|policy| policy.as_str().into())
}

fn with_policy(mut answer: Answer, policy: Option<&Arc<str>>) -> Answer {
    for reply in &mut answer.replies {
        if let Ok(Reply::ServerInfo(server_info)) = reply {
            server_info.syncs = policy.cloned();
        }
    }
    answer
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
