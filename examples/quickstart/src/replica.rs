//! One replica of the service: its own lock client, its own HTTP server.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use axum::{
    Router,
    extract::{Path, State},
    http::StatusCode,
    routing::post,
};
use redlock_core::{AcquireOptions, Config, Redlock, Wait};
use redlock_tower::{PathKey, RedlockLayer};
use tokio::{net::TcpListener, task::JoinSet};

use stage::BoxError;

use crate::{bank::Bank, nodes::Nodes};

/// A replica that serves.
pub(crate) struct Replica {
    pub(crate) number: usize,
    pub(crate) address: SocketAddr,
    pub(crate) redlock: Redlock,
    servers: JoinSet<io::Result<()>>,
}

impl Replica {
    pub(crate) async fn start(
        number: usize,
        nodes: &Nodes,
        config: &Config,
        patient: bool,
        bank: Arc<Bank>,
    ) -> Result<Self, BoxError> {
        let mut builder = Redlock::builder()
            .nodes(nodes.for_client())
            .config(config.clone());
        if patient {
            builder = builder.connect_lazily();
        }
        let redlock = builder.build().await?;
        // The one line that an existing service needs.
        let one_per_customer = RedlockLayer::builder(redlock.clone())
            .options(AcquireOptions::new().wait(Wait::UpTo(Duration::from_secs(10))))
            .build(PathKey::new("customer", "customer").parsed::<usize>())?;
        let mut servers = JoinSet::new();
        let router = router(bank).route_layer(one_per_customer);
        let address = serve(router, &mut servers).await?;
        Ok(Self {
            number,
            address,
            redlock,
            servers,
        })
    }

    /// Ends the server and waits until everything is released.
    pub(crate) async fn stop(mut self) {
        self.servers.shutdown().await;
        self.redlock.close().await;
    }
}

/// The service, which knows nothing of locks.
pub(crate) fn router(bank: Arc<Bank>) -> Router {
    Router::new()
        .route("/customers/{customer}/transfers", post(transfer))
        .with_state(bank)
}

async fn transfer(
    State(bank): State<Arc<Bank>>,
    Path(customer): Path<usize>,
) -> Result<String, StatusCode> {
    match bank.transfer(customer).await {
        Some(savings) => Ok(format!("{savings} coins saved\n")),
        None => Err(StatusCode::NOT_FOUND),
    }
}

/// Serves on a port that the system chooses, on this machine only.
pub(crate) async fn serve(
    router: Router,
    servers: &mut JoinSet<io::Result<()>>,
) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let address = listener.local_addr()?;
    servers.spawn(async move { axum::serve(listener, router).await });
    Ok(address)
}
