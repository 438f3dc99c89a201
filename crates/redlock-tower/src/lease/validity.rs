//! The methods that say how long the lease may be relied on.

use std::time::Duration;

use redlock_core::{LeaseLost, LossReason};

use super::RequestLease;

impl RequestLease {
    /// Returns whether the lease can be relied on at this moment.
    ///
    /// # Examples
    ///
    /// ```
    /// # use axum::{Router, body::Body, http::Request, routing::post};
    /// # use redlock_core::Redlock;
    /// # use redlock_tower::{PathKey, RedlockLayer, RequestLease};
    /// # use tower::ServiceExt;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let redlock = Redlock::builder().in_memory_nodes(3).build().await?;
    /// # let lock = RedlockLayer::new(redlock.clone(), PathKey::new("order", "order_id"));
    /// let pay = async |lease: RequestLease| {
    ///     for page in 0..3 {
    ///         // Work that blocks its thread cannot be dropped: it asks before each step that matters.
    ///         if !lease.is_held() {
    ///             return "lost";
    ///         }
    ///         # let _ = page;
    ///     }
    ///     assert!(!lease.remaining().is_zero());
    ///     "paid"
    /// };
    /// # let app: Router = Router::new().route("/orders/{order_id}/pay", post(pay).route_layer(lock));
    /// # let request = Request::post("/orders/42/pay").body(Body::empty())?;
    /// # assert!(app.oneshot(request).await?.status().is_success());
    /// # Ok(())
    /// # }
    /// ```
    pub fn is_held(&self) -> bool {
        self.lease.is_held()
    }

    /// Returns how much longer the lease is valid; zero once it is lost or released.
    ///
    /// The client renews the lease for as long as the request holds it, so the remaining time grows again.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
    /// # use axum::{Router, body::Body, http::Request, routing::post};
    /// # use redlock_tower::{PathKey, RedlockLayer, RequestLease};
    /// # use tower::ServiceExt;
    /// # let lock = RedlockLayer::new(redlock.clone(), PathKey::new("order", "order_id"));
    /// use std::time::Duration;
    ///
    /// let pay = async |lease: RequestLease| {
    ///     // The bank takes three seconds at most, so the call begins only with time to spare.
    ///     if lease.remaining() > Duration::from_secs(4) { "paid" } else { "try again" }
    /// };
    /// # let app: Router = Router::new().route("/orders/{order_id}/pay", post(pay).route_layer(lock));
    /// # let request = Request::post("/orders/42/pay").body(Body::empty())?;
    /// # assert!(app.oneshot(request).await?.status().is_success());
    /// # Ok(())
    /// # }
    /// ```
    pub fn remaining(&self) -> Duration {
        self.lease.remaining()
    }

    /// Waits until the lease can no longer be relied on, and says why, as [`Lease::lost`](redlock_core::Lease::lost)
    /// does; [`OnLost`](crate::OnLost) has an example.
    ///
    /// # Panics
    ///
    /// If the future is polled outside a tokio runtime with its timer enabled.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future has no effect.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
    /// # use axum::{Router, body::Body, http::Request, routing::post};
    /// # use redlock_tower::{OnLost, PathKey, RedlockLayer, RequestLease};
    /// # use tower::ServiceExt;
    /// # let lock = RedlockLayer::builder(redlock.clone())
    /// #     .on_lost(OnLost::Signal)
    /// #     .build(PathKey::new("order", "order_id"))?;
    /// let pay = async |lease: RequestLease| {
    ///     tokio::select! {
    ///         biased;
    ///         reason = lease.lost() => format!("the payment is given up: {reason}"),
    ///         () = async { /* the payment */ } => "paid".to_owned(),
    ///     }
    /// };
    /// # let app: Router = Router::new().route("/orders/{order_id}/pay", post(pay).route_layer(lock));
    /// # let request = Request::post("/orders/42/pay").body(Body::empty())?;
    /// # assert!(app.oneshot(request).await?.status().is_success());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn lost(&self) -> LossReason {
        self.lease.lost().await
    }

    /// Returns whether the lease is in danger, as defined by
    /// [`Lease::is_endangered`](redlock_core::Lease::is_endangered).
    pub fn is_endangered(&self) -> bool {
        self.lease.is_endangered()
    }

    /// Waits until the lease is in danger: its renewal fails and a third of its time to live is left, as defined by
    /// [`Lease::endangered`](redlock_core::Lease::endangered).
    ///
    /// # Panics
    ///
    /// If the future is polled outside a tokio runtime with its timer enabled.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future has no effect.
    ///
    /// # Examples
    ///
    /// ```
    /// # use axum::{Router, body::Body, http::Request, routing::post};
    /// # use redlock_core::Redlock;
    /// # use redlock_tower::{PathKey, RedlockLayer, RequestLease};
    /// # use tower::ServiceExt;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let redlock = Redlock::builder().in_memory_nodes(3).build().await?;
    /// # let lock = RedlockLayer::new(redlock.clone(), PathKey::new("order", "order_id"));
    /// let pay = async |lease: RequestLease| {
    ///     for batch in 0..3 {
    ///         tokio::select! {
    ///             biased;
    ///             () = lease.endangered() => break, // begin no other batch
    ///             () = async { /* a batch */ } => {}
    ///         }
    ///         # let _ = batch;
    ///     }
    ///     assert!(!lease.is_endangered());
    /// };
    /// # let app: Router = Router::new().route("/orders/{order_id}/pay", post(pay).route_layer(lock));
    /// # let request = Request::post("/orders/42/pay").body(Body::empty())?;
    /// # assert!(app.oneshot(request).await?.status().is_success());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn endangered(&self) {
        self.lease.endangered().await;
    }

    /// Runs `work` for as long as the lease is valid, as [`Lease::run`](redlock_core::Lease::run) does.
    ///
    /// The layer runs the whole handler in this way, unless [`OnLost::Signal`](crate::OnLost::Signal) is set.
    ///
    /// # Errors
    ///
    /// The lease was lost or released, and `work` was dropped unfinished.
    ///
    /// # Panics
    ///
    /// If the future is polled outside a tokio runtime with its timer enabled.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops `work`; the request keeps the lock.
    ///
    /// # Examples
    ///
    /// ```
    /// # use axum::{Router, body::Body, http::Request, routing::post};
    /// # use redlock_core::Redlock;
    /// # use redlock_tower::{PathKey, RedlockLayer, RequestLease};
    /// # use tower::ServiceExt;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let redlock = Redlock::builder().in_memory_nodes(3).build().await?;
    /// # let lock = RedlockLayer::new(redlock.clone(), PathKey::new("order", "order_id"));
    /// let pay = async |lease: RequestLease| {
    ///     let paid = lease.run(async { 6 * 7 }).await;
    ///     assert_eq!(paid, Ok(42));
    /// };
    /// # let app: Router = Router::new().route("/orders/{order_id}/pay", post(pay).route_layer(lock));
    /// # let request = Request::post("/orders/42/pay").body(Body::empty())?;
    /// # assert!(app.oneshot(request).await?.status().is_success());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn run<F: Future>(&self, work: F) -> Result<F::Output, LeaseLost> {
        self.lease.run(work).await
    }
}
