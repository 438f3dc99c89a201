//! How refusals are told.

use std::{fmt, sync::Arc};

use bytes::Bytes;
use http::{HeaderMap, Response, StatusCode, header};

use crate::{Rejection, ResponseBody};

/// The answers of a layer.
#[derive(Clone)]
pub(crate) struct Answers {
    pub(crate) contended: StatusCode,
    pub(crate) reject_with: Option<Arc<RejectWith>>,
}

pub(crate) type RejectWith = dyn Fn(&Rejection) -> Response<Bytes> + Send + Sync;

/// In which protocol a client expects its answer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Protocol {
    Http,
    Grpc,
}

impl Answers {
    pub(crate) fn refuse<B>(
        &self,
        rejection: Rejection,
        protocol: Protocol,
    ) -> Response<ResponseBody<B>> {
        rejection.log();
        self.tell(rejection, protocol)
    }

    /// The answer to a request that was refused, which the log knows of.
    pub(crate) fn tell<B>(
        &self,
        rejection: Rejection,
        protocol: Protocol,
    ) -> Response<ResponseBody<B>> {
        let rejection = rejection.when_contended(self.contended);
        let response = match (&self.reject_with, protocol) {
            (Some(reject_with), _) => reject_with(&rejection),
            (None, Protocol::Http) => rejection.problem(),
            (None, Protocol::Grpc) => rejection.grpc(),
        };
        let mut response = response.map(ResponseBody::refusal);
        response.extensions_mut().insert(rejection);
        response
    }
}

impl Default for Answers {
    fn default() -> Self {
        Self {
            contended: StatusCode::CONFLICT,
            reject_with: None,
        }
    }
}

impl Protocol {
    /// As the content type of a request says: `application/grpc`, with or without a format behind it.
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

impl fmt::Debug for Answers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answers")
            .field("contended", &self.contended)
            .field("reject_with", &self.reject_with.is_some())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
