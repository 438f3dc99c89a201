use redlock_core::ResourceKeys;

use crate::{KeyError, KeyExtractor};

/// Locks nothing by itself, because the handler takes the lock: by the extractor `Locked` (with the feature `axum`).
///
/// It is for keys that a layer cannot see, such as a key in the request's body.
/// The layer watches over the locks that the handler takes as over its own, and holds them as long.
/// Its settings hold for them, unless the [`LockKey`](crate::LockKey) sets other options.
///
/// Use it with [`RedlockLayer`](crate::RedlockLayer) only; in a [generic](crate::generic) layer it locks nothing at
/// all.
///
/// # Examples
///
/// ```
/// use axum::{Json, Router, body::Body, http::{Request, StatusCode}, routing::post};
/// use redlock_core::{AcquireOptions, Redlock, ResourceKey, ResourceKeys, Wait};
/// use redlock_tower::{InHandler, KeyError, LockKey, Locked, RedlockLayer};
/// use tower::ServiceExt;
///
/// #[derive(serde::Deserialize)]
/// struct Payment { order: u64 }
///
/// impl LockKey for Payment {
///     fn lock_key(&self) -> Result<ResourceKeys, KeyError> {
///         Ok(ResourceKey::new("order", self.order)?.into())
///     }
/// }
///
/// async fn pay(payment: Locked<Json<Payment>>) -> String {
///     format!("order {} is paid", payment.order)
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let redlock = Redlock::builder().in_memory_nodes(3).build().await?;
/// let at_once = AcquireOptions::new().wait(Wait::Never);
/// let lock = RedlockLayer::builder(redlock.clone()).options(at_once).build(InHandler)?;
/// let app: Router = Router::new().route("/payments", post(pay).route_layer(lock));
/// let ask = || {
///     let request = Request::post("/payments").header("content-type", "application/json");
///     request.body(Body::from(r#"{"order":42}"#))
/// };
///
/// let another = redlock.acquire("order:42").await?;
/// assert_eq!(app.clone().oneshot(ask()?).await?.status(), StatusCode::CONFLICT);
/// another.release().await?;
/// assert_eq!(app.oneshot(ask()?).await?.status(), StatusCode::OK);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::exhaustive_structs, reason = "it is a name and has no parts")]
#[must_use = "a key does nothing until it is given to a layer"]
pub struct InHandler;

impl<Req: Send> KeyExtractor<Req> for InHandler {
    async fn extract(&self, _: &mut Req) -> Result<Option<ResourceKeys>, KeyError> {
        Ok(None)
    }

    fn extract_now(&self, _: &mut Req) -> Option<Result<Option<ResourceKeys>, KeyError>> {
        Some(Ok(None))
    }

    fn leaves_it_to_the_handler(&self) -> bool {
        true
    }
}
