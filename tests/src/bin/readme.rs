//! The program that the README shows first.

use std::time::Duration;

use axum::{Router, extract::Path, routing::post};
use redlock_core::{AcquireOptions, Config, Redlock};
use redlock_tower::{PathKey, RedlockLayer, RequestLease, Shutdown};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    #[rustfmt::skip] // one line there
    let redlock = Redlock::builder().config(Config::from_env()?).build().await?; // of REDLOCK_NODES
    let order = PathKey::new("order", "order_id").parsed::<u64>(); // as the handler reads it
    #[rustfmt::skip] // one line there
    let options = AcquireOptions::new().max_hold(Duration::from_secs(30)); // however slowly a client sends and reads
    #[rustfmt::skip] // one line there
    let one_per_order = RedlockLayer::builder(redlock.clone()).options(options).build(order)?;
    #[rustfmt::skip] // one line there
    let app: Router = Router::new().route("/orders/{order_id}/pay", post(pay).route_layer(one_per_order));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    eprintln!(
        "curl -X POST http://{}/orders/7/pay",
        listener.local_addr()?
    );
    let serve = |asked| axum::serve(listener, app).with_graceful_shutdown(asked);
    Ok(Shutdown::on_signal(redlock)?.serve(serve).await?) // ends server and client in order
}

async fn pay(Path(order_id): Path<u64>, lease: RequestLease) -> String {
    // No other request for this order runs now, on any replica.
    format!(
        "order {order_id} is paid, with {:?} to spare\n",
        lease.remaining()
    )
}
