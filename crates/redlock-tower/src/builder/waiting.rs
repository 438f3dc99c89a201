//! The settings for the time in which requests wait.

use std::{sync::Arc, time::Duration};

use http::request::Parts;
use redlock_core::Wait;

use super::RedlockLayerBuilder;

impl RedlockLayerBuilder {
    /// Sets how long a request waits while another request holds its resource; by default, the client's wait.
    ///
    /// A wait is always finite, and at most a day.
    ///
    /// # Examples
    ///
    /// ```
    /// # use axum::{Router, body::Body, http::{Request, StatusCode}, routing::post};
    /// # use redlock_core::{Redlock, Wait};
    /// # use redlock_tower::{PathKey, RedlockLayer};
    /// # use tower::ServiceExt;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let redlock = Redlock::builder().in_memory_nodes(3).build().await?;
    /// # let ask = || Request::post("/orders/42/pay").body(Body::empty()).expect("it is valid");
    /// let lock = RedlockLayer::builder(redlock.clone()).wait(Wait::Never).build(PathKey::new("order", "order_id"))?;
    /// let app: Router = Router::new().route("/orders/{order_id}/pay", post(async || "paid").route_layer(lock));
    ///
    /// let another = redlock.acquire("order:42").await?;
    /// assert_eq!(app.clone().oneshot(ask()).await?.status(), StatusCode::CONFLICT);
    /// another.release().await?;
    /// assert_eq!(app.oneshot(ask()).await?.status(), StatusCode::OK);
    /// # Ok(())
    /// # }
    /// ```
    pub fn wait(mut self, wait: Wait) -> Self {
        self.options = self.options.wait(wait);
        self
    }

    /// Sets how long a request waits, from the request's head; where `wait` returns `None`, [`wait`](Self::wait) holds.
    ///
    /// The layer calls `wait` for each request that it may lock, before it extracts the key.
    /// If clients choose how long they wait, bound their choice: each waiting request takes a place in the queue.
    ///
    /// # Examples
    ///
    /// Browsers are answered at once, and a batch that asks for it waits for its turn:
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use axum::{Router, body::Body, http::{Request, StatusCode}, routing::post};
    /// use redlock_core::{Redlock, Wait};
    /// use redlock_tower::{PathKey, RedlockLayer};
    /// use std::time::Duration;
    /// use tower::ServiceExt;
    ///
    /// let redlock = Redlock::builder().in_memory_nodes(3).build().await?;
    /// let lock = RedlockLayer::builder(redlock.clone())
    ///     .wait(Wait::Never)
    ///     .wait_with(|head| {
    ///         let is_batch = head.headers.contains_key("x-batch");
    ///         is_batch.then_some(Wait::UpTo(Duration::from_secs(30)))
    ///     })
    ///     .build(PathKey::new("order", "order_id").parsed::<u64>())?;
    /// let pay = post(async || "paid").route_layer(lock);
    /// let app: Router = Router::new().route("/orders/{order_id}/pay", pay);
    ///
    /// let another = redlock.acquire("order:42").await?;
    /// let browser = Request::post("/orders/42/pay").body(Body::empty())?;
    /// assert_eq!(app.clone().oneshot(browser).await?.status(), StatusCode::CONFLICT);
    ///
    /// let batch = Request::post("/orders/42/pay").header("x-batch", "7").body(Body::empty())?;
    /// let (answer, released) = tokio::join!(app.oneshot(batch), another.release());
    /// assert_eq!(answer?.status(), StatusCode::OK);
    /// # released?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn wait_with<F>(mut self, wait: F) -> Self
    where
        F: Fn(&Parts) -> Option<Wait> + Send + Sync + 'static,
    {
        self.per_request.wait = Some(Arc::new(wait));
        self
    }

    /// Sets how long an outage of the nodes may last before the layer refuses requests at once; by default, the
    /// client's setting, which is [2 s](redlock_core::RedlockBuilder::quorum_wait) by default.
    ///
    /// # Examples
    ///
    /// ```
    /// # use axum::{Router, body::Body, http::{Request, StatusCode}, routing::post};
    /// # use redlock_core::{MemoryNode, Redlock, Wait};
    /// # use redlock_tower::{PathKey, RedlockLayer};
    /// # use std::time::Duration;
    /// # use tokio::time::Instant;
    /// # use tower::ServiceExt;
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let nodes = [MemoryNode::new(), MemoryNode::new(), MemoryNode::new()];
    /// # let redlock = Redlock::builder().nodes(nodes.clone()).virtual_time().build().await?;
    /// # let ask = || Request::post("/orders/42/pay").body(Body::empty()).expect("it is valid");
    /// // A minute for another holder, and two seconds for the nodes.
    /// let lock = RedlockLayer::builder(redlock)
    ///     .wait(Wait::UpTo(Duration::from_secs(60)))
    ///     .quorum_wait(Duration::from_secs(2))
    ///     .build(PathKey::new("order", "order_id"))?;
    /// let app: Router = Router::new().route("/orders/{order_id}/pay", post(async || "paid").route_layer(lock));
    ///
    /// nodes.iter().for_each(MemoryNode::stop);
    /// let began = Instant::now();
    /// assert_eq!(app.oneshot(ask()).await?.status(), StatusCode::SERVICE_UNAVAILABLE);
    /// assert!(began.elapsed() < Duration::from_secs(5));
    /// # Ok(())
    /// # }
    /// ```
    pub fn quorum_wait(mut self, quorum_wait: Duration) -> Self {
        self.options = self.options.quorum_wait(quorum_wait);
        self
    }

    /// Sets how many requests of this replica may wait for one resource; the layer answers the next one with 503.
    ///
    /// A request that makes one attempt ([`Wait::Never`](redlock_core::Wait::Never)) does not wait, and is answered as one
    /// whose wait is over, with 409.
    /// Default: the client's setting, which is 1,024 by default.
    /// Callers of the client that do not come through this layer count as well.
    ///
    /// # Examples
    ///
    /// ```
    /// # use axum::{Router, body::Body, http::{Request, StatusCode}, routing::post};
    /// # use redlock_core::{Redlock};
    /// # use redlock_tower::{PathKey, RedlockLayer, Rejection, RejectionKind};
    /// # use tower::ServiceExt;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let redlock = Redlock::builder().in_memory_nodes(3).build().await?;
    /// # let ask = || Request::post("/orders/42/pay").body(Body::empty()).expect("it is valid");
    /// let lock = RedlockLayer::builder(redlock.clone()).max_waiters_per_key(0).build(PathKey::new("order", "order_id"))?;
    /// let app: Router = Router::new().route("/orders/{order_id}/pay", post(async || "paid").route_layer(lock));
    ///
    /// let another = redlock.acquire("order:42").await?;
    /// let refused = app.oneshot(ask()).await?; // at once
    /// assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
    /// let rejection = refused.extensions().get::<Rejection>().expect("it was refused");
    /// assert_eq!(rejection.kind(), RejectionKind::Overloaded);
    /// # drop(another);
    /// # Ok(())
    /// # }
    /// ```
    pub fn max_waiters_per_key(mut self, waiters: usize) -> Self {
        self.options = self.options.max_waiters_per_key(waiters);
        self
    }

    /// Sets how many requests of this replica may wait in all; the layer answers the next one that would have to wait
    /// with 503.
    ///
    /// Default: the client's setting, which is 65,536 by default.
    /// Callers of the client that do not come through this layer count as well.
    ///
    /// # Examples
    ///
    /// ```
    /// # use axum::{Router, body::Body, http::{Request, StatusCode}, routing::post};
    /// # use redlock_core::{Redlock};
    /// # use redlock_tower::{PathKey, RedlockLayer, Rejection, RejectionKind};
    /// # use tower::ServiceExt;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let redlock = Redlock::builder().in_memory_nodes(3).build().await?;
    /// # let ask = || Request::post("/orders/42/pay").body(Body::empty()).expect("it is valid");
    /// let lock = RedlockLayer::builder(redlock.clone()).max_waiters(0).build(PathKey::new("order", "order_id"))?;
    /// let app: Router = Router::new().route("/orders/{order_id}/pay", post(async || "paid").route_layer(lock));
    ///
    /// let another = redlock.acquire("order:42").await?;
    /// let refused = app.clone().oneshot(ask()).await?; // at once
    /// assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
    /// let rejection = refused.extensions().get::<Rejection>().expect("it was refused");
    /// assert_eq!(rejection.kind(), RejectionKind::Overloaded);
    /// // This one need not wait, so no bound concerns it.
    /// let free = Request::post("/orders/43/pay").body(Body::empty())?;
    /// assert_eq!(app.oneshot(free).await?.status(), StatusCode::OK);
    /// # drop(another);
    /// # Ok(())
    /// # }
    /// ```
    pub fn max_waiters(mut self, waiters: usize) -> Self {
        self.options = self.options.max_waiters(waiters);
        self
    }
}
