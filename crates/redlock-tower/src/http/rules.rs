//! The rules of a layer for requests of HTTP.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, request::Parts};
use redlock_core::{AcquireOptions, Redlock};

use crate::{Hold, Rejection, ResponseBody, grpc::Protocol, metrics::RequestReports};

/// The rules: which requests a layer locks, for how long, and how it answers those that it refuses.
pub(crate) struct HttpRules {
    pub(crate) hold: Hold,
    /// The methods that are locked; `None` for all.
    pub(crate) only: Option<Vec<Method>>,
    pub(crate) options_with: Option<Arc<OptionsOfHead>>,
    pub(crate) reject_with: Option<Arc<RejectWith>>,
    pub(crate) reports: Arc<RequestReports>,
    /// Whether the log has the warning of [`warn_of_unserved`](Self::warn_of_unserved).
    has_warned: AtomicBool,
}

/// Names the options for a request by its head.
pub(crate) type OptionsOfHead = dyn Fn(&Parts) -> AcquireOptions + Send + Sync;
/// Makes the answer to a refused request.
pub(crate) type RejectWith = dyn Fn(&Rejection) -> Response<Bytes> + Send + Sync;

impl HttpRules {
    pub(crate) fn new(redlock: Redlock) -> Self {
        Self {
            hold: Hold::default(),
            only: None,
            options_with: None,
            reject_with: None,
            reports: Arc::new(RequestReports::new(redlock)),
            has_warned: AtomicBool::new(false),
        }
    }

    /// Returns whether the layer locks requests of `method`.
    pub(crate) fn lock(&self, method: &Method) -> bool {
        self.only.as_ref().is_none_or(|only| only.contains(method))
    }

    /// Returns the options for `request` by its head, if the layer has a function for them.
    pub(crate) fn options<B>(&self, request: Request<B>) -> (AcquireOptions, Request<B>) {
        let Some(options_with) = &self.options_with else {
            return (AcquireOptions::new(), request);
        };
        let (head, body) = request.into_parts();
        let options = options_with(&head);
        (options, Request::from_parts(head, body))
    }

    /// Logs and counts a refusal, and makes its answer.
    pub(crate) fn refuse<B>(
        &self,
        rejection: Rejection,
        protocol: Protocol,
    ) -> Response<ResponseBody<B>> {
        self.reports.refused(&rejection);
        self.answer(rejection, protocol)
    }

    /// Makes the answer to a request that was refused, which the log has already.
    pub(crate) fn answer<B>(
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

    /// Warns, once for a layer, of a request that has held the lock though no handler served its method.
    ///
    /// A layer cannot know that before it calls the inner service: what axum puts into `MethodRouter::layer` is one
    /// opaque route for each method and one for all others.
    pub(crate) fn warn_of_unserved(&self, answer: StatusCode) {
        if answer == StatusCode::METHOD_NOT_ALLOWED
            && !self.has_warned.swap(true, Ordering::Relaxed)
        {
            tracing::warn!(
                target: crate::TARGET,
                "a request has waited for and held its lock to be answered with 405: put the layer by \
                 `MethodRouter::route_layer` around handlers only, or name the methods that it locks with `only`"
            );
        }
    }
}

impl fmt::Debug for HttpRules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpRules")
            .field("hold", &self.hold)
            .field("only", &self.only)
            .field("options_with", &self.options_with.is_some())
            .field("reject_with", &self.reject_with.is_some())
            .finish_non_exhaustive()
    }
}
