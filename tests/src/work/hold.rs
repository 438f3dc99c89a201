use std::{future::poll_fn, path::PathBuf, pin::pin, time::Duration};

use redlock_core::AcquireOptions;
use serde::{Deserialize, Serialize};
use tokio::time::interval;

use crate::{Event, HistoryWriter, Moment, client};

/// Acquires one lease and works under it until it is lost.
///
/// The history has each poll of the work; the report is the reason of the loss.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct HoldWork {
    /// The file for its history.
    pub history: PathBuf,
    /// The nodes' URLs.
    pub nodes: Vec<String>,
    /// The resource.
    pub key: String,
    /// The time to live; the lease is renewed for as long as the process lives.
    pub ttl: Duration,
    /// How often the work wakes up.
    pub period: Duration,
}

impl HoldWork {
    pub(super) async fn run(self) -> String {
        let history = HistoryWriter::open(&self.history).expect("the history can be opened");
        let redlock = client(&self.nodes, self.ttl).await;
        let guard = redlock
            .acquire_with(&self.key, AcquireOptions::new())
            .await
            .unwrap_or_else(|error| panic!("nobody else wants the lease: {error}"));
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
