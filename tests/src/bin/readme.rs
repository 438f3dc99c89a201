//! The program that the README shows first.

use axum::{Router, extract::Path, routing::post};
use redlock_core::{Config, Redlock};
use redlock_tower::{PathKey, RedlockLayer, RequestLease};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    #[rustfmt::skip] // one line there
    let redlock = Redlock::builder().config(Config::from_env()?).build().await?; // of REDLOCK_NODES
    let order = PathKey::new("order", "order_id").parsed::<u64>(); // as the handler reads it
    let one_per_order = RedlockLayer::new(redlock, order);
    #[rustfmt::skip] // one line there
    let app: Router = Router::new().route("/orders/{order_id}/pay", post(pay).route_layer(one_per_order));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    eprintln!(
        "curl -X POST http://{}/orders/7/pay",
        listener.local_addr()?
    );
    Ok(axum::serve(listener, app).await?)
}

async fn pay(Path(order_id): Path<u64>, lease: RequestLease) -> String {
    // No other request for this order runs now, on any replica.
    format!(
        "order {order_id} is paid, with {:?} to spare\n",
        lease.remaining()
    )
}
