use std::{fmt, sync::Arc};

use redlock_core::{AcquireOptions, Redlock};
use tower_layer::Layer;

use crate::{
    OnLost, RedlockService, meter,
    service::{Parts, Rules},
    shared::Shared,
    terms::Terms,
};

/// Lets one request per resource at a time through to the inner service, across every replica.
///
/// `K` names what a request locks; see [`KeyExtractor`](crate::KeyExtractor).
/// The [crate page](crate) explains the layer.
///
/// The client and this value have all state, behind one `Arc`.
/// In axum, add the layer with [`MethodRouter::route_layer`], as in `post(handler).route_layer(lock)`: see [where the
/// layer goes](crate::guide::placement).
///
/// [`Layer::layer`] only makes another handle to this state, because a server such as `axum::serve` may call it for
/// every connection.
///
/// [`MethodRouter::route_layer`]: https://docs.rs/axum/0.8/axum/routing/method_routing/struct.MethodRouter.html#method.route_layer
///
/// # Examples
///
/// Code can name the type:
///
/// ```
/// use redlock_core::Redlock;
/// use redlock_tower::{HeaderKey, RedlockLayer};
///
/// fn one_per_account(redlock: Redlock) -> RedlockLayer<HeaderKey> {
///     let header = http::HeaderName::from_static("x-account");
///     RedlockLayer::new(redlock, HeaderKey::new("account", header))
/// }
/// ```
#[must_use = "a layer does nothing until it is put around a service"]
pub struct RedlockLayer<K> {
    parts: Arc<Parts<K>>,
}

impl<K> RedlockLayer<K> {
    /// Makes a layer that locks what `key` names, with the client's own time to live and wait.
    ///
    /// # Examples
    ///
    /// ```
    /// # use axum::{Router, body::Body, http::{Request, StatusCode}, routing::post};
    /// # use redlock_core::Redlock;
    /// # use redlock_tower::{PathKey, RedlockLayer};
    /// # use tower::ServiceExt;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let redlock = Redlock::builder().in_memory_nodes(3).build().await?;
    /// # let ask = || Request::post("/orders/42/pay").body(Body::empty()).expect("it is valid");
    /// let lock = RedlockLayer::new(redlock, PathKey::new("order", "order_id"));
    /// let app: Router = Router::new().route("/orders/{order_id}/pay", post(async || "paid").route_layer(lock));
    /// assert_eq!(app.oneshot(ask()).await?.status(), StatusCode::OK);
    /// # Ok(())
    /// # }
    /// ```
    pub fn new(redlock: Redlock, key: K) -> Self {
        let terms = Terms::new(redlock, AcquireOptions::new(), OnLost::default());
        let shared = Shared { terms, key };
        Self::from_parts(shared, Rules::default())
    }

    pub(crate) fn from_parts(shared: Shared<K>, mut rules: Rules) -> Self {
        meter::describe();
        rules.answers.redlock = Some(shared.terms.redlock.clone());
        Self {
            parts: Arc::new(Parts {
                shared: Arc::new(shared),
                rules,
                placement: Arc::default(),
            }),
        }
    }
}

impl<S, K> Layer<S> for RedlockLayer<K> {
    type Service = RedlockService<S, K>;

    fn layer(&self, inner: S) -> Self::Service {
        RedlockService::new(inner, Arc::clone(&self.parts))
    }
}

// By hand, because a derived one would ask for `K: Clone`.
impl<K> Clone for RedlockLayer<K> {
    fn clone(&self) -> Self {
        Self {
            parts: Arc::clone(&self.parts),
        }
    }
}

impl<K> fmt::Debug for RedlockLayer<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedlockLayer")
            .field("shared", &self.parts.shared)
            .field("hold", &self.parts.rules.hold)
            .field("answers", &self.parts.rules.answers)
            .finish()
    }
}
