//! Two replicas of a service, of which one pays an order at a time: `cargo run --features axum --example orders`.

use std::{error::Error, time::Duration};

use axum::{
    Router,
    body::{Body, to_bytes},
    extract::Path,
    http::Request,
    routing::post,
};
use redlock_core::{MemoryNode, Redlock};
use redlock_tower::{PathKey, RedlockLayer, RequestLease};
use tokio::{
    join,
    time::{Instant, sleep},
};
use tower::ServiceExt;

async fn pay(Path(order_id): Path<u64>, lease: RequestLease) -> String {
    // No other request for this order runs now, on any replica.
    sleep(WORK).await;
    format!("order {order_id} is paid, with token {}", lease.token())
}

fn app(redlock: Redlock) -> Router {
    let order = PathKey::new("order", "order_id").parsed::<u64>(); // as the handler reads it
    let one_per_order = RedlockLayer::new(redlock, order);
    Router::new().route(
        "/orders/{order_id}/pay",
        post(pay).route_layer(one_per_order),
    )
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let nodes = [MemoryNode::new(), MemoryNode::new(), MemoryNode::new()];
    let replicas = [
        app(Redlock::builder().nodes(nodes.clone()).build().await?),
        app(Redlock::builder().nodes(nodes).build().await?),
    ];
    let began = Instant::now();
    let [one, other] = replicas.map(|replica| async {
        let request = Request::post("/orders/7/pay").body(Body::empty())?;
        let answer = replica.oneshot(request).await?;
        assert!(answer.status().is_success());
        let body = to_bytes(answer.into_body(), 1_000).await?;
        Ok::<_, Box<dyn Error>>(String::from_utf8_lossy(&body).into_owned())
    });
    let (one, other) = join!(one, other);
    eprintln!("{}\n{}", one?, other?);
    assert!(began.elapsed() >= 2 * WORK, "one after the other");
    Ok(())
}

const WORK: Duration = Duration::from_millis(50);

#[test]
fn it_runs() -> Result<(), Box<dyn std::error::Error>> {
    main()
}
