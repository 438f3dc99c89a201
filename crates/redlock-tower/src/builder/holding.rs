//! The settings for the time in which requests hold their locks.

use std::{sync::Arc, time::Duration};

use http::request::Parts;

use super::RedlockLayerBuilder;
use crate::{Hold, OnLost};

impl RedlockLayerBuilder {
    /// Sets how long the nodes keep the key without a renewal; by default, the client's time to live.
    ///
    /// The client renews the lease for as long as the request holds it.
    /// So the time to live bounds how long a crashed replica keeps other replicas out, and not how long a handler may
    /// run.
    /// Range: from 100 ms to the client's [`max_ttl`](redlock_core::Redlock::max_ttl), in whole milliseconds.
    ///
    /// # Examples
    ///
    /// ```
    /// # use axum::{Router, body::Body, http::Request, routing::post};
    /// # use redlock_core::{Redlock};
    /// # use redlock_tower::{PathKey, RedlockLayer, RequestLease};
    /// # use std::time::Duration;
    /// # use tower::ServiceExt;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let redlock = Redlock::builder().in_memory_nodes(3).build().await?;
    /// # let ask = || Request::post("/orders/42/pay").body(Body::empty()).expect("it is valid");
    /// let lock = RedlockLayer::builder(redlock)
    ///     .ttl(Duration::from_secs(2))
    ///     .build(PathKey::new("order", "order_id"))?;
    /// let pay = post(async |lease: RequestLease| {
    ///     // Renewed from here on, for as long as the handler takes.
    ///     assert!(lease.remaining() <= Duration::from_secs(2));
    /// });
    /// let app: Router = Router::new().route("/orders/{order_id}/pay", pay.route_layer(lock));
    /// assert!(app.oneshot(ask()).await?.status().is_success());
    /// # Ok(())
    /// # }
    /// ```
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.options = self.options.ttl(ttl);
        self
    }

    /// Sets how long the nodes keep a request's key without a renewal, from the request's head; where `ttl` returns
    /// `None`, [`ttl`](Self::ttl) holds.
    ///
    /// A time to live that the client cannot grant is a mistake in the program: the layer answers with 500.
    /// Within a process, a lease passes from one request to the next without a call to the nodes only if both ask for
    /// the same time to live.
    ///
    /// # Examples
    ///
    /// ```
    /// # use axum::{Router, body::Body, http::{Method, Request}, routing::delete};
    /// # use redlock_core::Redlock;
    /// # use redlock_tower::{PathKey, RedlockLayer, RequestLease};
    /// # use std::time::Duration;
    /// # use tower::ServiceExt;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let redlock = Redlock::builder().in_memory_nodes(3).build().await?;
    /// // Others get an account soon after a replica crashed, but for one that was erasing it.
    /// let lock = RedlockLayer::builder(redlock)
    ///     .ttl(Duration::from_secs(2))
    ///     .ttl_with(|head| (head.method == Method::DELETE).then_some(Duration::from_secs(10)))
    ///     .build(PathKey::new("account", "id"))?;
    /// let erase = delete(async |lease: RequestLease| assert!(lease.remaining() > Duration::from_secs(2)));
    /// let app: Router = Router::new().route("/accounts/{id}", erase.route_layer(lock));
    /// assert!(app.oneshot(Request::delete("/accounts/7").body(Body::empty())?).await?.status().is_success());
    /// # Ok(())
    /// # }
    /// ```
    pub fn ttl_with<F>(mut self, ttl: F) -> Self
    where
        F: Fn(&Parts) -> Option<Duration> + Send + Sync + 'static,
    {
        self.per_request.ttl = Some(Arc::new(ttl));
        self
    }

    /// Sets until when a request holds its lock; [`Hold::Body`] by default.
    ///
    /// # Examples
    ///
    /// ```
    /// # use axum::{Router, body::Body, http::Request, routing::post};
    /// # use redlock_core::{Redlock};
    /// # use redlock_tower::{Hold, PathKey, RedlockLayer};
    /// # use tower::ServiceExt;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let redlock = Redlock::builder().in_memory_nodes(3).build().await?;
    /// # let ask = || Request::post("/orders/42/pay").body(Body::empty()).expect("it is valid");
    /// let app = |hold| {
    ///     let lock = RedlockLayer::builder(redlock.clone()).hold(hold).build(PathKey::new("order", "order_id"))?;
    ///     let pay = post(async || "paid").route_layer(lock);
    ///     Ok::<_, redlock_tower::ConfigError>(Router::<()>::new().route("/orders/{order_id}/pay", pay))
    /// };
    /// let unread = app(Hold::Body)?.oneshot(ask()).await?;
    /// assert!(redlock.try_acquire("order:42").await.is_err(), "until its body is read or dropped");
    /// drop(unread);
    /// let unread = app(Hold::Response)?.oneshot(ask()).await?;
    /// assert!(redlock.try_acquire("order:42").await.is_ok());
    /// # drop(unread);
    /// # Ok(())
    /// # }
    /// ```
    pub fn hold(mut self, hold: Hold) -> Self {
        self.hold = hold;
        self
    }

    /// Sets the longest time for which a request holds its lock, however long the handler runs and however slowly a
    /// client reads.
    /// After this time the lease is lost, and [`on_lost`](Self::on_lost) decides what happens.
    ///
    /// While a client reads nothing at all, a server does not poll the body, so the body cannot release the lock.
    /// The next request then gets the lock up to one [time to live](Self::ttl) later.
    ///
    /// A lock with such an end does not pass to the next request within the process without a call to the nodes.
    /// Default: no limit.
    ///
    /// # Examples
    ///
    /// ```
    /// # use axum::{Router, body::Body, http::{Request, StatusCode}, routing::post};
    /// # use redlock_core::{Redlock};
    /// # use redlock_tower::{PathKey, RedlockLayer, Rejection, RejectionKind};
    /// # use std::time::Duration;
    /// # use tower::ServiceExt;
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let redlock = Redlock::builder().in_memory_nodes(3).virtual_time().build().await?;
    /// # let ask = || Request::post("/orders/42/pay").body(Body::empty()).expect("it is valid");
    /// let lock = RedlockLayer::builder(redlock)
    ///     .max_hold(Duration::from_secs(30))
    ///     .build(PathKey::new("order", "order_id"))?;
    /// let stuck = post(async || std::future::pending::<()>().await);
    /// let app: Router = Router::new().route("/orders/{order_id}/pay", stuck.route_layer(lock));
    ///
    /// let answer = app.oneshot(ask()).await?; // after half a minute
    /// assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE);
    /// let rejection = answer.extensions().get::<Rejection>().expect("it was cut off");
    /// assert_eq!(rejection.kind(), RejectionKind::Lost);
    /// # Ok(())
    /// # }
    /// ```
    pub fn max_hold(mut self, max_hold: Duration) -> Self {
        self.options = self.options.max_hold(max_hold);
        self
    }

    /// Sets what happens to a request whose lease is lost; [`OnLost::Abort`] by default.
    ///
    /// # Examples
    ///
    /// ```
    /// # use axum::{Router, body::Body, http::Request, routing::post};
    /// # use redlock_core::{LossReason, Redlock};
    /// # use redlock_tower::{OnLost, PathKey, RedlockLayer, RequestLease};
    /// # use std::time::Duration;
    /// # use tower::ServiceExt;
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let redlock = Redlock::builder().in_memory_nodes(3).virtual_time().build().await?;
    /// # let ask = || Request::post("/orders/42/pay").body(Body::empty()).expect("it is valid");
    /// let lock = RedlockLayer::builder(redlock)
    ///     .on_lost(OnLost::Signal)
    ///     .max_hold(Duration::from_secs(30))
    ///     .build(PathKey::new("order", "order_id"))?;
    /// let pay = post(async |lease: RequestLease| {
    ///     let why = lease.lost().await; // and the handler goes on
    ///     assert_eq!(why, LossReason::MaxHold);
    ///     "unlocked by now"
    /// });
    /// let app: Router = Router::new().route("/orders/{order_id}/pay", pay.route_layer(lock));
    /// assert!(app.oneshot(ask()).await?.status().is_success());
    /// # Ok(())
    /// # }
    /// ```
    pub fn on_lost(mut self, on_lost: OnLost) -> Self {
        self.on_lost = on_lost;
        self
    }

    /// Lets up to `slots` requests with the same key run at once, on all replicas together: 1 to 64.
    ///
    /// Default: one, under a lock on the key itself.
    /// With slots, a request holds one of [the key's slots](redlock_core::Slots), which is a lock on another name: the
    /// layer's key with `#` and a number.
    /// So a layer without slots does not exclude these requests.
    /// Set the same number on all replicas: the nodes refuse requests of a layer with another number than the one last
    /// used, for a time to live after that, and the layer answers with 503.
    /// So do two layers around each other that give the same key different numbers.
    /// A resource cannot compare the tokens of different slots: a resource that [fences](crate::guide::fencing) needs a
    /// layer without slots.
    /// A request that already holds a slot of a key, through an outer layer with the same number, uses that slot.
    /// A key extractor that returns several keys is a mistake in the program: the layer answers with 500.
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
    /// # let ask = || Request::post("/tenants/7/export").body(Body::empty()).expect("it is valid");
    /// // Two exports of a tenant at a time, on whatever replicas.
    /// let lock = RedlockLayer::builder(redlock.clone())
    ///     .slots(2)
    ///     .wait(Wait::Never)
    ///     .build(PathKey::new("tenant", "tenant_id"))?;
    /// let export = post(async || "exported").route_layer(lock);
    /// let app: Router = Router::new().route("/tenants/{tenant_id}/export", export);
    ///
    /// let exports = redlock.slots("tenant:7", 2)?;
    /// let one = exports.acquire().await?;
    /// assert_eq!(app.clone().oneshot(ask()).await?.status(), StatusCode::OK);
    /// let two = exports.acquire().await?;
    /// assert_eq!(app.oneshot(ask()).await?.status(), StatusCode::CONFLICT);
    /// # drop((one, two));
    /// # Ok(())
    /// # }
    /// ```
    pub fn slots(mut self, slots: usize) -> Self {
        self.slots = Some(slots);
        self
    }

    /// Lets requests share what they lock if `shares` returns true for them; all other requests hold it alone.
    ///
    /// The layer calls `shares` with the head of each request that it may lock, before it extracts the key.
    /// Requests that read run together, on all replicas.
    /// A request that writes waits for the readers before it, and keeps later readers waiting, as
    /// [`Redlock::acquire_shared`](redlock_core::Redlock::acquire_shared) describes.
    /// A request that already shares a key, through an outer layer, and asks to hold it alone is a mistake in the
    /// program: the layer answers with 500.
    /// A layer has this or [`slots`](Self::slots), not both.
    /// Default: each request holds alone what it locks.
    ///
    /// # Examples
    ///
    /// ```
    /// # use axum::{Router, body::Body, http::{Request, StatusCode}, routing::get};
    /// # use redlock_core::{Redlock, Wait};
    /// # use redlock_tower::{PathKey, RedlockLayer};
    /// # use tower::ServiceExt;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let redlock = Redlock::builder().in_memory_nodes(3).build().await?;
    /// let lock = RedlockLayer::builder(redlock.clone())
    ///     .shared_when(|head| head.method.is_safe())
    ///     .wait(Wait::Never)
    ///     .build(PathKey::new("order", "order_id"))?;
    /// let order = get(async || "an order").put(async || "changed").route_layer(lock);
    /// let app: Router = Router::new().route("/orders/{order_id}", order);
    ///
    /// let reader = redlock.acquire_shared("order:42").await?;
    /// let ask = |method| Request::builder().method(method).uri("/orders/42").body(Body::empty());
    /// assert_eq!(app.clone().oneshot(ask("GET")?).await?.status(), StatusCode::OK);
    /// assert_eq!(app.oneshot(ask("PUT")?).await?.status(), StatusCode::CONFLICT);
    /// # drop(reader);
    /// # Ok(())
    /// # }
    /// ```
    pub fn shared_when<F>(mut self, shares: F) -> Self
    where
        F: Fn(&Parts) -> bool + Send + Sync + 'static,
    {
        self.per_request.shares = Some(Arc::new(shares));
        self
    }
}
