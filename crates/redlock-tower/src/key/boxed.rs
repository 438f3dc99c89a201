use std::{fmt, pin::Pin, sync::Arc};

use redlock_core::{AcquireOptions, ResourceKeys};

use crate::{KeyError, KeyExtractor, RequestLease};

/// Any [`KeyExtractor`] of a `Req`: for struct fields, and for layers that differ only in their key.
///
/// A clone is cheap.
/// A boxed key that awaits costs one more allocation per request than the same key without a box.
///
/// # Examples
///
/// ```
/// use http::{HeaderName, Request};
/// use redlock_core::{Redlock, ResourceKey};
/// use redlock_tower::{BoxedKey, HeaderKey, RedlockLayer};
///
/// fn layer<B: Send + 'static>(redlock: Redlock, locked: bool) -> RedlockLayer<BoxedKey<Request<B>>> {
///     let key = if locked {
///         BoxedKey::new(HeaderKey::new("account", HeaderName::from_static("x-account")))
///     } else {
///         BoxedKey::new(|_: &Request<B>| Ok(None::<ResourceKey>))
///     };
///     RedlockLayer::new(redlock, key)
/// }
/// # use tower::{Layer, ServiceExt, service_fn};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let redlock = Redlock::builder().in_memory_nodes(3).build().await?;
/// # for (locked, status) in [(true, 400), (false, 200)] {
/// #     let work = service_fn(async |_| Ok::<_, std::io::Error>(http::Response::new(String::new())));
/// #     let answer = layer(redlock.clone(), locked).layer(work).oneshot(Request::new(())).await?;
/// #     assert_eq!(answer.status(), status);
/// # }
/// # Ok(())
/// # }
/// ```
#[must_use = "a key does nothing until it is given to a layer"]
pub struct BoxedKey<Req>(Arc<dyn Erased<Req>>);

type Extracting<'a> =
    Pin<Box<dyn Future<Output = Result<Option<ResourceKeys>, KeyError>> + Send + 'a>>;

trait Erased<Req>: Send + Sync {
    fn extract<'a>(&'a self, request: &'a mut Req) -> Extracting<'a>;
    fn extract_now(&self, request: &mut Req) -> Option<Result<Option<ResourceKeys>, KeyError>>;
    fn options(&self, request: &Req) -> AcquireOptions;
    fn granted(&self, request: &mut Req, lease: &RequestLease);
    fn leaves_it_to_the_handler(&self) -> bool;
}

impl<Req> BoxedKey<Req> {
    /// Boxes `key`, and hides its type.
    pub fn new<K: KeyExtractor<Req>>(key: K) -> Self {
        Self(Arc::new(key))
    }
}

impl<Req, K: KeyExtractor<Req>> Erased<Req> for K {
    fn extract<'a>(&'a self, request: &'a mut Req) -> Extracting<'a> {
        Box::pin(KeyExtractor::extract(self, request))
    }

    fn extract_now(&self, request: &mut Req) -> Option<Result<Option<ResourceKeys>, KeyError>> {
        KeyExtractor::extract_now(self, request)
    }

    fn options(&self, request: &Req) -> AcquireOptions {
        KeyExtractor::options(self, request)
    }

    fn granted(&self, request: &mut Req, lease: &RequestLease) {
        KeyExtractor::granted(self, request, lease);
    }

    fn leaves_it_to_the_handler(&self) -> bool {
        KeyExtractor::leaves_it_to_the_handler(self)
    }
}

impl<Req: Send + 'static> KeyExtractor<Req> for BoxedKey<Req> {
    async fn extract(&self, request: &mut Req) -> Result<Option<ResourceKeys>, KeyError> {
        self.0.extract(request).await
    }

    fn extract_now(&self, request: &mut Req) -> Option<Result<Option<ResourceKeys>, KeyError>> {
        self.0.extract_now(request)
    }

    fn options(&self, request: &Req) -> AcquireOptions {
        self.0.options(request)
    }

    fn granted(&self, request: &mut Req, lease: &RequestLease) {
        self.0.granted(request, lease);
    }

    fn leaves_it_to_the_handler(&self) -> bool {
        self.0.leaves_it_to_the_handler()
    }
}

// By hand, because a derived one would ask for `Req: Clone`.
impl<Req> Clone for BoxedKey<Req> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<Req> fmt::Debug for BoxedKey<Req> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BoxedKey").finish_non_exhaustive()
    }
}
