use std::{error::Error, fmt, ops::Deref};

use ::axum::{
    extract::{FromRef, FromRequest, FromRequestParts, Request},
    response::{IntoResponse, Response},
};
use http::request::Parts;
use redlock_core::{LeaseLost, Redlock};

use crate::{Lease, LockKey, Rejection, held::Held};

/// Extracts `E`, and takes the lock that it names before the handler runs.
///
/// For keys that no layer can see: in the request's body, or in what another extractor found.
/// `E` is any extractor whose value is, or derefs to, a [`LockKey`], such as `Json<Transfer>`; the client comes from
/// the router's state.
/// The lock is released when this is dropped, which is at the end of the handler unless the handler moves it.
///
/// If a layer, or an argument before, holds the same lock for this request, it is used.
/// Two different keys in one handler are taken from left to right: take them in the same order everywhere.
///
/// # A lost lease
///
/// An extractor cannot stop its handler as [`RedlockLayer`](crate::RedlockLayer) does.
/// Put the work that must be exclusive into [`run`](Self::run), or hand [`token`](redlock_core::Lease::token) to a
/// resource that checks it.
///
/// # Cancel safety
///
/// Dropping the handler's future, at any point, gives up the place in the queue and the lock; see
/// [the crate page](crate#cancel-safety).
///
/// # Examples
///
/// ```
/// use axum::{Json, Router, routing::post};
/// use redlock_core::{Redlock, ResourceKey};
/// use redlock_tower::{KeyError, LockKey, Locked};
///
/// #[derive(serde::Deserialize)]
/// struct Transfer { from: u64, cents: u64 }
///
/// impl LockKey for Transfer {
///     fn lock_key(&self) -> Result<ResourceKey, KeyError> {
///         Ok(ResourceKey::new("account", self.from)?)
///     }
/// }
///
/// async fn transfer(transfer: Locked<Json<Transfer>>) -> String {
///     // No other transfer from this account runs now, on any replica.
///     format!("{} cents under token {}", transfer.cents, transfer.lease().token())
/// }
///
/// fn app(redlock: Redlock) -> Router {
///     // In a state with other things: `impl FromRef<AppState> for Redlock`.
///     Router::new().route("/transfers", post(transfer)).with_state(redlock)
/// }
/// ```
#[clippy::has_significant_drop]
#[derive(Debug)]
#[must_use = "dropping it releases the lock"]
pub struct Locked<E> {
    value: E,
    held: Held,
}

impl<E> Locked<E> {
    /// The lease.
    pub fn lease(&self) -> &Lease {
        self.held.lease()
    }

    /// Runs `work` for as long as the lease is valid, as [`redlock_core::Lease::run`] says.
    ///
    /// # Errors
    ///
    /// The lease was lost, and `work` was dropped unfinished.
    /// A [`Rejection`] is made of it by `?`, and is the response 503.
    ///
    /// # Cancel safety
    ///
    /// Dropping it drops `work`; the lease stays with `self`.
    pub async fn run<F: Future>(&self, work: F) -> Result<F::Output, LeaseLost> {
        self.lease().run(work).await
    }

    /// Takes the value out, and releases the lock.
    pub fn into_inner(self) -> E {
        self.value
    }
}

impl<E> Deref for Locked<E> {
    type Target = E;

    fn deref(&self) -> &E {
        &self.value
    }
}

impl<E, S> FromRequestParts<S> for Locked<E>
where
    E: FromRequestParts<S> + LockKey + Send,
    S: Send + Sync,
    Redlock: FromRef<S>,
{
    type Rejection = LockedRejection<E::Rejection>;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Self::Rejection> {
        let value = E::from_request_parts(parts, state).await;
        let value = value.map_err(LockedRejection::Value)?;
        let held = lock(&value, state, parts.extensions.get().cloned()).await;
        let held = held.map_err(LockedRejection::Lock)?;
        // For what comes after it: another argument, or a service that the handler calls.
        parts.extensions.insert(held.lease().clone());
        Ok(Self { value, held })
    }
}

impl<E, S> FromRequest<S> for Locked<E>
where
    E: FromRequest<S> + LockKey + Send,
    S: Send + Sync,
    Redlock: FromRef<S>,
{
    type Rejection = LockedRejection<E::Rejection>;

    async fn from_request(request: Request, state: &S) -> Result<Self, Self::Rejection> {
        let carried = request.extensions().get().cloned();
        let value = E::from_request(request, state).await;
        let value = value.map_err(LockedRejection::Value)?;
        let held = lock(&value, state, carried).await;
        let held = held.map_err(LockedRejection::Lock)?;
        Ok(Self { value, held })
    }
}

/// Takes the lock; the future has nothing of `value`, which need not be `Sync`.
fn lock<E: LockKey, S>(
    value: &E,
    state: &S,
    carried: Option<Lease>,
) -> impl Future<Output = Result<Held, Rejection>> + Send + use<E, S>
where
    Redlock: FromRef<S>,
{
    let (key, options) = (value.lock_key(), value.options());
    let redlock = Redlock::from_ref(state);
    async move { Ok(Held::take(&redlock, options, key?, carried.as_ref()).await?) }
}

/// The rejection of [`Locked`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum LockedRejection<R> {
    /// There is no value, and why.
    Value(R),
    /// The value does not say what to lock, or it could not be locked.
    Lock(Rejection),
}

impl<R: IntoResponse> IntoResponse for LockedRejection<R> {
    fn into_response(self) -> Response {
        match self {
            Self::Value(rejection) => rejection.into_response(),
            Self::Lock(rejection) => rejection.into_response(),
        }
    }
}

impl<R: fmt::Display> fmt::Display for LockedRejection<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Value(rejection) => rejection.fmt(f),
            Self::Lock(rejection) => rejection.fmt(f),
        }
    }
}

impl<R: Error + 'static> Error for LockedRejection<R> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Value(rejection) => rejection.source(),
            Self::Lock(rejection) => rejection.source(),
        }
    }
}
