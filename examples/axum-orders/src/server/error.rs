use axum::{
    Json,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use serde::Serialize;

use crate::store::StoreError;

/// Why a request was not done, as its client is told.
#[derive(Debug)]
pub(crate) enum AppError {
    NotFound,
    AlreadyPaid,
    SoldOut,
    Declined,
    /// The lease was over before the work was done: nothing was written.
    Stale,
    /// Our fault; the log has what it was.
    Internal,
}

impl AppError {
    fn status(&self) -> StatusCode {
        match self {
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::AlreadyPaid | Self::SoldOut => StatusCode::CONFLICT,
            Self::Declined => StatusCode::PAYMENT_REQUIRED,
            Self::Stale => StatusCode::SERVICE_UNAVAILABLE,
            Self::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    fn detail(&self) -> &'static str {
        match self {
            Self::NotFound => "there is no such thing",
            Self::AlreadyPaid => "the order is paid already",
            Self::SoldOut => "none is left",
            Self::Declined => "the bank declines the card",
            Self::Stale => "it took too long, and nothing was changed",
            Self::Internal => "something is wrong with the server",
        }
    }
}

impl From<StoreError> for AppError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::NotFound => Self::NotFound,
            StoreError::Stale => Self::Stale,
            StoreError::Database(error) => {
                tracing::error!(%error, "the database failed");
                Self::Internal
            }
        }
    }
}

/// `application/problem+json` as of RFC 9457, as the layer's own answers are.
impl IntoResponse for AppError {
    fn into_response(self) -> Response {
        #[derive(Serialize)]
        struct Problem {
            r#type: &'static str,
            title: &'static str,
            status: u16,
            detail: &'static str,
        }
        let status = self.status();
        let problem = Problem {
            r#type: "about:blank",
            title: status.canonical_reason().unwrap_or_default(),
            status: status.as_u16(),
            detail: self.detail(),
        };
        let mut response = (status, Json(problem)).into_response();
        let headers = response.headers_mut();
        let kind = HeaderValue::from_static("application/problem+json");
        headers.insert(header::CONTENT_TYPE, kind);
        // The others would be answered the same again.
        if matches!(self, Self::Stale) {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}
