use std::sync::Arc;

use tokio::sync::oneshot;

use super::command::{Command, EngineHandle};
use crate::{ExtendError, Lease, LossReason, ReleaseError, lease::LeaseShared};

/// The driver's promise that a lease is held; dropping it releases the lease.
#[derive(Debug)]
pub(crate) struct Holding {
    id: u64,
    lease: Lease,
    shared: Arc<LeaseShared>,
    engine: EngineHandle,
    over: bool,
}

impl Holding {
    pub(super) fn new(id: u64, shared: Arc<LeaseShared>, engine: EngineHandle) -> Self {
        Self {
            id,
            lease: Lease::new(Arc::clone(&shared)),
            shared,
            engine,
            over: false,
        }
    }

    pub(crate) fn lease(&self) -> &Lease {
        &self.lease
    }

    pub(crate) async fn extend(&self) -> Result<(), ExtendError> {
        let (answer, answered) = oneshot::channel();
        self.engine.send(Command::Extend {
            lease: self.id,
            answer,
        });
        answered
            .await
            .unwrap_or_else(|_| Err(ExtendError::unconfirmed(Vec::new())))
    }

    /// Sends the release now; the future awaits its confirmation.
    pub(crate) fn release(mut self) -> impl Future<Output = Result<(), ReleaseError>> + use<> {
        let lost = self.end();
        let (answer, answered) = oneshot::channel();
        self.engine.send(Command::Release {
            lease: self.id,
            answer: Some(answer),
        });
        async move {
            let confirmed = answered.await;
            match lost {
                Some(_) => Err(ReleaseError::lost()),
                None => confirmed.unwrap_or_else(|_| Err(ReleaseError::lost())),
            }
        }
    }

    /// Ends the lease on this side only.
    pub(crate) fn leave(mut self) {
        self.end();
        self.engine.send(Command::Leave { lease: self.id });
    }

    /// Views learn of the end before the first node does; returns the reason if there was one before.
    fn end(&mut self) -> Option<LossReason> {
        self.over = true;
        let lost = self.shared.loss();
        self.shared.end(LossReason::Released);
        lost
    }
}

impl Drop for Holding {
    fn drop(&mut self) {
        if !self.over {
            self.end();
            self.engine.send(Command::Release {
                lease: self.id,
                answer: None,
            });
        }
    }
}
