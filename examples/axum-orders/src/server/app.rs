use std::time::Duration;

use axum::{
    Router,
    routing::{MethodRouter, get, post, put},
};
use redlock_core::{AcquireOptions, Redlock, Wait};
use redlock_tower::{ConfigError, PathKey, RedlockLayer};

use super::{handlers, state::App};

/// The service's routes, with a lock around each one that reads, thinks and writes.
///
/// Without a client of the lock, the very same handlers are served with nothing around them.
pub(crate) fn router(app: App, redlock: Option<&Redlock>) -> Result<Router, ConfigError> {
    let locks = redlock.map(Locks::new).transpose()?;
    let locks = locks.as_ref();
    Ok(Router::new()
        .route(
            "/orders/{order_id}",
            put(handlers::put_order).get(handlers::show_order),
        )
        .route(
            "/orders/{order_id}/pay",
            locked(post(handlers::pay), locks.map(|locks| &locks.order)),
        )
        .route(
            "/products/{product_id}",
            put(handlers::put_product).get(handlers::show_product),
        )
        .route(
            "/products/{product_id}/reservations",
            locked(post(handlers::reserve), locks.map(|locks| &locks.product)),
        )
        .route(
            "/tenants/{tenant}/imports",
            locked(post(handlers::import), locks.map(|locks| &locks.tenant)),
        )
        .route("/tenants/{tenant}/catalogue", get(handlers::show_catalogue))
        .route("/statistics", get(handlers::statistics))
        .with_state(app))
}

/// The layers of the routes: what each locks, and how long a request waits for it.
struct Locks {
    order: RedlockLayer<PathKey>,
    product: RedlockLayer<PathKey>,
    tenant: RedlockLayer<PathKey>,
}

impl Locks {
    fn new(redlock: &Redlock) -> Result<Self, ConfigError> {
        // Each key is parsed as the handler parses it, so that `042` has no lock of its own.
        let order = PathKey::new("order", "order_id").parsed::<i64>();
        let product = PathKey::new("product", "product_id").parsed::<i64>();
        let tenant = PathKey::new("tenant", "tenant").parsed::<i64>();
        let layer =
            |wait| RedlockLayer::builder(redlock.clone()).options(AcquireOptions::new().wait(wait));
        Ok(Self {
            order: layer(SHORT_WORK).build(order)?,
            product: layer(SHORT_WORK).build(product)?,
            // An import takes long, so a second request is refused at once.
            tenant: layer(Wait::Never).build(tenant)?,
        })
    }
}

fn locked(handler: MethodRouter<App>, layer: Option<&RedlockLayer<PathKey>>) -> MethodRouter<App> {
    match layer {
        Some(layer) => handler.route_layer(layer.clone()),
        None => handler,
    }
}

/// Longer than a lease of the default length, so that a request outlasts the lease of a replica that died.
const SHORT_WORK: Wait = Wait::UpTo(Duration::from_secs(12));
