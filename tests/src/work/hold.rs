use std::{future::poll_fn, path::PathBuf, pin::pin, time::Duration};

use redlock_core::{AcquireOptions, Wait};
use serde::{Deserialize, Serialize};
use tokio::time::interval;

use crate::{Connect, Event, HistoryWriter, Moment};

/// Acquires one lease and works under it until it is lost.
///
/// The history has each poll of the work; the report is the reason of the loss.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct HoldWork {
    /// The file for its history.
    pub history: PathBuf,
    /// The nodes; the lease is renewed for as long as the process lives.
    pub connect: Connect,
    /// The resource.
    pub key: String,
    /// How long it waits for the lease.
    pub wait: Duration,
    /// How long the resource rests if this process is killed.
    pub lock_delay: Duration,
    /// How often the work wakes up.
    pub period: Duration,
}

impl HoldWork {
    /// Holds `key` over these nodes and looks at its lease twenty times a second.
    pub fn new(history: PathBuf, connect: Connect, key: &str) -> Self {
        Self {
            history,
            connect,
            key: key.to_owned(),
            wait: Duration::from_secs(5),
            lock_delay: Duration::ZERO,
            period: Duration::from_millis(50),
        }
    }

    pub(super) async fn run(self) -> String {
        let history = HistoryWriter::open(&self.history).expect("the history can be opened");
        let redlock = self.connect.client().await;
        let options = AcquireOptions::new()
            .wait(Wait::UpTo(self.wait))
            .lock_delay(self.lock_delay);
        let guard = redlock
            .acquire_with(&self.key, options)
            .await
            .unwrap_or_else(|error| panic!("no other process holds it for so long: {error}"));
        let lease = guard.lease();
        history.write(&Event::of(lease, 0, Moment::Acquired));
        let mut ticks = interval(self.period);
        let work = async {
            loop {
                let mut tick = pin!(ticks.tick());
                poll_fn(|cx| {
                    history.write(&Event::of(lease, 0, Moment::Polled));
                    tick.as_mut().poll(cx).map(drop)
                })
                .await;
            }
        };
        let lost = match guard.run(work).await {
            Err(lost) => lost,
            Ok(never) => never,
        };
        history.write(&Event::of(lease, 0, Moment::Lost));
        // A release that tells of the loss changes nothing.
        let released = guard.release().await;
        redlock.close().await;
        format!("{:?}, {:?}", lost.reason(), released.map_err(|e| e.kind()))
    }
}
