use std::sync::{Mutex, PoisonError};

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::TickReport;

/// Tests that wait for a replica to have dealt with a tick.
#[derive(Default)]
pub(crate) struct Listeners(Mutex<Vec<UnboundedSender<TickReport>>>);

/// The reports that a listener receives.
pub(crate) type Heard = UnboundedReceiver<TickReport>;

impl Listeners {
    pub(crate) fn add(&self) -> Heard {
        let (tell, heard) = unbounded_channel();
        // Nothing panics while the lock is held.
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.push(tell);
        heard
    }

    /// Sends a report to the listeners that are left.
    pub(crate) fn tell(&self, report: &TickReport) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|listener| listener.send(report.clone()).is_ok());
    }
}
