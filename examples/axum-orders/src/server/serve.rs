use std::{net::Ipv4Addr, path::PathBuf};

use redlock_core::{Config, Redlock};
use tokio::net::TcpListener;

use super::{app::router, state::App};
use stage::{BoxError, asked_to_end};

use crate::store::Store;

/// How one replica is started.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Options {
    /// 0 lets the system choose.
    pub(crate) port: u16,
    pub(crate) database: PathBuf,
    /// Whether the lock is around the handlers.
    pub(crate) layer: bool,
    /// Whether writes compare fencing tokens.
    pub(crate) fence: bool,
    /// Whether the caller vouches that the nodes are new.
    pub(crate) bless: bool,
}

/// What a replica's first line begins with; its URL follows.
pub(crate) const LISTENING: &str = "listening on ";

/// Serves on this machine until it is asked to end, and then ends in order.
pub(crate) async fn serve(options: Options) -> Result<(), BoxError> {
    let redlock = if options.layer {
        Some(connect(options.bless).await?)
    } else {
        None
    };
    let store = Store::open(&options.database).await?;
    let app = App::new(store, options.fence);
    let router = router(app.clone(), redlock.as_ref())?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, options.port)).await?;
    println!("{LISTENING}http://{}", listener.local_addr()?);

    let lock = redlock.clone();
    axum::serve(listener, router)
        .with_graceful_shutdown(async move {
            asked_to_end().await;
            // Requests that still wait for a lock are told at once to try another replica.
            if let Some(redlock) = lock {
                redlock.close().await;
            }
        })
        .await?;
    // Payments whose client has hung up.
    app.payments.close();
    app.payments.wait().await;
    // The last leases are released.
    if let Some(redlock) = redlock {
        redlock.close().await;
    }
    app.store.close().await;
    Ok(())
}

/// A client of the nodes that the environment names.
async fn connect(bless: bool) -> Result<Redlock, BoxError> {
    let mut config = Config::from_env()?;
    if config.nodes.is_empty() {
        return Err(
            "the lock needs nodes: set REDLOCK_NODES=redis://...,redis://...,redis://... \
                    (`cargo run -p redlock-sandbox -- 5` starts some)"
                .into(),
        );
    }
    config.namespace.get_or_insert_with(|| NAMESPACE.to_owned());
    let redlock = Redlock::builder().config(config).build().await?;
    if bless {
        redlock.dangerous_bless().await;
    }
    Ok(redlock)
}

/// The namespace of the keys unless the environment says another.
pub(crate) const NAMESPACE: &str = "axum-orders";
