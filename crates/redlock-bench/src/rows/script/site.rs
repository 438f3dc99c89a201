//! A server whose time on a processor is read, and the ways to ask it.

use std::{future::Future, sync::Arc, time::Duration};

use deadpool_redis::redis::{
    AsyncConnectionConfig, Client, Pipeline, Value, aio::MultiplexedConnection,
};
use futures_util::future::BoxFuture;
use redlock_core::node::{Answer, CallResult, Keyspace, Node, RedisNode, Request, Session};
use redlock_proto::{MarkState, NodeVerb, Quarantine};
use redlock_sandbox::{Server, ServerBinary, ServerOptions};

use crate::failed::{Failed, Result};

/// By which of its two forms the client calls the server.
#[derive(Clone, Copy, Debug)]
pub(super) enum Form {
    Transaction,
    Script,
}

/// A server that votes, with a session of the client's and a plain connection.
pub(super) struct Site {
    server: Server,
    space: Arc<Keyspace>,
    session: Box<dyn Session>,
    plain: MultiplexedConnection,
}

impl Site {
    pub(super) async fn start() -> Result<Self> {
        let binary = ServerBinary::find()?;
        let server = Server::start(&binary, ServerOptions::default())?;
        let session = RedisNode::at(&server.url())?.connect().await?;
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
            session,
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
    ) -> BoxFuture<'static, CallResult> {
        match form {
            Form::Transaction => self.session.transact(&self.space, requests),
            Form::Script => self.session.call(&self.space, requests),
        }
    }

    /// Sends other commands together, when it is polled.
    pub(super) fn commands(
        &self,
        commands: Pipeline,
    ) -> impl Future<Output = Result<Vec<Value>>> + use<> {
        let mut connection = self.plain.clone();
        async move { Ok(commands.query_async(&mut connection).await?) }
    }

    /// Hands a script over, and returns the hash to call it by.
    pub(super) fn load(&self, script: &str) -> Result<String> {
        let hash = self.server.command(&["SCRIPT", "LOAD", script]);
        let hash = hash?;
        Ok(hash.as_text().unwrap_or_default().to_owned())
    }

    /// Measures the microseconds of a processor that the server spends on each of these calls, one after the other.
    pub(super) async fn cost<T>(
        &self,
        calls: Vec<impl Future<Output = Result<T>>>,
    ) -> Result<(f64, Vec<T>)> {
        // What the look itself costs.
        let look = -(self.spent()? - self.spent()?);
        let count = calls.len() as f64;
        let before = self.spent()?;
        let mut answers = Vec::with_capacity(calls.len());
        for call in calls {
            answers.push(call.await?);
        }
        Ok(((self.spent()? - before - look) / count, answers))
    }

    /// Returns the microseconds of a processor that the server has spent.
    fn spent(&self) -> Result<f64> {
        let info = self.server.command(&["INFO", "cpu"]);
        let info = info?;
        let info = info.as_text().unwrap_or_default();
        let missing = || Failed("the server does not say what it has spent".to_owned());
        spent(info).ok_or_else(missing)
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

/// Reads the microseconds that the thread which answers clients has spent, in the kernel and outside of it.
fn spent(info: &str) -> Option<f64> {
    let field = |name: &str| {
        let mut lines = info.lines();
        let seconds = lines.find_map(|line| line.strip_prefix(name))?;
        seconds.trim().parse::<f64>().ok()
    };
    let [kernel, user] = ["used_cpu_sys_main_thread:", "used_cpu_user_main_thread:"].map(field);
    Some((kernel? + user?) * 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_has_spent_is_read() {
        let info = "# CPU\r\nused_cpu_sys:9.5\r\nused_cpu_user:9.5\r\n\
            used_cpu_sys_main_thread:0.250000\r\nused_cpu_user_main_thread:1.000001\r\n";
        assert_eq!(spent(info), Some(1_250_001.0));
        assert_eq!(spent("used_cpu_sys:9.5\r\n"), None);
    }
}
