use std::{borrow::Cow, error::Error, fmt, future};

use http::StatusCode;
use redlock_core::{InvalidKey, ResourceKey};

/// Says what a request locks.
///
/// Ready made are [`HeaderKey`](crate::HeaderKey) and, with the feature `axum`, `PathKey`.
/// A closure `Fn(&Req) -> Result<Option<ResourceKey>, KeyError>` is one as well.
///
/// A key that comes from the client is a handle for keeping others waiting: put the authenticated
/// principal into it wherever one account must not touch another's.
/// There is no key by the client's address on purpose: behind a proxy it is the proxy's, and the
/// headers that claim otherwise can be forged.
///
/// # Examples
///
/// ```
/// use http::Request;
/// use redlock_core::{Redlock, ResourceKey};
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
/// // A type, to be named or to await something:
/// struct ByUser;
///
/// impl<B: Send> KeyExtractor<Request<B>> for ByUser {
///     async fn extract(&self, request: &mut Request<B>) -> Result<Option<ResourceKey>, KeyError> {
///         let Some(User(id)) = request.extensions().get() else { return Ok(None) };
///         Ok(Some(ResourceKey::new("user", id)?))
///     }
/// }
/// # check(ByUser);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say what a `{Req}` locks",
    label = "not a key of a `{Req}`",
    note = "a closure needs its types: `|request: &http::Request<_>| -> Result<Option<ResourceKey>, KeyError>`"
)]
pub trait KeyExtractor<Req>: Send + Sync + 'static {
    /// The key of what `request` locks; `Ok(None)` lets it through without a lock.
    ///
    /// # Errors
    ///
    /// The request must not go on; the error says with which answer.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, so is the request.
    fn extract(
        &self,
        request: &mut Req,
    ) -> impl Future<Output = Result<Option<ResourceKey>, KeyError>> + Send;
}

impl<F, Req> KeyExtractor<Req> for F
where
    F: Fn(&Req) -> Result<Option<ResourceKey>, KeyError> + Send + Sync + 'static,
{
    fn extract(
        &self,
        request: &mut Req,
    ) -> impl Future<Output = Result<Option<ResourceKey>, KeyError>> + Send {
        future::ready(self(request))
    }
}

/// A request that must not go on, because what it locks cannot be told.
///
/// An [`InvalidKey`] becomes one with the status 400, so that `?` works on [`ResourceKey::new`].
#[derive(Clone, Debug)]
pub struct KeyError {
    status: StatusCode,
    detail: Cow<'static, str>,
    misuse: bool,
}

impl KeyError {
    /// An answer with `status`, which tells the client `detail`.
    ///
    /// Do not repeat the key in it.
    pub fn new(status: StatusCode, detail: impl Into<Cow<'static, str>>) -> Self {
        Self {
            status,
            detail: detail.into(),
            misuse: false,
        }
    }

    /// The program is at fault and not the request: 500, and [`RejectionKind::Misuse`].
    ///
    /// [`RejectionKind::Misuse`]: crate::RejectionKind::Misuse
    pub fn misuse(detail: impl Into<Cow<'static, str>>) -> Self {
        Self {
            status: StatusCode::INTERNAL_SERVER_ERROR,
            detail: detail.into(),
            misuse: true,
        }
    }

    pub(crate) fn is_misuse(&self) -> bool {
        self.misuse
    }

    /// The answer's status.
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// What the client is told.
    pub fn detail(&self) -> &str {
        &self.detail
    }
}

impl From<InvalidKey> for KeyError {
    fn from(invalid: InvalidKey) -> Self {
        Self::new(StatusCode::BAD_REQUEST, invalid.to_string())
    }
}

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.detail)
    }
}

impl Error for KeyError {}
