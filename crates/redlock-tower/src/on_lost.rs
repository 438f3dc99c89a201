/// The policy for a request whose lease is lost while the inner service works on it.
///
/// # Examples
///
/// ```
/// # use axum::{Router, body::{Body, to_bytes}, http::Request, routing::post};
/// # use redlock_core::{MemoryNode, Redlock};
/// # use redlock_tower::{OnLost, PathKey, RedlockLayer, RequestLease};
/// # use tower::ServiceExt;
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let nodes = [MemoryNode::new(), MemoryNode::new(), MemoryNode::new()];
/// # let redlock = Redlock::builder().nodes(nodes.clone()).virtual_time().build().await?;
/// # let ask = || Request::post("/orders/42/pay").body(Body::empty()).expect("it is valid");
/// let lock = RedlockLayer::builder(redlock)
///     .on_lost(OnLost::Signal)
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
pub enum OnLost {
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
