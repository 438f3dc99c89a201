//! A server that counts the time it spends, and three ways to ask it.

use std::{collections::HashMap, fmt, future::Future, sync::Arc, time::Duration};

use deadpool_redis::redis::{
    AsyncConnectionConfig, Client, RedisFuture, Value, aio::MultiplexedConnection, cmd,
    from_redis_value,
};
use futures_util::future::{join, join_all};
use redlock_core::node::{Answer, CallResult, Keyspace, Node, RedisNode, Request, Session};
use redlock_proto::{MarkState, NodeVerb, Quarantine};
use redlock_sandbox::{Server, ServerBinary, ServerOptions};
use tokio::time::sleep;

use crate::failed::{Failed, Result};

/// By which of its two forms the client calls the server.
#[derive(Clone, Copy, Debug)]
pub(super) enum Form {
    Functions,
    Script,
}

impl Form {
    /// Returns the command by which the server counts such calls.
    pub(super) fn command(self) -> &'static str {
        match self {
            Self::Functions => "fcall",
            Self::Script => "evalsha",
        }
    }
}

/// A server that votes, with two sessions of the client's and a plain connection.
pub(super) struct Site {
    server: Server,
    space: Arc<Keyspace>,
    functions: Box<dyn Session>,
    script: Box<dyn Session>,
    plain: MultiplexedConnection,
}

impl Site {
    pub(super) async fn start() -> Result<Self> {
        let binary = ServerBinary::find()?;
        let server = Server::start(&binary, ServerOptions::default())?;
        let node = || RedisNode::at(&server.url());
        let functions = node()?.connect().await?;
        let script = node()?.without_functions().connect().await?;
        let plain = Client::open(server.url())?;
        // A machine that is busy may keep a server from answering for longer than any limit.
        let patient = AsyncConnectionConfig::new().set_response_timeout(None);
        let plain = plain
            .get_multiplexed_async_connection_with_config(&patient)
            .await;
        let quarantine = Quarantine::new(Duration::from_secs(30), 0.01);
        let mut site = Self {
            server,
            space: Arc::new(Keyspace::new("{bench}", quarantine)),
            functions,
            script,
            plain: plain?,
        };
        site.vouch().await?;
        Ok(site)
    }

    /// Makes one call of the client's, which is sent when it is polled.
    pub(super) fn call(
        &mut self,
        form: Form,
        requests: &[Request],
    ) -> impl Future<Output = CallResult> + use<> {
        let session = match form {
            Form::Functions => &mut self.functions,
            Form::Script => &mut self.script,
        };
        session.call(&self.space, requests)
    }

    /// Makes another command, which is sent when it is polled.
    pub(super) fn command(&self, words: &[&str]) -> RedisFuture<'static, Value> {
        let mut command = cmd(words[0]);
        command.arg(&words[1..]);
        let mut connection = self.plain.clone();
        Box::pin(async move { command.query_async(&mut connection).await })
    }

    /// Hands a script over, and returns the hash to call it by.
    pub(super) fn load(&self, script: &str) -> Result<String> {
        let hash = self.server.command(&["SCRIPT", "LOAD", script]);
        let hash = hash?;
        Ok(hash.as_text().unwrap_or_default().to_owned())
    }

    /// Returns the text of the client's library of functions, which the server has.
    pub(super) async fn library(&self) -> Result<String> {
        let list = self.command(&["FUNCTION", "LIST", "WITHCODE"]).await;
        let list: Vec<HashMap<String, Value>> = from_redis_value(list?)?;
        let code = list
            .into_iter()
            .next()
            .and_then(|mut library| library.remove("library_code"));
        let code = code.ok_or_else(|| Failed("the server has no functions".to_owned()))?;
        Ok(from_redis_value(code)?)
    }

    /// Replaces the library by another of its name.
    pub(super) async fn replace(&self, text: &str) -> Result<()> {
        self.command(&["FUNCTION", "LOAD", "REPLACE", text]).await?;
        Ok(())
    }

    /// Measures the microseconds that the server spends on each of these calls, which are all of one command.
    pub(super) async fn cost<T, E: fmt::Display>(
        &self,
        command: &str,
        calls: Vec<impl Future<Output = Result<T, E>>>,
    ) -> Result<(f64, Vec<T>)> {
        let count = calls.len();
        self.server.command(&["CONFIG", "RESETSTAT"])?;
        // It runs them in a row, whatever pace they were sent at: it is frozen until all have arrived.
        self.server.freeze()?;
        let thaw = async {
            sleep(ARRIVAL).await;
            self.server.thaw()
        };
        let (answers, thawed) = join(join_all(calls), thaw).await;
        thawed?;
        let answers: Result<Vec<T>, E> = answers.into_iter().collect();
        let answers = answers?;
        let info = self.server.command(&["INFO", "commandstats"]);
        let info = info?;
        let info = info.as_text().unwrap_or_default();
        match spent(info, command) {
            Some((calls, micros)) if calls == count => Ok((micros / calls as f64, answers)),
            _ => Err(Failed(format!(
                "the server did not count {count} of {command}"
            ))),
        }
    }

    /// Lets the new server vote.
    async fn vouch(&mut self) -> Result<()> {
        let answer = self
            .call(Form::Script, &[])
            .await
            .map_err(|error| error.reason)?;
        let state = answer.standing.map(|standing| standing.state);
        let Some(MarkState::Quarantined { since, .. }) = state else {
            return Err(Failed(format!("a new server is {state:?}")));
        };
        let open = Request::Node(NodeVerb::Open {
            floor: 0,
            since,
            horizon: None,
        });
        let answer: Answer = self
            .call(Form::Script, &[open])
            .await
            .map_err(|error| error.reason)?;
        match answer.replies.into_iter().next() {
            Some(Ok(_)) => Ok(()),
            other => Err(Failed(format!("the server is not blessed: {other:?}"))),
        }
    }
}

/// Reads how often a command was called, and the microseconds that took.
fn spent(info: &str, command: &str) -> Option<(usize, f64)> {
    let name = format!("cmdstat_{command}:");
    let line = info.lines().find_map(|line| line.strip_prefix(&name))?;
    let field = |name: &str| line.split(',').find_map(|field| field.strip_prefix(name));
    let calls = field("calls=")?.parse().ok()?;
    let micros = field("usec=")?.parse().ok()?;
    Some((calls, micros))
}

/// How long the calls of a sample take to arrive at most.
const ARRIVAL: Duration = Duration::from_millis(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_counted_is_read() {
        let info = "# Commandstats\r\ncmdstat_eval:calls=1,usec=9,usec_per_call=9.00\r\n\
            cmdstat_evalsha:calls=64,usec=256,usec_per_call=4.00,rejected_calls=0\r\n";
        assert_eq!(spent(info, "evalsha"), Some((64, 256.0)));
        assert_eq!(spent(info, "set"), None);
    }
}
