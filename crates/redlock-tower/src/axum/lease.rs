use std::{convert::Infallible, error::Error, fmt};

use ::axum::{
    body::Body,
    extract::{FromRequestParts, OptionalFromRequestParts},
    response::{IntoResponse, Response},
};
use http::{StatusCode, request::Parts};

use crate::{Lease, problem::problem};

impl<S: Sync> FromRequestParts<S> for Lease {
    type Rejection = MissingLease;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, MissingLease> {
        parts.extensions.get().cloned().ok_or(MissingLease(()))
    }
}

impl<S: Sync> OptionalFromRequestParts<S> for Lease {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Option<Self>, Infallible> {
        Ok(parts.extensions.get().cloned())
    }
}

/// The rejection of [`Lease`]: the request that reached the handler holds no lock.
///
/// It is the program's fault and not the client's, hence the status 500.
#[derive(Clone, Debug)]
pub struct MissingLease(());

impl MissingLease {
    /// The status of the answer.
    pub fn status(&self) -> StatusCode {
        StatusCode::INTERNAL_SERVER_ERROR
    }
}

impl IntoResponse for MissingLease {
    fn into_response(self) -> Response {
        problem(self.status(), &self.to_string(), None).map(Body::from)
    }
}

impl fmt::Display for MissingLease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "the request holds no lease: is `RedlockLayer` around this route? A router's layer is only \
             around routes that were added before it. If its key lets requests through unlocked, \
             extract `Option<Lease>`",
        )
    }
}

impl Error for MissingLease {}
