use redlock_core::ResourceKeys;

use crate::{KeyError, KeyExtractor};

/// Locks the same resource for every request, such as one lock for a whole route.
///
/// # Examples
///
/// ```
/// use axum::{Router, body::Body, http::{Request, StatusCode}, routing::post};
/// use redlock_core::{AcquireOptions, Redlock, ResourceKey, Wait};
/// use redlock_tower::{FixedKey, RedlockLayer};
/// use tower::ServiceExt;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let redlock = Redlock::builder().in_memory_nodes(3).build().await?;
/// // One import at a time, on all replicas, whatever the request says.
/// let import = FixedKey::new(ResourceKey::new("import", "stock")?);
/// let at_once = AcquireOptions::new().wait(Wait::Never);
/// let lock = RedlockLayer::builder(redlock.clone()).options(at_once).build(import)?;
/// let app: Router = Router::new().route("/import", post(async || "done").route_layer(lock));
///
/// let another = redlock.acquire("import:stock").await?;
/// let refused = app.clone().oneshot(Request::post("/import").body(Body::empty())?).await?;
/// assert_eq!(refused.status(), StatusCode::CONFLICT);
/// another.release().await?;
/// let done = app.oneshot(Request::post("/import").body(Body::empty())?).await?;
/// assert_eq!(done.status(), StatusCode::OK);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "a key does nothing until it is given to a layer"]
pub struct FixedKey(ResourceKeys);

impl FixedKey {
    /// Locks a [`ResourceKey`](redlock_core::ResourceKey), or several [`ResourceKeys`] together.
    pub fn new(keys: impl Into<ResourceKeys>) -> Self {
        Self(keys.into())
    }
}

impl<Req: Send> KeyExtractor<Req> for FixedKey {
    async fn extract(&self, _: &mut Req) -> Result<Option<ResourceKeys>, KeyError> {
        Ok(Some(self.0.clone()))
    }

    fn extract_now(&self, _: &mut Req) -> Option<Result<Option<ResourceKeys>, KeyError>> {
        Some(Ok(Some(self.0.clone())))
    }
}
