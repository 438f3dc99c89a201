//! The hold of a request, and what a loss of its lease does.

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

/// The policy for a request whose lease is lost while the inner service works on it.
///
/// # Examples
///
/// ```
/// # use axum::{Router, body::{Body, to_bytes}, http::Request, routing::post};
/// # use redlock_core::{MemoryNode, Redlock};
/// # use redlock_tower::{LossPolicy, PathKey, RedlockLayer, RequestLease};
/// # use tower::ServiceExt;
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let nodes = [MemoryNode::new(), MemoryNode::new(), MemoryNode::new()];
/// # let redlock = Redlock::builder().nodes(nodes.clone()).virtual_time().build().await?;
/// # let ask = || Request::post("/orders/42/pay").body(Body::empty()).expect("it is valid");
/// let lock = RedlockLayer::builder(redlock)
///     .on_lost(LossPolicy::Signal)
///     .build(PathKey::new("order", "order_id"))?;
/// let pay = post(async move |lease: RequestLease| {
///     nodes.iter().for_each(MemoryNode::drop_locks); // an operator deletes the keys
///     let why = lease.lost().await;
///     format!("went on, though {why}")
/// });
/// let app: Router = Router::new().route("/orders/{order_id}/pay", pay.route_layer(lock));
/// let answer = app.oneshot(ask()).await?;
/// assert!(answer.status().is_success());
/// assert!(to_bytes(answer.into_body(), 200).await?.starts_with(b"went on"));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum LossPolicy {
    /// The layer drops the inner service's future, or the response's body, before another request can get the resource,
    /// and refuses the request.
    ///
    /// A body that the server does not poll, because its client reads nothing, is dropped with the next poll or with the
    /// connection.
    #[default]
    Abort,
    /// The request goes on, and only [`Lease::lost`](redlock_core::Lease::lost) reports the loss.
    ///
    /// This fits work that may safely finish, because the resource refuses old fencing tokens or because the lock only
    /// avoids double work.
    Signal,
}
