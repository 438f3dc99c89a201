//! Grants that count only once replicas have them, so that a failover to one of these forgets none.
//!
//! `WAIT` holds up the connection over which it is sent, so it has a connection of its own.
//! A server counts there what was written over that connection; the stream to the replicas has an order, so a replica
//! that has this write has all earlier ones, too.
//!
//! Source: <https://redis.io/docs/latest/commands/wait/>

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use deadpool_redis::redis::{Cmd, RedisError, Value, cmd, from_redis_value};
use futures_util::{
    FutureExt,
    future::{BoxFuture, try_join},
};
use redlock_proto::{Answer, Keyspace, Request};
use tokio::sync::Mutex;

use super::{
    error::{NotOpened, is_unknown_command, not_opened, reason},
    transport::Transport,
};
use crate::{CallError, CallResult};

/// How many replicas must have a grant before it counts.
#[derive(Clone)]
pub(crate) struct WaitForReplicas {
    pub(crate) count: u8,
    pub(crate) limit: Duration,
}

/// The replicas of the server of a session.
pub(crate) struct Replicas {
    wanted: WaitForReplicas,
    connection: Transport,
    /// How many waits were begun.
    begun: AtomicU64,
    /// The number of the latest wait that has ended, and how many replicas there were.
    latest: Mutex<(u64, u64)>,
}

impl Replicas {
    /// Makes them of the session's connection to the server, and another one.
    pub(crate) async fn new(
        mut session: Transport,
        connection: Transport,
        wanted: WaitForReplicas,
    ) -> Result<Self, NotOpened> {
        let mut other = connection.clone();
        let mut question = cmd("INFO");
        question.arg("server");
        let asked = try_join(session.ask(&question), other.ask(&question)).await;
        let (one, two) = asked.map_err(|error| not_opened(&error))?;
        if run_of(&one) != run_of(&two) {
            // Its name has moved in between.
            let reason = "its name leads to one server, and then to another";
            return Err(NotOpened::clear(reason));
        }
        // Whether the user may ask for it shows at once.
        let asked = other.ask(&wait(0, wanted.limit)).await;
        asked.map_err(|error| match error.code() {
            Some("NOPERM") => NotOpened::clear(NO_RIGHT_TO_WAIT),
            _ if is_unknown_command(&error) => NotOpened::clear(NO_WAIT),
            _ => not_opened(&error),
        })?;
        Ok(Self {
            wanted,
            connection,
            begun: AtomicU64::new(0),
            latest: Mutex::default(),
        })
    }

    /// Returns an answer once enough replicas have what it grants.
    pub(crate) fn have(
        self: &Arc<Self>,
        answering: BoxFuture<'static, CallResult>,
        keyspace: &Arc<Keyspace>,
        requests: &[Request],
    ) -> BoxFuture<'static, CallResult> {
        let (replicas, keyspace) = (Arc::clone(self), Arc::clone(keyspace));
        let requests = requests.to_vec();
        async move {
            let answer = answering.await?;
            if grants(&requests, &answer) {
                replicas.have_all(&keyspace).await?;
            }
            Ok(answer)
        }
        .boxed()
    }

    /// Waits until enough replicas have all that the server has answered so far.
    async fn have_all(&self, keyspace: &Keyspace) -> Result<(), CallError> {
        // A wait that was begun before may be too early for it; the next one is for all callers that wait by then.
        let needed = self.begun.load(Ordering::Relaxed) + 1;
        let mut latest = self.latest.lock().await;
        if latest.0 < needed {
            let number = self.begun.fetch_add(1, Ordering::Relaxed) + 1;
            let asked = self.ask(keyspace).await;
            *latest = (
                number,
                asked.map_err(|error| CallError::lost(reason(&error)))?,
            );
        }
        let wanted = self.wanted.count;
        if latest.1 >= wanted.into() {
            return Ok(());
        }
        let (have, limit) = (latest.1, self.wanted.limit);
        Err(CallError::unknown(format!(
            "{have} of the {wanted} replicas of wait_for_replicas have confirmed it within {limit:?}"
        )))
    }

    async fn ask(&self, keyspace: &Keyspace) -> Result<u64, RedisError> {
        let mut write = cmd("SET");
        write
            .arg(format!("{}:copied", keyspace.mark().as_str()))
            .arg("")
            .arg("PX")
            .arg(1);
        let wait = wait(self.wanted.count, self.wanted.limit);
        let (mut one, mut other) = (self.connection.clone(), self.connection.clone());
        let (_, copies) = try_join(one.ask(&write), other.ask(&wait)).await?;
        from_redis_value(copies).map_err(RedisError::from)
    }
}

fn wait(count: u8, limit: Duration) -> Cmd {
    // Zero would be for ever.
    let millis = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX).max(1);
    cmd("WAIT").arg(count).arg(millis).to_owned()
}

/// Returns whether a lease or a claim may rest on an answer.
fn grants(requests: &[Request], answer: &Answer) -> bool {
    let mut replies = requests.iter().zip(&answer.replies);
    replies.any(|(request, reply)| reply.as_ref().is_ok_and(|reply| reply.grants(request)))
}

const NO_RIGHT_TO_WAIT: &str =
    "its user may not run WAIT, which wait_for_replicas needs; give this user +wait";
const NO_WAIT: &str = "it does not know WAIT, which wait_for_replicas needs; give the command its name back there (rename-command), or leave wait_for_replicas out in all clients";

/// Returns the line that names the run of a server.
fn run_of(info: &Value) -> Option<String> {
    let Value::BulkString(info) = info else {
        return None;
    };
    let info = String::from_utf8_lossy(info);
    let mut lines = info.lines();
    lines
        .find(|line| line.starts_with("run_id:"))
        .map(str::to_owned)
}
