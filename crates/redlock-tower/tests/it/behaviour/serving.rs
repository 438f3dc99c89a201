//! Behind `axum::serve`, which calls `Layer::layer` once per connection.

use std::pin::Pin;

use axum::{Router, routing::get};
use redlock_core::AcquireOptions;
use redlock_tower::RedlockLayer;
use tokio::task::JoinSet;

use crate::behaviour::kit::{
    Answer, Gauge, KEY, LONG, Nodes, Server, by_header, in_time, let_others_run, request,
};

const CONNECTIONS: usize = 8;
const REQUESTS: usize = 5;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_exclude_each_other_wherever_the_layer_is() {
    let positions: [fn(Gauge, RedlockLayer<_>) -> Router; 3] = [
        |gauge, layer| Router::new().route("/", get(handler(gauge)).layer(layer)),
        |gauge, layer| Router::new().route("/", get(handler(gauge))).layer(layer),
        |gauge, layer| {
            Router::new()
                .route("/", get(handler(gauge)))
                .route_layer(layer)
        },
    ];
    for position in positions {
        let redlock = Nodes::new().client().build().await.unwrap();
        let layer = RedlockLayer::builder(redlock)
            .options(AcquireOptions::new().wait(LONG))
            .build(by_header())
            .unwrap();
        let gauge = Gauge::default();
        let server = Server::start(position(gauge.clone(), layer)).await;
        let mut clients = JoinSet::new();
        for _ in 0..CONNECTIONS {
            let mut connection = server.connect().await;
            clients.spawn(async move {
                for _ in 0..REQUESTS {
                    let answer = Answer::of(connection.send(request(KEY)).await).await;
                    assert_eq!(answer.status, 200);
                }
            });
        }
        in_time(clients.join_all()).await;
        assert_eq!(
            (gauge.peak(KEY), gauge.total(KEY)),
            (1, CONNECTIONS * REQUESTS)
        );
    }
}

type Handler = Pin<Box<dyn Future<Output = &'static str> + Send>>;

fn handler(gauge: Gauge) -> impl Fn() -> Handler + Clone + Send + Sync + 'static {
    move || {
        let gauge = gauge.clone();
        Box::pin(async move {
            let _inside = gauge.enter(KEY);
            let_others_run().await;
            "ok"
        })
    }
}
