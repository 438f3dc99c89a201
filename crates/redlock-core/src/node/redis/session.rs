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
    redis::{RedisError, Value, cmd, from_redis_value},
};
use futures_util::{
    FutureExt,
    future::{BoxFuture, join, ready},
};
use redlock_proto::NodeVerb;

use super::{
    error::{NONSENSE, NotOpened, call_error, is_unknown_command, not_opened, pool_error},
    form::{Form, Forms},
    script,
    transport::{Direct, Transport},
    wire::{self, Encoder, Order},
};
use crate::node::{Answer, CallError, CallResult, Keyspace, NodeKey, Reply, Request, Session};

/// One connection: calls are pipelined and answered in order.
pub(super) struct RedisSession {
    connection: Transport,
    forms: Arc<Forms>,
    encoder: Arc<Encoder>,
    /// How many calls were begun.
    calls: Arc<AtomicU64>,
}

impl RedisSession {
    /// Connects directly, if that is possible; else takes a connection out of the pool for good.
    pub(super) async fn open(
        direct: Option<&Direct>,
        pool: &Pool,
        forms: Forms,
        encoder: Arc<Encoder>,
    ) -> Result<Self, NotOpened> {
        let mut connection = match direct {
            Some(direct) => {
                let pipe = direct.connect().await;
                Transport::Own(pipe.map_err(|error| not_opened(&error))?)
            }
            None => {
                let connection = pool.get().await.map_err(|error| pool_error(&error))?;
                let mut connection = Connection::take(connection);
                // A pool of the user's may have a limit of its own; the driver's is the one that counts.
                connection.set_response_timeout(LONGER_THAN_ANY_LIMIT);
                Transport::Pooled(connection)
            }
        };
        // A server that wants a password first says so to a short command only.
        connection
            .ask(&cmd("PING"))
            .await
            .map_err(|error| not_opened(&error))?;
        // What `EVAL` brings, a server of 7.4 or later may drop again to make room. If this is not allowed, the first
        // call brings it all the same.
        let loaded = connection.ask(&script::load()).await.is_ok();
        forms.set_cached(loaded);
        forms.try_functions(connection.clone()).await;
        Ok(Self {
            connection,
            forms: Arc::new(forms),
            encoder,
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
        let form = self.forms.pick(requests, keyspace.quarantine());
        let head = form.head(requests);
        let call = self
            .encoder
            .call(head, keyspace, requests, form.order(requests));
        let mut attempt = Attempt {
            connection: self.connection.clone(),
            forms: Arc::clone(&self.forms),
            encoder: Arc::clone(&self.encoder),
            calls: Arc::clone(&self.calls),
            number: self.calls.fetch_add(1, Ordering::Relaxed) + 1,
            keyspace: Arc::clone(keyspace),
            requests: requests.to_vec(),
            form,
            order: call.order,
        };
        let inspection = attempt.inspection();
        // What is rare is in boxes of its own, because every call has to carry the room that its future takes.
        async move {
            let (answered, policy) = match inspection {
                None => (attempt.connection.ask(&call.args).await, None),
                Some(inspection) => join(attempt.connection.ask(&call.args), inspection).await,
            };
            let value = match answered {
                Ok(value) => value,
                Err(error) => attempt.again(error).boxed().await?,
            };
            if attempt.form != Form::Function {
                attempt.forms.set_cached(true);
            }
            let requests = &attempt.requests;
            if let Some(reason) = wire::wrong_server(&value, requests) {
                return Err(CallError::wrong_server(reason));
            }
            let answer = match value {
                Value::BulkString(said) if attempt.form.may_be_short(requests) => {
                    wire::done(&said, requests)
                }
                value => wire::answer(value, requests, attempt.order),
            };
            let answer = answer.ok_or_else(|| CallError::lost(NONSENSE))?;
            Ok(with_policy(answer, policy.as_ref()))
        }
        .boxed()
    }

    fn forget_jobs(&mut self, jobs: &[NodeKey]) -> BoxFuture<'static, Result<usize, Arc<str>>> {
        if jobs.is_empty() {
            // Servers refuse a DEL of nothing.
            return ready(Ok(0)).boxed();
        }
        let mut connection = self.connection.clone();
        let mut delete = cmd("DEL");
        for job in jobs {
            delete.arg(job.as_str());
        }
        async move {
            let deleted = connection.ask(&delete).await;
            let deleted = deleted.map_err(|error| call_error(&error).reason)?;
            from_redis_value(deleted).map_err(|_| NONSENSE.into())
        }
        .boxed()
    }
}

/// A call on its way.
struct Attempt {
    connection: Transport,
    forms: Arc<Forms>,
    encoder: Arc<Encoder>,
    calls: Arc<AtomicU64>,
    /// How many calls had been begun with it.
    number: u64,
    keyspace: Arc<Keyspace>,
    requests: Vec<Request>,
    form: Form,
    /// In which order it has the requests.
    order: Order,
}

impl Attempt {
    /// Makes a call again that was answered with an error, in another form, if one may do better.
    async fn again(&mut self, mut error: RedisError) -> Result<Value, CallError> {
        while let Some(other) = self.forms.instead_of(self.form, &error)
            // It did not run. It is made again unless others are on their way, which it must not be overtaken by.
            && self.calls.load(Ordering::Relaxed) == self.number
        {
            self.form = other;
            let head = other.head(&self.requests);
            let order = other.order(&self.requests);
            let again = self
                .encoder
                .call(head, &self.keyspace, &self.requests, order);
            self.order = again.order;
            match self.connection.ask(&again.args).await {
                Ok(value) => return Ok(value),
                Err(next) => error = next,
            }
        }
        if is_unknown_command(&error) && is_sentinel(&mut self.connection).await {
            return Err(CallError::lost(SENTINEL));
        }
        Err(call_error(&error))
    }

    /// Returns what goes with an inspection, if it is one.
    fn inspection(&self) -> Option<BoxFuture<'static, Option<Arc<str>>>> {
        let is_inspection = |request: &Request| matches!(request, Request::Node(NodeVerb::Inspect));
        let is_one = self.requests.iter().any(is_inspection);
        let (keyspace, forms) = (&self.keyspace, &self.forms);
        is_one.then(|| {
            inspect(
                Arc::clone(keyspace),
                Arc::clone(forms),
                self.connection.clone(),
            )
            .boxed()
        })
    }
}

/// Does what goes with an inspection: tries the functions again, and asks when the server makes sure that what it wrote
/// is on disk, where that matters and it lets itself be asked.
async fn inspect(
    keyspace: Arc<Keyspace>,
    forms: Arc<Forms>,
    connection: Transport,
) -> Option<Arc<str>> {
    let functions = forms.try_functions(connection.clone());
    join(functions, sync_policy(&keyspace, connection)).await.1
}

/// Returns a server's `appendfsync`, and that it does not hold all the time, if so.
async fn sync_policy(keyspace: &Keyspace, connection: Transport) -> Option<Arc<str>> {
    if !keyspace.quarantine().trusts_persistence() {
        return None;
    }
    // Two questions, because servers before 7 answer one at a time.
    let policy = setting("appendfsync", connection.clone());
    let pauses = setting("no-appendfsync-on-rewrite", connection);
    let (policy, pauses) = join(policy, pauses).await;
    let policy = policy?;
    Some(if pauses.as_deref() == Some("yes") {
        format!("{policy}, but not while it rewrites its file (no-appendfsync-on-rewrite yes)")
            .into()
    } else {
        policy.into()
    })
}

async fn setting(name: &str, mut connection: Transport) -> Option<String> {
    let mut config = cmd("CONFIG");
    config.arg("GET").arg(name);
    let answer = connection.ask(&config).await.ok()?;
    let mut pairs: HashMap<String, String> = from_redis_value(answer).ok()?;
    pairs.remove(name)
}

fn with_policy(mut answer: Answer, policy: Option<&Arc<str>>) -> Answer {
    for reply in &mut answer.replies {
        if let Ok(Reply::ServerInfo(server_info)) = reply {
            server_info.syncs = policy.cloned();
        }
    }
    answer
}

/// Sentinels speak the protocol, and have neither keys nor scripts.
async fn is_sentinel(connection: &mut Transport) -> bool {
    match connection.ask(cmd("INFO").arg("server")).await {
        Ok(Value::BulkString(info)) => {
            String::from_utf8_lossy(&info).contains("redis_mode:sentinel")
        }
        _ => false,
    }
}

const SENTINEL: &str = "it is a Sentinel; give independent masters instead";

const LONGER_THAN_ANY_LIMIT: Duration = Duration::from_secs(24 * 60 * 60);
