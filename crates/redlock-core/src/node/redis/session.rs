use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use deadpool_redis::{
    Connection, Pool,
    redis::{RedisError, Value, aio::MultiplexedConnection, cmd, from_redis_value},
};
use futures_util::{
    FutureExt,
    future::{BoxFuture, join},
};
use redlock_proto::NodeVerb;

use super::{
    ask::ask,
    error::{NotOpened, call_error, not_opened, pool_error},
    form::{Form, Forms},
    script, wire,
};
use crate::node::{Answer, CallError, CallResult, Keyspace, Reply, Request, Session};

/// One multiplexed connection: calls are pipelined and answered in order.
pub(super) struct RedisSession {
    connection: MultiplexedConnection,
    forms: Arc<Forms>,
    /// How many calls were begun.
    calls: Arc<AtomicU64>,
}

impl RedisSession {
    /// Takes a connection out of the pool for good.
    pub(super) async fn open(pool: &Pool, forms: Forms) -> Result<Self, NotOpened> {
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
        forms.set_cached(loaded);
        forms.try_functions(connection.clone()).await;
        Ok(Self {
            connection,
            forms: Arc::new(forms),
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
        let mut form = self.forms.pick(requests, keyspace.quarantine());
        let cmd = wire::call(form.head(requests), keyspace, requests);
        let requests = requests.to_vec();
        let keyspace = Arc::clone(keyspace);
        let mut connection = self.connection.clone();
        let (forms, calls) = (Arc::clone(&self.forms), Arc::clone(&self.calls));
        let number = calls.fetch_add(1, Ordering::Relaxed) + 1;
        async move {
            let inspection = inspect(&keyspace, &requests, &forms, connection.clone());
            let (mut answered, policy) = join(ask(&mut connection, &cmd), inspection).await;
            while let Err(error) = &answered
                && let Some(other) = forms.instead_of(form, error)
                // It did not run. It is made again unless others are on their way, which it must not be overtaken by.
                && calls.load(Ordering::Relaxed) == number
            {
                form = other;
                let again = wire::call(form.head(&requests), &keyspace, &requests);
                answered = ask(&mut connection, &again).await;
            }
            match answered {
                Ok(value) => {
                    if form != Form::Function {
                        forms.set_cached(true);
                    }
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

/// Does what goes with an inspection: tries the functions again, and asks when the server makes sure that what it wrote
/// is on disk, where that matters and it lets itself be asked.
async fn inspect(
    keyspace: &Keyspace,
    requests: &[Request],
    forms: &Forms,
    connection: MultiplexedConnection,
) -> Option<Arc<str>> {
    let is_inspection = |request: &Request| matches!(request, Request::Node(NodeVerb::Inspect));
    if !requests.iter().any(is_inspection) {
        return None;
    }
    let functions = forms.try_functions(connection.clone());
    join(functions, sync_policy(keyspace, connection)).await.1
}

/// Returns a server's `appendfsync`.
async fn sync_policy(
    keyspace: &Keyspace,
    mut connection: MultiplexedConnection,
) -> Option<Arc<str>> {
    if !keyspace.quarantine().trusts_persistence() {
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
