//! The keys of requests: each names what its request locks.

mod boxed;
mod error;
mod fixed;
mod header;
mod lock_key;
#[cfg(feature = "axum")]
mod path;

#[cfg(feature = "axum")]
pub use self::path::PathKey;
pub use self::{
    boxed::BoxedKey,
    error::KeyError,
    fixed::FixedKey,
    header::HeaderKey,
    lock_key::{ExtensionKey, InHandler, LockKey},
};

use std::future;

use redlock_core::{AcquireOptions, ResourceKeys};

use crate::RequestLease;

/// Names what a request locks.
///
/// This crate has [`FixedKey`], [`HeaderKey`], [`ExtensionKey`] and, with the feature `axum`, `PathKey`; [`BoxedKey`] hides the type
/// of a key.
/// A closure `Fn(&Req) -> Result<Option<ResourceKey>, KeyError>` implements the trait as well, and so does a closure
/// that returns [`ResourceKeys`], which are locked together.
///
/// A client that chooses the key can make other clients wait: put the authenticated principal into the key wherever one
/// account must not delay another.
/// This crate has no key by the client's address on purpose: behind a proxy it is the proxy's address, and clients can
/// forge the headers that claim another one.
///
/// # Examples
///
/// ```
/// use http::Request;
/// use redlock_core::{Redlock, ResourceKey, ResourceKeys};
/// use redlock_tower::{KeyError, KeyExtractor, RedlockLayer};
///
/// #[derive(Clone)]
/// struct User(u64);
///
/// // A closure, where an outer layer has left the user:
/// let by_user = |request: &Request<_>| -> Result<Option<ResourceKey>, KeyError> {
///     let Some(User(id)) = request.extensions().get() else { return Ok(None) };
///     Ok(Some(ResourceKey::new("user", id)?))
/// };
/// # fn check<K: KeyExtractor<Request<()>>>(_: K) {}
/// # check(by_user);
///
/// // Both accounts of a transfer, in whatever direction it goes:
/// let both = |request: &Request<_>| -> Result<Option<ResourceKeys>, KeyError> {
///     let Some(Transfer { from, to }) = request.extensions().get() else { return Ok(None) };
///     let accounts = [ResourceKey::new("account", from)?, ResourceKey::new("account", to)?];
///     Ok(Some(ResourceKeys::new(accounts)?))
/// };
/// # #[derive(Clone)]
/// # struct Transfer { from: u64, to: u64 }
/// # check(both);
///
/// // A type, to be named or to await something:
/// struct ByTeam;
///
/// impl<B: Send> KeyExtractor<Request<B>> for ByTeam {
///     async fn extract(&self, request: &mut Request<B>) -> Result<Option<ResourceKeys>, KeyError> {
///         let Some(User(id)) = request.extensions().get() else { return Ok(None) };
///         let team = team_of(*id).await;
///         Ok(Some(ResourceKey::new("team", team)?.into()))
///     }
/// }
/// # check(ByTeam);
/// # async fn team_of(user: u64) -> u64 { user }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say what a `{Req}` locks",
    label = "not a key of a `{Req}`",
    note = "a closure needs its types: `|request: &http::Request<_>| -> Result<Option<ResourceKey>, KeyError>`",
    note = "a path parameter is `PathKey::new(\"order\", \"order_id\")`, a header `HeaderKey::new(\"account\", name)`"
)]
pub trait KeyExtractor<Req>: Send + Sync + 'static {
    /// Returns the keys of what `request` locks, usually one; `Ok(None)` lets the request through without a lock.
    ///
    /// # Errors
    ///
    /// The request must not go on; the error has the answer.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the request.
    fn extract(
        &self,
        request: &mut Req,
    ) -> impl Future<Output = Result<Option<ResourceKeys>, KeyError>> + Send;

    /// Returns what [`extract`](Self::extract) would return, if nothing needs to be awaited for it.
    ///
    /// The layer calls it first, which saves a request without a lock its only allocation.
    /// The default is `None`: the layer then calls `extract`.
    fn extract_now(&self, request: &mut Req) -> Option<Result<Option<ResourceKeys>, KeyError>> {
        let _ = request;
        None
    }

    /// Returns options that replace the layer's settings for the lease of `request`: how long it waits, its time to
    /// live.
    ///
    /// The layer calls it when it knows the keys.
    /// The default sets no option.
    /// For HTTP requests, [`options_with`](crate::RedlockLayerBuilder::options_with) is simpler; these options take
    /// precedence over its options.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), redlock_tower::ServiceError> {
    /// use redlock_core::{AcquireOptions, Redlock, ResourceKey, ResourceKeys, Wait};
    /// use redlock_tower::{KeyError, KeyExtractor, GenericLayer};
    /// use tower::{Layer, ServiceExt, service_fn};
    ///
    /// struct Charge { account: u64, is_urgent: bool }
    ///
    /// struct ByAccount;
    ///
    /// impl KeyExtractor<Charge> for ByAccount {
    ///     async fn extract(&self, charge: &mut Charge) -> Result<Option<ResourceKeys>, KeyError> {
    ///         Ok(Some(ResourceKey::new("account", charge.account)?.into()))
    ///     }
    ///
    ///     fn options(&self, charge: &Charge) -> AcquireOptions {
    ///         let options = AcquireOptions::new();
    ///         if charge.is_urgent { options.wait(Wait::Never) } else { options }
    ///     }
    /// }
    ///
    /// let redlock = Redlock::builder().in_memory_nodes(3).build().await?;
    /// let charge = service_fn(async |_: Charge| Ok::<_, std::io::Error>("charged"));
    /// let service = GenericLayer::new(redlock.clone(), ByAccount).layer(charge);
    ///
    /// let another = redlock.acquire("account:7").await?;
    /// let urgent = Charge { account: 7, is_urgent: true };
    /// assert!(service.clone().oneshot(urgent).await.is_err(), "at once");
    /// let patient = Charge { account: 7, is_urgent: false };
    /// let (charged, released) = tokio::join!(service.oneshot(patient), another.release());
    /// assert_eq!(charged?, "charged");
    /// # released?;
    /// # Ok(())
    /// # }
    /// ```
    fn options(&self, request: &Req) -> AcquireOptions {
        let _ = request;
        AcquireOptions::new()
    }

    /// Returns whether nothing is locked before the handler runs, which takes its locks by itself: see [`InHandler`].
    #[doc(hidden)]
    fn leaves_it_to_the_handler(&self) -> bool {
        false
    }

    /// Receives the lease, before the inner service gets the request.
    ///
    /// HTTP requests have the [`RequestLease`] in their extensions; for other requests, this method can store the
    /// fencing token in the request.
    /// The default does nothing.
    fn granted(&self, request: &mut Req, lease: &RequestLease) {
        let _ = (request, lease);
    }
}

// Otherwise the compiler's error for a wrong extractor says that it is no closure.
#[diagnostic::do_not_recommend]
impl<F, Req, T> KeyExtractor<Req> for F
where
    F: Fn(&Req) -> Result<Option<T>, KeyError> + Send + Sync + 'static,
    T: Into<ResourceKeys>,
{
    fn extract(
        &self,
        request: &mut Req,
    ) -> impl Future<Output = Result<Option<ResourceKeys>, KeyError>> + Send {
        future::ready(self(request).map(|keys| keys.map(Into::into)))
    }

    fn extract_now(&self, request: &mut Req) -> Option<Result<Option<ResourceKeys>, KeyError>> {
        Some(self(request).map(|keys| keys.map(Into::into)))
    }
}
