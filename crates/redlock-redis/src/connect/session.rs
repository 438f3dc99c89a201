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
    future::{BoxFuture, join, join3, ready},
    stream::BoxStream,
};
use redlock_proto::{Answer, Done, Gift, Keyspace, NodeKey, NodeVerb, Reply, Request};

use crate::{
    CallError, CallResult, KeyEntry, Session,
    discover::{Named, Tenure},
    keys::is_verbatim,
    script,
    speak::{
        error::{
            NONSENSE, NotOpened, call_error, is_refusal, is_unknown_command, not_opened, pool_error,
        },
        error_texts::of_named,
        form::{Form, Forms},
        messages::{self, Messages},
        predecessor::Predecessor,
        replicas::{Replicas, WaitForReplicas},
        transport::{BlockError, Direct, Transport},
        wire::{self, Block, Encoder},
    },
};

/// One connection: calls are pipelined and answered in order.
#[derive(Clone)]
pub(crate) struct RedisSession {
    connection: Transport,
    forms: Arc<Forms>,
    encoder: Arc<Encoder>,
    /// How many calls were begun.
    calls: Arc<AtomicU64>,
    /// Under which term its Sentinels or its Cluster name the server, if they do.
    tenure: Option<Arc<Tenure>>,
    /// The replicas that must have a grant, if any must.
    replicas: Option<Arc<Replicas>>,
    /// How to hear the server's messages, if that is known.
    messages: Option<Messages>,
    /// Until it is dropped, no other connection ends this one.
    _token: Arc<()>,
}

/// What a session is made with.
pub(crate) struct SessionParts {
    pub(crate) forms: Forms,
    pub(crate) encoder: Arc<Encoder>,
    pub(crate) predecessor: Predecessor,
    pub(crate) replicas: Option<WaitForReplicas>,
}

impl RedisSession {
    /// Connects, and brings the scripts.
    pub(crate) async fn open(
        pool: &Pool,
        direct: Option<&Direct>,
        parts: SessionParts,
    ) -> Result<Self, NotOpened> {
        let SessionParts {
            forms,
            encoder,
            predecessor,
            replicas,
        } = parts;
        let mut connection = connect(pool, direct).await?;
        // A server that wants a password first says so to a short command only.
        connection
            .ask(&cmd("PING"))
            .await
            .map_err(|error| not_opened(&error))?;
        // What `EVAL` brings, a server of 7.4 or later may drop again to make room. If this is not allowed, the first
        // call brings it all the same.
        let [all, keep] = script::load();
        let (mut one, mut other) = (connection.clone(), connection.clone());
        let loads = join(one.ask(&all), other.ask(&keep));
        let transactions = forms.try_transactions(connection.clone());
        let ((all, keep), (), token) =
            join3(loads, transactions, predecessor.succeed(&connection)).await;
        forms.set_cached(all.is_ok());
        forms.set_keep_cached(keep.is_ok());
        let replicas = match replicas {
            Some(wanted) => {
                let other = connect(pool, direct).await?;
                let replicas = Replicas::new(connection.clone(), other, wanted).await?;
                Some(Arc::new(replicas))
            }
            None => None,
        };
        Ok(Self {
            connection,
            forms: Arc::new(forms),
            encoder,
            calls: Arc::default(),
            tenure: None,
            replicas,
            messages: None,
            _token: token,
        })
    }

    /// Returns the session, which can hear the server's messages.
    pub(crate) fn hearing(self, messages: Option<Messages>) -> Self {
        Self { messages, ..self }
    }

    /// Returns the session, over which calls are sent only while a majority confirms the server and its term.
    pub(crate) async fn under(
        self,
        named: Named,
        keyspace: &Arc<Keyspace>,
    ) -> Result<Self, Arc<str>> {
        let tenure = named.begin(self.connection.clone(), keyspace).await?;
        Ok(Self {
            tenure: Some(Arc::new(tenure)),
            ..self
        })
    }

    fn refusal(&self) -> Option<CallError> {
        let refusal = self.tenure.as_ref()?.refusal()?;
        Some(CallError::wrong_server(refusal))
    }

    /// Returns the keyspace of the node, with the term of the session if it has one.
    fn keyspace(&self, of_client: &Arc<Keyspace>) -> Arc<Keyspace> {
        match &self.tenure {
            Some(tenure) => tenure.keyspace(),
            None => Arc::clone(self.encoder.keyspace(of_client)),
        }
    }
}

/// Connects directly, if that is possible; else takes a connection out of the pool for good.
async fn connect(pool: &Pool, direct: Option<&Direct>) -> Result<Transport, NotOpened> {
    if let Some(direct) = direct {
        let pipe = direct.connect().await;
        return Ok(Transport::Own(pipe.map_err(|error| not_opened(&error))?));
    }
    let connection = pool.get().await.map_err(|error| pool_error(&error))?;
    let mut connection = Connection::take(connection);
    // A pool of the user's may have a limit of its own; the driver's is the one that counts.
    connection.set_response_timeout(LONGER_THAN_ANY_LIMIT);
    Ok(Transport::Pooled(connection))
}

impl RedisSession {
    fn answer_of_script(
        &mut self,
        keyspace: &Arc<Keyspace>,
        requests: &[Request],
    ) -> BoxFuture<'static, CallResult> {
        if let Some(refusal) = self.refusal() {
            return ready(Err(refusal)).boxed();
        }
        let keyspace = self.keyspace(keyspace);
        let form = self.forms.pick();
        let args = self.encoder.call(form.head(), &keyspace, requests);
        let mut attempt = Attempt {
            connection: self.connection.clone(),
            forms: Arc::clone(&self.forms),
            encoder: Arc::clone(&self.encoder),
            calls: Arc::clone(&self.calls),
            number: self.calls.fetch_add(1, Ordering::Relaxed) + 1,
            keyspace,
            requests: requests.to_vec(),
            form,
        };
        let inspection = attempt.inspection();
        let is_followed = self.tenure.is_some();
        // What is rare is in boxes of its own, because every call has to carry the room that its future takes.
        async move {
            let (answered, policy) = match inspection {
                None => (attempt.connection.ask(&args).await, None),
                Some(inspection) => join(attempt.connection.ask(&args), inspection).await,
            };
            let value = match answered {
                Ok(value) => value,
                Err(error) => {
                    let again = attempt.again(error).boxed().await;
                    again.map_err(|error| followed(is_followed, error))?
                }
            };
            attempt.forms.set_cached(true);
            let answer = wire::read(value, &attempt.requests);
            let answer = answer.map_err(|error| followed(is_followed, error))?;
            Ok(with_policy(answer, policy.as_ref(), is_followed))
        }
        .boxed()
    }

    fn answer_of_transaction(
        &mut self,
        keyspace: &Arc<Keyspace>,
        requests: &[Request],
    ) -> BoxFuture<'static, CallResult> {
        if let Some(refusal) = self.refusal() {
            return ready(Err(refusal)).boxed();
        }
        // A key that is verbatim may have a value of any length and type.
        if !self.forms.transacts() || is_verbatim(keyspace) {
            return self.answer_of_script(keyspace, requests);
        }
        let keep = self.forms.keep();
        let keyspace = self.keyspace(keyspace);
        let block = Block::of(&keyspace, requests, keep);
        self.calls.fetch_add(1, Ordering::Relaxed);
        let requests = requests.to_vec();
        let is_followed = self.tenure.is_some();
        let (mut connection, forms) = (self.connection.clone(), Arc::clone(&self.forms));
        async move {
            match connection.ask_all(&block).await {
                Ok(value) => {
                    let done = wire::transaction(value, &requests);
                    let done = done.ok_or_else(|| CallError::lost(NONSENSE))?;
                    let has_failed = done.done.contains(&Done::Failed);
                    if has_failed {
                        forms.forget_scripts();
                    } else if keep[0] == "EVAL" {
                        forms.set_keep_cached(true);
                    }
                    Ok(done.judge(&keyspace, &requests))
                }
                Err(BlockError { error, cause }) if is_refusal_of_all(&error, &requests) => {
                    if error.code() == Some("NOSCRIPT") {
                        forms.forget_scripts();
                    } else {
                        forms.refuse_transactions();
                    }
                    let error = CallError {
                        may_have_run: false,
                        ..call_error(&cause.unwrap_or(error))
                    };
                    Err(followed(is_followed, error))
                }
                Err(BlockError { error, .. }) => Err(followed(is_followed, call_error(&error))),
            }
        }
        .boxed()
    }

    fn replicated(
        &self,
        answer: BoxFuture<'static, CallResult>,
        keyspace: &Arc<Keyspace>,
        requests: &[Request],
    ) -> BoxFuture<'static, CallResult> {
        match &self.replicas {
            Some(replicas) => replicas.have(answer, self.encoder.keyspace(keyspace), requests),
            None => answer,
        }
    }
}

impl Session for RedisSession {
    fn server(&self) -> Option<Arc<str>> {
        self.tenure.as_ref().map(|tenure| tenure.server())
    }

    fn move_here(&mut self) -> bool {
        // The informants' task, and the wait for replicas, ask on the runtime in which the session was opened.
        self.tenure.is_none() && self.replicas.is_none() && self.connection.move_here()
    }

    fn call(
        &mut self,
        keyspace: &Arc<Keyspace>,
        requests: &[Request],
    ) -> BoxFuture<'static, CallResult> {
        let answer = self.answer_of_script(keyspace, requests);
        self.replicated(answer, keyspace, requests)
    }

    fn transact(
        &mut self,
        keyspace: &Arc<Keyspace>,
        requests: &[Request],
    ) -> BoxFuture<'static, CallResult> {
        let answer = self.answer_of_transaction(keyspace, requests);
        self.replicated(answer, keyspace, requests)
    }

    fn listen(
        &mut self,
        keyspace: &Arc<Keyspace>,
        client: u64,
    ) -> BoxFuture<'static, Result<BoxStream<'static, Gift>, Arc<str>>> {
        if self.replicas.is_some() {
            return ready(Err("no message says what replicas have".into())).boxed();
        }
        let channel = self.encoder.keyspace(keyspace).channel(client);
        let (messages, connection) = (self.messages.clone(), self.connection.clone());
        async move {
            let messages = messages.ok_or("a pool has no connections for messages")?;
            // The message comes from the client that releases the key: as a rule, one with the same user.
            messages::publish_nothing(&channel, connection).await?;
            messages.subscribe(&channel).await
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
            delete.arg(self.encoder.parts_of(job).concat());
        }
        async move {
            let deleted = connection.ask(&delete).await;
            let deleted = deleted.map_err(|error| call_error(&error).reason)?;
            from_redis_value(deleted).map_err(|_| NONSENSE.into())
        }
        .boxed()
    }

    fn read_key(
        &mut self,
        key: &NodeKey,
    ) -> BoxFuture<'static, Result<Option<KeyEntry>, Arc<str>>> {
        let key = self.encoder.parts_of(key).concat();
        let (mut connection, mut of_ttl) = (self.connection.clone(), self.connection.clone());
        // Two commands, because every client's user may send them; of a key that ends in between, nothing is said.
        let (mut read, mut ttl) = (cmd("MGET"), cmd("PTTL"));
        read.arg(&key);
        ttl.arg(&key);
        async move {
            let (value, left) = join(connection.ask(&read), of_ttl.ask(&ttl)).await;
            let reason = |error: RedisError| call_error(&error).reason;
            let (value, left) = (value.map_err(reason)?, left.map_err(reason)?);
            let value: Vec<Option<Vec<u8>>> = from_redis_value(value).map_err(|_| NONSENSE)?;
            let left: i64 = from_redis_value(left).map_err(|_| NONSENSE)?;
            let value = value.into_iter().next().ok_or(NONSENSE)?;
            // A value of another type has a time to live and no text, and is in the way of every lock.
            Ok((left != NO_KEY).then(|| KeyEntry {
                value: String::from_utf8_lossy(&value.unwrap_or_default()).into_owned(),
                remaining: u64::try_from(left).ok().map(Duration::from_millis),
            }))
        }
        .boxed()
    }
}

/// The time to live of a key that does not exist.
const NO_KEY: i64 = -2;

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
}

impl Attempt {
    /// Makes a call again that was answered with an error, in another form, if one may do better.
    async fn again(&mut self, mut error: RedisError) -> Result<Value, CallError> {
        while let Some(other) = self.forms.instead_of(self.form, &error)
            // It did not run. It is made again unless others are on their way, which it must not be overtaken by.
            && self.calls.load(Ordering::Relaxed) == self.number
        {
            self.form = other;
            let head = other.head();
            let again = self.encoder.call(head, &self.keyspace, &self.requests);
            match self.connection.ask(&again).await {
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

/// Does what goes with an inspection: tries transactions again, and asks when the server makes sure that what it wrote is
/// on disk, where that matters and it lets itself be asked.
async fn inspect(
    keyspace: Arc<Keyspace>,
    forms: Arc<Forms>,
    connection: Transport,
) -> Option<Arc<str>> {
    let transactions = forms.try_transactions(connection.clone());
    let policy = sync_policy(&keyspace, connection);
    join(transactions, policy).await.1
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

/// Returns whether an error says that nothing of a transaction was carried out.
fn is_refusal_of_all(error: &RedisError, requests: &[Request]) -> bool {
    // A call that only releases keys is no transaction to the server, but one command.
    let is_one = requests.iter().all(Request::is_release);
    error.code() == Some("EXECABORT") || is_one && is_refusal(error)
}

/// Returns an error in the words for a server that others name, if they name it.
fn followed(is_followed: bool, error: CallError) -> CallError {
    let reason = match is_followed {
        true => of_named(&error.reason),
        false => return error,
    };
    CallError { reason, ..error }
}

fn with_policy(mut answer: Answer, policy: Option<&Arc<str>>, is_followed: bool) -> Answer {
    for reply in &mut answer.replies {
        if let Ok(Reply::ServerInfo(server_info)) = reply {
            server_info.syncs = policy.cloned();
            if is_followed {
                // The client learns in time of another server that takes its place.
                server_info.replicas = 0;
                server_info.is_cluster = false;
            }
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

const SENTINEL: &str =
    "it is a Sentinel; write redis+sentinel://host:26379/master, with the name of its master";

const LONGER_THAN_ANY_LIMIT: Duration = Duration::from_secs(24 * 60 * 60);
