//! Extractors for handlers of axum.

mod locked;

use std::{convert::Infallible, error::Error, fmt};

use ::axum::{
    body::Body,
    extract::{FromRequestParts, OptionalFromRequestParts},
    response::{IntoResponse, Response},
};
use http::{StatusCode, request::Parts};

pub use self::locked::{Locked, LockedRejection};
use crate::{LeaseTaken, OwnedLease, Rejection, RequestLease, rejection::problem};

impl<S: Sync> FromRequestParts<S> for RequestLease {
    type Rejection = MissingLease;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, MissingLease> {
        let lease = parts.extensions.get().cloned();
        lease.ok_or(MissingLease(Missing::Lease))
    }
}

impl<S: Sync> OptionalFromRequestParts<S> for RequestLease {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Option<Self>, Infallible> {
        Ok(parts.extensions.get().cloned())
    }
}

impl<S: Sync> FromRequestParts<S> for OwnedLease {
    type Rejection = MissingLease;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, MissingLease> {
        let lease = <RequestLease as FromRequestParts<S>>::from_request_parts(parts, state).await?;
        lease
            .into_owned()
            .map_err(|taken| MissingLease(Missing::Taken(taken)))
    }
}

/// The rejection of [`RequestLease`], [`OwnedLease`] and [`Locked`](crate::Locked): the request has no lease, no
/// layer, or no longer its lock.
///
/// The cause is a mistake in the program and not in the request, so the status is 500.
///
/// # Examples
///
/// ```
/// use axum::{Router, body::Body, http::{Request, StatusCode}, routing::get};
/// use redlock_tower::RequestLease;
/// use tower::ServiceExt;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // A layer was forgotten.
/// let app: Router = Router::new().route("/", get(async |_: RequestLease| "never"));
/// let answer = app.oneshot(Request::get("/").body(Body::empty())?).await?;
/// assert_eq!(answer.status(), StatusCode::INTERNAL_SERVER_ERROR);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct MissingLease(Missing);

#[derive(Clone, Debug)]
enum Missing {
    Lease,
    Taken(LeaseTaken),
    Layer,
}

impl MissingLease {
    /// Returns the status of the answer.
    pub fn status(&self) -> StatusCode {
        StatusCode::INTERNAL_SERVER_ERROR
    }
}

impl IntoResponse for MissingLease {
    fn into_response(self) -> Response {
        // The reader of the log may never see the answer.
        tracing::error!(target: crate::TARGET, "refused: {self}");
        problem(self.status(), &self.to_string(), None).map(Body::from)
    }
}

/// A program's fault, hence the status 500.
impl IntoResponse for LeaseTaken {
    fn into_response(self) -> Response {
        MissingLease(Missing::Taken(self)).into_response()
    }
}

impl fmt::Display for MissingLease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &self.0 {
            Missing::Lease => {
                "the request holds no lease: is `RedlockLayer` around this route? A router's layer is only \
                 around routes that were added before it. If its key lets requests through unlocked, \
                 extract `Option<RequestLease>`"
            }
            Missing::Taken(taken) => return taken.fmt(f),
            Missing::Layer => {
                "`Locked` needs a layer around this route that watches over the lock: \
                 `RedlockLayer::new(redlock, InHandler)`"
            }
        })
    }
}

impl Error for MissingLease {}

/// The answer is [`Rejection::problem`]; the rejection is in its extensions.
impl IntoResponse for Rejection {
    fn into_response(self) -> Response {
        self.log(None);
        let mut response = self.problem().map(Body::from);
        response.extensions_mut().insert(self);
        response
    }
}
