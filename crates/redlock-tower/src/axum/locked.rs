use std::{error::Error, fmt, ops::Deref};

use ::axum::{
    extract::{FromRequest, FromRequestParts, Request},
    response::{IntoResponse, Response},
};
use http::request::Parts;

use super::{Missing, MissingLease};
use crate::{LockKey, Rejection, RequestLease, request::handler_locks::HandlerLocksRef};

/// Extracts `E`, and takes the lock that it names before the handler runs.
///
/// It is for keys that a layer cannot see, because they are in the request's body or in the value of another extractor.
/// `E` is any extractor whose value is, or derefs to, a [`LockKey`], such as `Json<Transfer>`.
///
/// The route needs a [`RedlockLayer`](crate::RedlockLayer) with the key [`InHandler`](crate::InHandler) around it,
/// which provides the client.
/// The rules are those of any other layer.
/// If the lease is lost, the layer drops the handler and answers with 503.
/// The layer holds the lock until the response's body has ended, and for `max_hold` at most.
/// It answers refusals as it is set up to, with the headers that layers in between have added; an answer to which the
/// handler has given another status stays as it is.
/// Dropping this value releases nothing; [`RequestLease::into_owned`] takes the lock out of the request.
///
/// If a layer or an earlier argument already holds a lock on all of these keys for this request, that lock is used.
/// Name resources that must be locked together by one value, which returns several
/// [`ResourceKeys`](redlock_core::ResourceKeys): they are granted together or not at all.
/// Two such arguments in one handler take their locks from left to right: give them the same order everywhere.
///
/// # Cancel safety
///
/// Dropping the request's future, at any point, gives up the place in the queue and the lock; see
/// [the crate page](crate#cancel-safety).
///
/// # Examples
///
/// ```
/// use axum::{Json, Router, routing::post};
/// use redlock_core::{Redlock, ResourceKey, ResourceKeys};
/// use redlock_tower::{InHandler, KeyError, LockKey, Locked, RedlockLayer};
///
/// #[derive(serde::Deserialize)]
/// struct Transfer { from: u64, to: u64, cents: u64 }
///
/// impl LockKey for Transfer {
///     fn lock_key(&self) -> Result<ResourceKeys, KeyError> {
///         let accounts = [ResourceKey::new("account", self.from)?, ResourceKey::new("account", self.to)?];
///         Ok(ResourceKeys::new(accounts)?)
///     }
/// }
///
/// async fn transfer(transfer: Locked<Json<Transfer>>) -> String {
///     // No other transfer from or to one of these accounts runs now, on any replica.
///     let token = transfer.lease().token();
///     let Json(Transfer { cents, .. }) = transfer.into_inner(); // the request keeps the lock
///     format!("{cents} cents under token {token}")
/// }
///
/// fn app(redlock: Redlock) -> Router {
///     let lock = RedlockLayer::new(redlock, InHandler);
///     Router::new().route("/transfers", post(transfer).route_layer(lock))
/// }
/// ```
#[derive(Debug)]
pub struct Locked<E> {
    value: E,
    lease: RequestLease,
}

impl<E> Locked<E> {
    /// Returns the lease.
    ///
    /// `Locked` derefs to the value, as extractors do, so the lease has this method.
    /// `locked.lease().run(work)` drops `work` alone when the lease is lost, which matters under
    /// [`LossPolicy::Signal`](crate::LossPolicy::Signal): otherwise the layer drops the whole handler.
    pub fn lease(&self) -> &RequestLease {
        &self.lease
    }

    /// Takes the value out; the request keeps the lock.
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
{
    type Rejection = LockedRejection<E::Rejection>;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Self::Rejection> {
        let locks = parts.extensions.get().cloned();
        let value = E::from_request_parts(parts, state).await;
        let value = value.map_err(LockedRejection::Value)?;
        let lease = lock(&value, locks, parts.extensions.get().cloned()).await?;
        // For what comes after it: another argument, or a service that the handler calls.
        parts.extensions.insert(lease.clone());
        Ok(Self { value, lease })
    }
}

impl<E, S> FromRequest<S> for Locked<E>
where
    E: FromRequest<S> + LockKey + Send,
    S: Send + Sync,
{
    type Rejection = LockedRejection<E::Rejection>;

    async fn from_request(request: Request, state: &S) -> Result<Self, Self::Rejection> {
        let locks = request.extensions().get().cloned();
        let carried = request.extensions().get().cloned();
        let value = E::from_request(request, state).await;
        let value = value.map_err(LockedRejection::Value)?;
        let lease = lock(&value, locks, carried).await?;
        Ok(Self { value, lease })
    }
}

/// Takes the lock; the future has nothing of `value`, which need not be `Sync`.
fn lock<E: LockKey, R>(
    value: &E,
    locks: Option<HandlerLocksRef>,
    carried: Option<RequestLease>,
) -> impl Future<Output = Result<RequestLease, LockedRejection<R>>> + Send + use<E, R> {
    let (key, options) = (value.lock_key(), value.options());
    async move {
        let missing = || LockedRejection::Layer(MissingLease(Missing::Layer));
        let locks = locks.ok_or_else(missing)?;
        let key = key.map_err(|error| {
            let rejection = Rejection::from(error);
            locks.refused(&rejection);
            LockedRejection::Lock(rejection)
        })?;
        let taken = locks.take(key, options, carried.as_ref()).await;
        taken.ok_or_else(missing)?.map_err(LockedRejection::Lock)
    }
}

/// The rejection of [`Locked`].
///
/// The layer replaces the whole response that is made from a refusal of the lock by the answer for which it is set up;
/// [`reject_with`](crate::RedlockLayerBuilder::reject_with) makes another.
///
/// # Examples
///
/// ```
/// use axum::{Json, extract::rejection::JsonRejection, response::{IntoResponse, Response}};
/// use redlock_core::{ResourceKey, ResourceKeys};
/// use redlock_tower::{KeyError, LockKey, Locked, LockedRejection};
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
/// /// Answers by itself when the body is wrong; the layer answers when the order is locked.
/// async fn pay(payment: Result<Locked<Json<Payment>>, LockedRejection<JsonRejection>>) -> Response {
///     match payment {
///         Ok(payment) => format!("order {} is paid", payment.order).into_response(),
///         Err(LockedRejection::Value(wrong)) => (wrong.status(), "send an order").into_response(),
///         Err(refused) => refused.into_response(),
///     }
/// }
/// # use axum::{Router, body::Body, http::Request, routing::post};
/// # use redlock_core::{AcquireOptions, Redlock, Wait};
/// # use redlock_tower::{InHandler, RedlockLayer};
/// # use tower::ServiceExt;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let redlock = Redlock::builder().in_memory_nodes(3).build().await?;
/// # let at_once = AcquireOptions::new().wait(Wait::Never);
/// # let lock = RedlockLayer::builder(redlock.clone()).options(at_once).build(InHandler)?;
/// # let app: Router = Router::new().route("/payments", post(pay).route_layer(lock));
/// # let ask = async |body: &'static str| {
/// #     let request = Request::post("/payments").header("content-type", "application/json");
/// #     let request = request.body(Body::from(body)).expect("it is valid");
/// #     app.clone().oneshot(request).await.expect("it answers").status().as_u16()
/// # };
/// # let order = r#"{"order":42}"#;
/// # assert_eq!((ask(order).await, ask("{}").await), (200, 422));
/// # let another = redlock.acquire("order:42").await?;
/// # assert_eq!(ask(order).await, 409);
/// # drop(another);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum LockedRejection<R> {
    /// The inner extractor has found no value, for this reason.
    Value(R),
    /// The value names no key, or the lock could not be taken.
    Lock(Rejection),
    /// No layer watches over the lock.
    Layer(MissingLease),
}

impl<R: IntoResponse> IntoResponse for LockedRejection<R> {
    fn into_response(self) -> Response {
        match self {
            Self::Value(rejection) => rejection.into_response(),
            Self::Lock(rejection) => rejection.into_response(),
            Self::Layer(missing) => missing.into_response(),
        }
    }
}

impl<R: fmt::Display> fmt::Display for LockedRejection<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Value(rejection) => rejection.fmt(f),
            Self::Lock(rejection) => rejection.fmt(f),
            Self::Layer(missing) => missing.fmt(f),
        }
    }
}

impl<R: Error + 'static> Error for LockedRejection<R> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Value(rejection) => rejection.source(),
            Self::Lock(rejection) => rejection.source(),
            Self::Layer(missing) => missing.source(),
        }
    }
}
