//! Answers of gRPC, as of its "HTTP2 protocol mapping"; none of it needs a library of gRPC.

use std::fmt::Write;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};

use crate::{Rejection, RejectionKind};

impl Rejection {
    /// Returns the answer in gRPC: a response of trailers only, with `grpc-status` and `grpc-message`.
    ///
    /// If it makes sense to try again, `grpc-retry-pushback-ms` says when to clients that have a retry policy
    /// (gRFC A6).
    /// A layer answers so by itself when a request's content type is gRPC's.
    pub fn grpc(&self) -> Response<Bytes> {
        // "Trailers-Only is permitted for calls that produce an immediate error."
        let mut response = Response::new(Bytes::new());
        *response.headers_mut() = trailers(self);
        let content_type = HeaderValue::from_static("application/grpc");
        response
            .headers_mut()
            .insert(header::CONTENT_TYPE, content_type);
        response
    }
}

/// The status of a call that failed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u16)]
enum Code {
    InvalidArgument = 3,
    NotFound = 5,
    PermissionDenied = 7,
    ResourceExhausted = 8,
    Aborted = 10,
    Internal = 13,
    Unavailable = 14,
    Unauthenticated = 16,
}

/// Returns the end of a call that failed.
pub(crate) fn trailers(rejection: &Rejection) -> HeaderMap {
    let mut trailers = HeaderMap::with_capacity(4);
    let code = Code::of(rejection) as u16;
    trailers.insert(STATUS, HeaderValue::from(code));
    trailers.insert(MESSAGE, percent_encoded(rejection.detail()));
    if let Some(after) = rejection.retry_after() {
        let ms = u64::try_from(after.as_millis()).unwrap_or(u64::MAX);
        trailers.insert(PUSHBACK, HeaderValue::from(ms.max(1)));
    }
    trailers
}

impl Code {
    fn of(rejection: &Rejection) -> Self {
        match rejection.kind() {
            RejectionKind::Contended | RejectionKind::Lost => Self::Aborted,
            RejectionKind::Overloaded => Self::ResourceExhausted,
            RejectionKind::Unavailable | RejectionKind::Closed | RejectionKind::Follower => {
                Self::Unavailable
            }
            RejectionKind::Misuse => Self::Internal,
            RejectionKind::Key => match rejection.status() {
                StatusCode::UNAUTHORIZED => Self::Unauthenticated,
                StatusCode::FORBIDDEN => Self::PermissionDenied,
                StatusCode::NOT_FOUND => Self::NotFound,
                StatusCode::TOO_MANY_REQUESTS => Self::ResourceExhausted,
                StatusCode::SERVICE_UNAVAILABLE => Self::Unavailable,
                status if status.is_server_error() => Self::Internal,
                _ => Self::InvalidArgument,
            },
        }
    }
}

/// "Percent-Byte-Unencoded → 1*( %x20-%x24 / %x26-%x7E )"
fn percent_encoded(message: &str) -> HeaderValue {
    let mut encoded = String::with_capacity(message.len());
    for byte in message.bytes() {
        match byte {
            b'%' | ..b' ' | 0x7f.. => {
                write!(encoded, "%{byte:02X}").expect("a string takes all that is written");
            }
            plain => encoded.push(char::from(plain)),
        }
    }
    HeaderValue::try_from(encoded).expect("what is visible ASCII is a header's value")
}

const STATUS: HeaderName = HeaderName::from_static("grpc-status");
const MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
const PUSHBACK: HeaderName = HeaderName::from_static("grpc-retry-pushback-ms");

/// In which protocol a client expects its answer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Protocol {
    Http,
    Grpc,
}

impl Protocol {
    /// Returns what the content type of a request asks for: gRPC by `application/grpc`, with or without a format
    /// behind it.
    ///
    /// gRPC-Web is none of it: its clients understand the statuses of HTTP.
    pub(crate) fn of(request: &HeaderMap) -> Self {
        let content_type = request.get(header::CONTENT_TYPE);
        let rest =
            content_type.and_then(|value| value.as_bytes().strip_prefix(b"application/grpc"));
        match rest {
            Some([] | [b'+' | b';', ..]) => Self::Grpc,
            _ => Self::Http,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::KeyError;

    use super::*;

    #[test]
    fn any_message_is_a_header() {
        assert_eq!(percent_encoded("50 % of ü\n"), "50 %25 of %C3%BC%0A");
    }

    #[test]
    fn the_status_of_a_key_error_is_told() {
        let codes = [
            (400, 3),
            (401, 16),
            (403, 7),
            (404, 5),
            (422, 3),
            (429, 8),
            (500, 13),
            (503, 14),
        ];
        for (status, code) in codes {
            let status = StatusCode::from_u16(status).unwrap();
            let rejection = Rejection::from(KeyError::new(status, "no"));
            let response = rejection.grpc();
            assert_eq!(response.status(), 200);
            assert_eq!(
                response.headers()["grpc-status"],
                code.to_string(),
                "{status}"
            );
            assert_eq!(response.headers()["grpc-message"], "no");
            assert!(!response.headers().contains_key("grpc-retry-pushback-ms"));
        }
    }

    #[test]
    fn grpc_is_told_by_its_content_type() {
        let of = |content_type: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::CONTENT_TYPE, content_type.parse().unwrap());
            Protocol::of(&headers)
        };
        for grpc in [
            "application/grpc",
            "application/grpc+proto",
            "application/grpc;a=b",
        ] {
            assert_eq!(of(grpc), Protocol::Grpc, "{grpc}");
        }
        for http in [
            "application/json",
            "application/grpc-web",
            "application/grpc-web+proto",
        ] {
            assert_eq!(of(http), Protocol::Http, "{http}");
        }
        assert_eq!(Protocol::of(&HeaderMap::new()), Protocol::Http);
    }
}
