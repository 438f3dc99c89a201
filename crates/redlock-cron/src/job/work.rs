//! The work of a job in a run: a function or a service.

use std::{
    error::Error,
    future::poll_fn,
    sync::{Mutex, PoisonError},
};

use chrono::{DateTime, Utc};
use futures_util::{FutureExt, future::BoxFuture};
use tower_service::Service;

use crate::Run;

/// The error that a job's own error becomes.
pub type BoxError = Box<dyn Error + Send + Sync>;

pub(crate) type Work = Box<dyn Fn(Run) -> BoxFuture<'static, Result<(), BoxError>> + Send + Sync>;

/// Whether a replica asks for a tick.
pub(crate) type Condition = Box<dyn Fn(DateTime<Utc>) -> bool + Send + Sync>;

pub(super) fn boxed<F, W, E>(work: W) -> Work
where
    W: Fn(Run) -> F + Send + Sync + 'static,
    F: Future<Output = Result<(), E>> + Send + 'static,
    E: Into<BoxError>,
{
    Box::new(move |run| {
        let done = work(run);
        async move { done.await.map_err(Into::into) }.boxed()
    })
}

pub(super) fn calls<S>(service: S) -> Work
where
    S: Service<Run> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Into<BoxError>,
{
    // A service need not be shared between threads.
    let service = Mutex::new(service);
    Box::new(move |run| {
        let mut service = service
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        async move {
            poll_fn(|cx| service.poll_ready(cx))
                .await
                .map_err(Into::into)?;
            service.call(run).await.map(drop).map_err(Into::into)
        }
        .boxed()
    })
}
