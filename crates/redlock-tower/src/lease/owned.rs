use std::{error::Error, fmt, future::poll_fn, ops::Deref, pin::pin};

use redlock_core::{LeaseLost, LockGuard, ReleaseError};

use crate::{LossPolicy, RequestLease};

/// A lock that [`RequestLease::into_owned`] has taken out of its request, so that it outlives the request.
///
/// Dropping it releases the lock, in whatever task it is then; the drop never blocks and needs no runtime.
/// The layer's time to live, its renewal and its [`max_hold`](redlock_core::AcquireOptions::max_hold) stay in force, and
/// [`run`](Self::run) treats a loss as the layer does.
/// With the feature `axum` it is an extractor, which takes the lock out before the handler runs.
/// If the handler does not move it elsewhere, the lock ends with the handler, and not with the response's body.
/// It derefs to its [`RequestLease`], and so to the lease.
///
/// # Examples
///
/// An upgraded connection keeps its lock for as long as the connection is open:
///
/// ```
/// use axum::{body::Body, extract::Request, response::Response};
/// use redlock_tower::OwnedLease;
///
/// async fn console(lock: OwnedLease, mut request: Request) -> Response {
///     let upgrade = hyper::upgrade::on(&mut request);
///     tokio::spawn(lock.run(async move {
///         if let Ok(socket) = upgrade.await {
///             // One console per machine; the socket is closed when the lease is lost.
/// #           drop(socket);
///         }
///     }));
///     let response = Response::builder().status(101).header("connection", "upgrade");
///     response.header("upgrade", "console").body(Body::empty()).expect("it is valid")
/// }
/// ```
#[clippy::has_significant_drop]
#[must_use = "dropping it releases the lock"]
pub struct OwnedLease {
    // Dropped after what a view of it could still guard.
    guard: LockGuard,
    lease: RequestLease,
    on_lost: LossPolicy,
}

impl RequestLease {
    /// Takes the lock out of the request, so that it outlives the request: in a spawned task, a stream, or an upgraded
    /// connection such as a WebSocket.
    ///
    /// From now on, dropping the [`OwnedLease`] releases the lock, and the end of the response does not.
    /// The rules of the layer stay in force: see [`OwnedLease::run`].
    /// While the handler runs, a loss of the lease still ends the request as the layer is set up; a release does not
    /// end it.
    ///
    /// # Errors
    ///
    /// The lock was taken out before, or the request has ended and has released it.
    ///
    /// # Examples
    ///
    /// ```
    /// use http::StatusCode;
    /// use redlock_tower::{LeaseTaken, RequestLease};
    ///
    /// async fn import(lease: RequestLease) -> Result<StatusCode, LeaseTaken> {
    ///     let lock = lease.into_owned()?;
    ///     tokio::spawn(lock.run(async { /* dropped if the lease is lost */ }));
    ///     Ok(StatusCode::ACCEPTED)
    /// }
    /// ```
    pub fn into_owned(self) -> Result<OwnedLease, LeaseTaken> {
        let cell = self.guard_cell().ok_or(LeaseTaken(()))?;
        let guard = cell.take().ok_or(LeaseTaken(()))?;
        let on_lost = cell.on_lost();
        Ok(OwnedLease {
            guard,
            lease: self,
            on_lost,
        })
    }
}

impl OwnedLease {
    /// Runs `work` under the lock, and then releases the lock.
    ///
    /// If the lease is lost, also because `max_hold` is over, this future drops `work` before another caller can get
    /// the resource.
    /// With [`LossPolicy::Signal`], `work` goes on.
    ///
    /// # Errors
    ///
    /// The lease was lost, and `work` was dropped unfinished.
    ///
    /// # Panics
    ///
    /// If the future is polled outside a tokio runtime with its timer enabled.
    /// A panic of `work` releases the lock and then reaches the caller.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future at any point, also before its first poll, drops `work` and releases the lock.
    /// It drops work that has begun before it releases the lock.
    ///
    /// # Examples
    ///
    /// ```
    /// # use axum::{Router, body::Body, http::Request, routing::post};
    /// # use redlock_core::Redlock;
    /// # use redlock_tower::{OwnedLease, PathKey, RedlockLayer};
    /// # use tower::ServiceExt;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let redlock = Redlock::builder().in_memory_nodes(3).build().await?;
    /// # let lock = RedlockLayer::new(redlock.clone(), PathKey::new("order", "order_id"));
    /// let pay = async |lock: OwnedLease| {
    ///     tokio::spawn(async move {
    ///         match lock.run(async { /* the work */ }).await {
    ///             Ok(()) => println!("done, and released"),
    ///             Err(lost) => println!("dropped: {lost}"),
    ///         }
    ///     });
    ///     "accepted"
    /// };
    /// # let app: Router = Router::new().route("/orders/{order_id}/pay", post(pay).route_layer(lock));
    /// # let request = Request::post("/orders/42/pay").body(Body::empty())?;
    /// # assert!(app.oneshot(request).await?.status().is_success());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn run<F: Future>(self, work: F) -> Result<F::Output, LeaseLost> {
        match self.on_lost {
            LossPolicy::Abort => self.lease.run(work).await,
            LossPolicy::Signal => {
                let mut work = pin!(work);
                Ok(poll_fn(|cx| self.lease.within(|| work.as_mut().poll(cx))).await)
            }
        }
    }

    /// Returns a view of the lease, which can be cloned and passed to other code.
    pub fn lease(&self) -> &RequestLease {
        &self.lease
    }

    /// Releases the lock and waits until a majority has confirmed it, as [`LockGuard::release`] does.
    ///
    /// # Errors
    ///
    /// As [`LockGuard::release`]: the caller need not act on the error.
    ///
    /// # Cancel safety
    ///
    /// As [`LockGuard::release`].
    ///
    /// # Examples
    ///
    /// ```
    /// # use axum::{Router, body::Body, http::Request, routing::post};
    /// # use redlock_core::Redlock;
    /// # use redlock_tower::{OwnedLease, PathKey, RedlockLayer};
    /// # use tower::ServiceExt;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let redlock = Redlock::builder().in_memory_nodes(3).build().await?;
    /// # let lock = RedlockLayer::new(redlock.clone(), PathKey::new("order", "order_id"));
    /// let others = redlock.clone();
    /// let pay = async move |lock: OwnedLease| {
    ///     // What must not overlap is done; the answer takes its time.
    ///     lock.release().await.expect("the nodes confirm it");
    ///     assert!(others.try_acquire("order:42").await.is_ok());
    /// };
    /// # let app: Router = Router::new().route("/orders/{order_id}/pay", post(pay).route_layer(lock));
    /// # let request = Request::post("/orders/42/pay").body(Body::empty())?;
    /// # assert!(app.oneshot(request).await?.status().is_success());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn release(self) -> Result<(), ReleaseError> {
        self.guard.release().await
    }

    /// Returns the guard itself, to which the layer's rule for a loss does not apply.
    ///
    /// # Examples
    ///
    /// ```
    /// # use axum::{Router, body::Body, http::Request, routing::post};
    /// # use redlock_core::Redlock;
    /// # use redlock_tower::{OwnedLease, PathKey, RedlockLayer};
    /// # use tower::ServiceExt;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let redlock = Redlock::builder().in_memory_nodes(3).build().await?;
    /// # let lock = RedlockLayer::new(redlock.clone(), PathKey::new("order", "order_id"));
    /// let pay = async |lock: OwnedLease| {
    ///     let guard = lock.into_guard();
    ///     // Stays locked for the rest of its time to live, as a mark that this was done.
    ///     guard.leave();
    /// };
    /// # let app: Router = Router::new().route("/orders/{order_id}/pay", post(pay).route_layer(lock));
    /// # let request = Request::post("/orders/42/pay").body(Body::empty())?;
    /// # assert!(app.oneshot(request).await?.status().is_success());
    /// assert!(redlock.try_acquire("order:42").await.is_err());
    /// # Ok(())
    /// # }
    /// ```
    pub fn into_guard(self) -> LockGuard {
        self.guard
    }
}

/// The view of the lease, whose methods read it and do not prolong it.
///
/// Two methods are not the view's: [`OwnedLease::run`] treats a loss as the layer does and releases the lock after the
/// work, and [`OwnedLease::release`] releases it.
/// A clone is a view, as that of [`OwnedLease::lease`] is: it keeps nothing locked.
impl Deref for OwnedLease {
    type Target = RequestLease;

    fn deref(&self) -> &RequestLease {
        &self.lease
    }
}

impl fmt::Debug for OwnedLease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnedLease")
            .field("lease", &self.lease)
            .field("on_lost", &self.on_lost)
            .finish_non_exhaustive()
    }
}

/// The error for a lock that cannot be taken out of its request: it was taken out before, or the request has ended.
///
/// [`RequestLease::into_owned`] has an example.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct LeaseTaken(());

impl fmt::Display for LeaseTaken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the request's lock was taken out before, or its request is over")
    }
}

impl Error for LeaseTaken {}
