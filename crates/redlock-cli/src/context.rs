//! What all verbs share: where output goes, and the clients to be closed in the end.

use std::sync::{Mutex, PoisonError};

use redlock_core::{BuildError, Redlock, RedlockBuilder};

use crate::output::Output;

/// What a verb works with.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) output: Output,
    clients: Mutex<Vec<Redlock>>,
}

impl Context {
    pub(crate) const fn new(output: Output) -> Self {
        Self {
            output,
            clients: Mutex::new(Vec::new()),
        }
    }

    /// Starts a client that is closed when the command ends, however it ends.
    pub(crate) async fn client(&self, builder: RedlockBuilder) -> Result<Redlock, BuildError> {
        let client = builder.build().await?;
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        clients.push(client.clone());
        Ok(client)
    }

    /// Waits until all that was held is released.
    pub(crate) async fn close(&self) {
        let clients = {
            let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *clients)
        };
        for client in clients {
            client.close().await;
        }
    }
}
