use std::{
    io::{self, Write},
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use axum::{Router, routing::post};
use redlock_core::{AcquireOptions, Wait};
use redlock_tower::{PathKey, RedlockLayer, RequestLease};
use serde::{Deserialize, Serialize};
use tokio::{net::TcpListener, time::sleep};

use crate::{Connect, Event, HistoryWriter, Moment};

/// Serves `POST /work/{name}` on a free port of the loopback interface, one request per name at a time.
///
/// The first line of its output is its address.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Serve {
    /// The file for its history.
    pub history: PathBuf,
    /// The nodes, and the time to live.
    pub connect: Connect,
    /// How long a request waits for its turn.
    pub wait: Duration,
    /// How long the handler works.
    pub work: Duration,
}

impl Serve {
    pub(super) async fn run(self) -> io::Result<()> {
        let history = Arc::new(HistoryWriter::open(&self.history)?);
        let leases = Arc::new(AtomicU64::new(0));
        let handler = async move |lease: RequestLease| {
            let id = leases.fetch_add(1, Ordering::Relaxed);
            history.write(&Event::of(&lease, id, Moment::Acquired));
            sleep(self.work).await;
            history.write(&Event::of(&lease, id, Moment::Releasing));
        };
        let layer = RedlockLayer::builder(self.connect.client().await)
            .options(AcquireOptions::new().wait(Wait::UpTo(self.wait)))
            .build(PathKey::new("name", "name"))
            .map_err(io::Error::other)?;
        let app = Router::new().route("/work/{name}", post(handler).layer(layer));
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let mut output = io::stdout();
        writeln!(output, "{}", listener.local_addr()?)?;
        output.flush()?;
        axum::serve(listener, app).await
    }
}
