use std::{
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http::{HeaderMap, Request, Response, header};
use http_body::Body;
use pin_project_lite::pin_project;
use tower_service::Service;

use super::rules::HttpRules;
use crate::{
    Hold, Rejection, ResponseBody,
    grpc::Protocol,
    metrics::RequestOutcome,
    request::call::{Completion, LockedCall},
    request::handler_locks::RequestLocks,
};

pin_project! {
    /// The response's future of [`RedlockService`](crate::RedlockService).
    ///
    /// The future acquires the lock, makes the inner service ready and calls it.
    /// From the moment it holds the lock, it checks the lease before each poll of the inner service.
    /// If the lease is lost, it drops the inner future and answers with 503, unless
    /// [`LossPolicy::Signal`](crate::LossPolicy::Signal) is set.
    ///
    /// # Panics
    ///
    /// If the future is polled outside a tokio runtime with its timer enabled, or after it is done.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future at any point drops the inner future, and then gives up the place in the queue and the lock.
    /// [The crate page](crate#cancel-safety) says when a server drops it.
    #[must_use = "futures do nothing unless polled"]
    pub struct ResponseFuture<S, ReqBody>
    where
        S: Service<Request<ReqBody>>,
    {
        #[pin]
        call: LockedCall<S, Request<ReqBody>>,
        rules: Arc<HttpRules>,
        protocol: Protocol,
    }
}

impl<S, ReqBody> ResponseFuture<S, ReqBody>
where
    S: Service<Request<ReqBody>>,
{
    pub(crate) fn new(
        call: LockedCall<S, Request<ReqBody>>,
        rules: Arc<HttpRules>,
        protocol: Protocol,
    ) -> Self {
        Self {
            call,
            rules,
            protocol,
        }
    }
}

impl<S, ReqBody, ResBody> Future for ResponseFuture<S, ReqBody>
where
    S: Service<Request<ReqBody>, Response = Response<ResBody>>,
    ResBody: Body<Data = Bytes>,
{
    type Output = Result<Response<ResponseBody<ResBody>>, S::Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        Poll::Ready(match ready!(this.call.poll(cx)) {
            Completion::Served(response, locks) => {
                let protocol = *this.protocol;
                let refused = response.extensions().get::<Rejection>();
                let outcome = match (refused, &locks) {
                    (Some(rejection), _) => RequestOutcome::Refused(rejection.kind()),
                    (None, Some(RequestLocks::Layer(_))) => RequestOutcome::Served,
                    (None, Some(RequestLocks::Handler(locks))) => locks.outcome(),
                    (None, None) => RequestOutcome::Unlocked,
                };
                // Only metrics need it, and it may cost an allocation.
                let is_counted = cfg!(feature = "metrics");
                let own = locks
                    .as_ref()
                    .filter(|_| is_counted)
                    .and_then(RequestLocks::class);
                let class = refused.and_then(Rejection::class).or(own.as_deref());
                this.rules.reports.count(outcome, class);
                match &locks {
                    Some(RequestLocks::Layer(_)) => this.rules.warn_of_unserved(response.status()),
                    // What the handler was refused is told as the layer tells it.
                    Some(RequestLocks::Handler(locks)) if locks.has_refused() => {
                        // Not if the handler has given it another status: then the answer is its own.
                        if let Some(rejection) = refused
                            && response.status() == rejection.status()
                        {
                            let mut answer = this.rules.answer(rejection.clone(), protocol);
                            keep_headers(response.headers(), answer.headers_mut());
                            return Poll::Ready(Ok(answer));
                        }
                    }
                    _ => {}
                }
                let locks = locks.and_then(|locks| match this.rules.hold {
                    Hold::Body => locks.beyond_the_head(),
                    Hold::Response => {
                        locks.let_go();
                        None
                    }
                });
                let reports = locks.is_some().then(|| Arc::clone(&this.rules.reports));
                Ok(response.map(|body| ResponseBody::new(body, locks, protocol, reports)))
            }
            Completion::Failed(error) => Err(error),
            Completion::Refused(rejection) => Ok(this.rules.refuse(rejection, *this.protocol)),
        })
    }
}

/// Keeps what layers inside of this one have added to an answer whose body and reason are replaced.
fn keep_headers(inner: &HeaderMap, answer: &mut HeaderMap) {
    let replaced = [
        header::CONTENT_TYPE,
        header::CONTENT_LENGTH,
        header::CONTENT_ENCODING,
        header::TRANSFER_ENCODING,
        header::RETRY_AFTER,
    ];
    for name in inner.keys().filter(|name| !replaced.contains(name)) {
        if !answer.contains_key(name) {
            for value in inner.get_all(name) {
                answer.append(name, value.clone());
            }
        }
    }
}

impl<S, ReqBody> fmt::Debug for ResponseFuture<S, ReqBody>
where
    S: Service<Request<ReqBody>>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFuture")
            .field("state", &self.call)
            .finish_non_exhaustive()
    }
}
