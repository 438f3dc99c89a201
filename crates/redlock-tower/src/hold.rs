/// Until when a request holds its lock.
///
/// # Examples
///
/// ```
/// # use axum::{Router, body::Body, http::Request, routing::post};
/// # use redlock_core::Redlock;
/// # use redlock_tower::{Hold, PathKey, RedlockLayer};
/// # use tower::ServiceExt;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let redlock = Redlock::builder().in_memory_nodes(3).build().await?;
/// # let ask = || Request::post("/orders/42/pay").body(Body::empty()).expect("it is valid");
/// let lock = RedlockLayer::builder(redlock.clone()).hold(Hold::Response).build(PathKey::new("order", "order_id"))?;
/// let app: Router = Router::new().route("/orders/{order_id}/pay", post(async || "paid").route_layer(lock));
/// let unread = app.oneshot(ask()).await?;
/// assert!(redlock.try_acquire("order:42").await.is_ok(), "though the body is still to be sent");
/// # drop(unread);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum Hold {
    /// The request holds its lock until the response's body has ended: by its last frame, by an error or by a drop.
    ///
    /// If a client reads slowly, its request holds the lock for as long as the client reads, or for
    /// [`max_hold`](redlock_core::AcquireOptions::max_hold) at most.
    #[default]
    Body,
    /// The request holds its lock until the response's head is there.
    ///
    /// This fits bodies that only report work which is already done.
    Response,
}
