//! The answers to refused requests.

use std::{fmt, sync::Arc};

use bytes::Bytes;
use http::Response;
use redlock_core::Redlock;

use crate::{
    Rejection, ResponseBody,
    meter::{self, Told},
    protocol::Protocol,
};

/// The answers of a layer.
#[derive(Clone, Default)]
pub(crate) struct Answers {
    pub(crate) reject_with: Option<Arc<RejectWith>>,
    /// The client of the nodes.
    pub(crate) redlock: Option<Redlock>,
}

pub(crate) type RejectWith = dyn Fn(&Rejection) -> Response<Bytes> + Send + Sync;

impl Answers {
    pub(crate) fn refuse<B>(
        &self,
        rejection: Rejection,
        protocol: Protocol,
    ) -> Response<ResponseBody<B>> {
        rejection.log(self.redlock.as_ref());
        meter::count(Told::Refused(rejection.kind()));
        self.tell(rejection, protocol)
    }

    /// Makes the answer to a request that was refused, which the log knows of.
    pub(crate) fn tell<B>(
        &self,
        rejection: Rejection,
        protocol: Protocol,
    ) -> Response<ResponseBody<B>> {
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

impl fmt::Debug for Answers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answers")
            .field("reject_with", &self.reject_with.is_some())
            .finish_non_exhaustive()
    }
}
