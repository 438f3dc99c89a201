//! The part that all verbs share: where output goes, and what is to be ended when the command ends.

use std::sync::{Mutex, MutexGuard, PoisonError};

use redlock_core::{BuildError, Redlock, RedlockBuilder};
use redlock_sandbox::ServerSet;
use tokio::process::Child;

use crate::{ending, output::Output};

/// What a verb works with.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) output: Output,
    clients: Mutex<Vec<Redlock>>,
    /// Commands that still run, but that no verb waits for any longer.
    children: Mutex<Vec<Child>>,
    /// Servers that run as long as something may use them.
    servers: Mutex<Vec<ServerSet>>,
}

impl Context {
    pub(crate) const fn new(output: Output) -> Self {
        Self {
            output,
            clients: Mutex::new(Vec::new()),
            children: Mutex::new(Vec::new()),
            servers: Mutex::new(Vec::new()),
        }
    }

    /// Starts a client that is closed when the command ends, however it ends.
    pub(crate) async fn client(&self, builder: RedlockBuilder) -> Result<Redlock, BuildError> {
        let client = builder.build().await?;
        locked(&self.clients).push(client.clone());
        Ok(client)
    }

    /// Takes over servers, which run until all else has ended.
    pub(crate) fn serve(&self, servers: ServerSet) {
        locked(&self.servers).push(servers);
    }

    /// Takes over a command that no verb waits for any longer, until `close` ends it.
    pub(crate) fn leave(&self, child: Child) {
        locked(&self.children).push(child);
    }

    /// Ends the commands from `leave`, waits until the clients have released all locks, and ends the servers last.
    pub(crate) async fn close(&self) {
        let children = std::mem::take(&mut *locked(&self.children));
        for child in children {
            ending::end(child).await;
        }
        let clients = std::mem::take(&mut *locked(&self.clients));
        for client in clients {
            client.close().await;
        }
        drop(std::mem::take(&mut *locked(&self.servers)));
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
