//! Refused requests, and their answers as of RFC 9457, "Problem Details for HTTP APIs".

use std::{
    error::Error,
    fmt::{self, Write},
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use redlock_core::{AcquireError, AcquireErrorKind, HolderLabel, LeaseLost, LossReason, Redlock};

use crate::{
    KeyError,
    retry_after::{HoldAverage, OUTAGE, SOON, spread},
};

/// A request that the layer has refused, or has cut off.
///
/// The layer puts it into the extensions of its response, for outer layers.
/// It is meant for the log: [`source`](Error::source) has the answer of each node.
/// Neither the rejection nor the response names the key or the holder; only a follower names the leader.
///
/// # Examples
///
/// ```
/// use axum::{Router, body::Body, http::{Request, StatusCode}, middleware, response::Response, routing::post};
/// use redlock_core::{AcquireOptions, Redlock, Wait};
/// use redlock_tower::{PathKey, RedlockLayer, Rejection, RejectionKind};
/// use std::error::Error;
/// use tower::ServiceExt;
///
/// /// Tells the log of what was refused because of the nodes.
/// async fn report(response: Response) -> Response {
///     if let Some(rejection) = response.extensions().get::<Rejection>()
///         && rejection.kind() == RejectionKind::Unavailable
///     {
///         eprintln!("{rejection}: {:?}", rejection.source());
///     }
///     response
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let redlock = Redlock::builder().in_memory_nodes(3).build().await?;
/// let lock = RedlockLayer::builder(redlock.clone())
///     .options(AcquireOptions::new().wait(Wait::Never))
///     .build(PathKey::new("order", "order_id"))?;
/// let app: Router = Router::new()
///     .route("/orders/{order_id}/pay", post(async || "paid").route_layer(lock))
///     .layer(middleware::map_response(report));
///
/// let another = redlock.acquire("order:42").await?;
/// let refused = app.oneshot(Request::post("/orders/42/pay").body(Body::empty())?).await?;
/// let rejection = refused.extensions().get::<Rejection>().expect("it was refused");
/// assert_eq!(rejection.kind(), RejectionKind::Contended);
/// assert_eq!(rejection.status(), StatusCode::CONFLICT);
/// # drop(another);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Rejection {
    cause: Cause,
    retry_after: Option<Duration>,
    /// The class of the lock, empty if it has none; `None` if the request has named no lock.
    class: Option<Arc<str>>,
}

#[derive(Clone, Debug)]
enum Cause {
    // Behind an `Arc`, because values in a response's extensions are cloned.
    Acquire(Arc<AcquireError>),
    Key(KeyError),
    Lost(LossReason),
    Follower(Option<HolderLabel>),
}

/// The kind of a [`Rejection`], which tells whether the client, the operator or the program must act.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum RejectionKind {
    /// Another request holds the resource, and the wait ran out, or the layer refused a wait in which two requests
    /// would have waited for each other.
    /// The client should try again later.
    Contended,
    /// The request names no resource although it must, or an invalid one, or a
    /// [`ReadBodyLayer`](crate::ReadBodyLayer) could not read its body: the client must change the request.
    Key,
    /// Too many requests of this process wait already: the service should shed load.
    Overloaded,
    /// No majority of the nodes is usable: the operator must look at the nodes.
    Unavailable,
    /// The client of the nodes was closed: this replica shuts down.
    Closed,
    /// The lease was lost, and the layer dropped the handler or the body unfinished.
    Lost,
    /// This replica is not the leader, which alone serves such requests: the client should ask the
    /// [leader](Rejection::leader).
    Follower,
    /// The layer asks for something impossible: the program must be changed.
    Misuse,
}

impl Rejection {
    fn new(cause: Cause, average: &HoldAverage) -> Self {
        let mut rejection = Self {
            cause,
            retry_after: None,
            class: None,
        };
        rejection.retry_after = rejection.pause(average).map(spread);
        rejection
    }

    /// Makes the rejection of a request to a layer whose requests hold their locks for `average`.
    pub(crate) fn acquire(error: AcquireError, average: &HoldAverage) -> Self {
        Self::new(Cause::Acquire(Arc::new(error)), average)
    }

    /// Returns the same for a request that has named a lock of this class.
    pub(crate) fn of_class(mut self, class: Option<&str>) -> Self {
        self.class = Some(class.unwrap_or_default().into());
        self
    }

    pub(crate) fn class(&self) -> Option<&str> {
        self.class.as_deref()
    }

    pub(crate) fn lost(reason: LossReason) -> Self {
        Self::new(Cause::Lost(reason), &HoldAverage::default())
    }

    pub(crate) fn follower(leader: Option<HolderLabel>) -> Self {
        Self::new(Cause::Follower(leader), &HoldAverage::default())
    }

    /// Returns the candidate that leads, if a [follower](RejectionKind::Follower) has refused the request and knows it.
    pub fn leader(&self) -> Option<&HolderLabel> {
        match &self.cause {
            Cause::Follower(leader) => leader.as_ref(),
            _ => None,
        }
    }

    /// Returns why the request was refused.
    pub fn kind(&self) -> RejectionKind {
        match &self.cause {
            Cause::Key(error) if error.is_misuse() => RejectionKind::Misuse,
            Cause::Key(_) => RejectionKind::Key,
            Cause::Lost(_) => RejectionKind::Lost,
            Cause::Follower(_) => RejectionKind::Follower,
            Cause::Acquire(error) => match error.kind() {
                AcquireErrorKind::Contended | AcquireErrorKind::Deadlock => {
                    RejectionKind::Contended
                }
                AcquireErrorKind::Overloaded => RejectionKind::Overloaded,
                AcquireErrorKind::Closed => RejectionKind::Closed,
                AcquireErrorKind::Misuse | AcquireErrorKind::AlreadyHeld => RejectionKind::Misuse,
                // Also for a kind that is not known here: it is the answer that lets nothing through
                // and blames neither the request nor the program.
                _ => RejectionKind::Unavailable,
            },
        }
    }

    /// Returns the status of the answer.
    pub fn status(&self) -> StatusCode {
        match self.kind() {
            RejectionKind::Contended => StatusCode::CONFLICT,
            RejectionKind::Misuse => StatusCode::INTERNAL_SERVER_ERROR,
            RejectionKind::Overloaded
            | RejectionKind::Unavailable
            | RejectionKind::Closed
            | RejectionKind::Lost
            | RejectionKind::Follower => StatusCode::SERVICE_UNAVAILABLE,
            RejectionKind::Key => match &self.cause {
                Cause::Key(error) => error.status(),
                _ => StatusCode::BAD_REQUEST,
            },
        }
    }

    /// Returns the time after which a client should try again; `None` if another try cannot succeed.
    ///
    /// The time follows from the number of requests of this replica that are ahead, from the time for which recent
    /// requests of the layer have held their locks, from the time for which the nodes keep the key of a holder on
    /// another replica, and from the time at which quarantined nodes vote again.
    /// It is an estimate, because nothing tells when a live holder will be done.
    /// A random time is added, so that requests which were refused together do not come back together: up to a half of
    /// the estimate, or up to a second if that is more.
    /// All clones of a rejection return the same time.
    pub fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }

    /// Returns when another try makes sense at the earliest.
    fn pause(&self, average: &HoldAverage) -> Option<Duration> {
        Some(match (self.kind(), &self.cause) {
            (RejectionKind::Contended | RejectionKind::Overloaded, Cause::Acquire(error)) => {
                average.until_free(error)
            }
            // Nodes that may have forgotten leases say when they vote again.
            (RejectionKind::Unavailable, Cause::Acquire(error)) => {
                error.ready_in().unwrap_or(OUTAGE)
            }
            (RejectionKind::Key | RejectionKind::Misuse, _) => return None,
            _ => SOON,
        })
    }

    /// Returns the response, `application/problem+json` as defined by RFC 9457.
    ///
    /// `Retry-After` is in whole seconds, rounded up, and never 0.
    pub fn problem(&self) -> Response<Bytes> {
        problem(self.status(), self.detail(), self.retry_after())
    }

    /// Logs a refusal with its cause, and with the client of the nodes if that is known.
    ///
    /// The client itself warns of an outage of the nodes.
    /// So only misuse, which the client cannot see, is logged as an error; the rest is for debugging.
    pub(crate) fn log(&self, redlock: Option<&Redlock>) {
        let client = redlock.map(Redlock::id);
        let namespace = redlock.map(Redlock::namespace);
        let namespace = namespace.as_deref();
        let kind = self.kind();
        // As a text, so that it stays on one line; it is formatted only if a subscriber listens.
        let cause = || self.source().map(ToString::to_string).unwrap_or_default();
        match kind {
            RejectionKind::Misuse => {
                tracing::error!(target: crate::TARGET, client, namespace, ?kind, cause = cause(), "refused: {self}");
            }
            _ => {
                tracing::debug!(target: crate::TARGET, client, namespace, ?kind, cause = cause(), "refused: {self}");
            }
        }
    }

    /// Returns what the client is told.
    pub(crate) fn detail(&self) -> &str {
        if let Cause::Key(error) = &self.cause {
            return error.detail();
        }
        match self.kind() {
            RejectionKind::Contended => "another request holds the resource",
            RejectionKind::Overloaded => "too many requests wait for the resource",
            RejectionKind::Closed => "the server is shutting down",
            RejectionKind::Lost => {
                "the lock on the resource was lost; the request may be half done"
            }
            RejectionKind::Follower => "this replica is not the leader",
            RejectionKind::Key | RejectionKind::Misuse => "the server's locking is set up wrongly",
            RejectionKind::Unavailable => "the resource cannot be locked at the moment",
        }
    }
}

impl From<KeyError> for Rejection {
    fn from(error: KeyError) -> Self {
        Self::new(Cause::Key(error), &HoldAverage::default())
    }
}

impl From<AcquireError> for Rejection {
    fn from(error: AcquireError) -> Self {
        Self::acquire(error, &HoldAverage::default())
    }
}

impl From<LeaseLost> for Rejection {
    fn from(lost: LeaseLost) -> Self {
        Self::lost(lost.reason())
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.cause {
            Cause::Acquire(_) => f.write_str("the resource could not be locked"),
            Cause::Key(_) => f.write_str("the request does not say what to lock"),
            Cause::Lost(reason) => write!(f, "the lease was lost: {reason}"),
            Cause::Follower(_) => f.write_str("this replica is not the leader"),
        }
    }
}

impl Error for Rejection {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &self.cause {
            Cause::Acquire(error) => Some(&**error),
            Cause::Key(error) => Some(error),
            Cause::Lost(_) | Cause::Follower(_) => None,
        }
    }
}

/// Returns an answer that says what went wrong.
pub(crate) fn problem(
    status: StatusCode,
    detail: &str,
    retry_after: Option<Duration>,
) -> Response<Bytes> {
    // "When 'about:blank' is used, the title SHOULD be the same as the recommended HTTP status phrase."
    let title = status.canonical_reason().unwrap_or_default();
    let body = format!(
        r#"{{"type":"about:blank","title":{},"status":{},"detail":{}}}"#,
        json_string(title),
        status.as_u16(),
        json_string(detail),
    );
    let mut response = Response::new(Bytes::from(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/problem+json"),
    );
    if let Some(after) = retry_after {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(whole_seconds(after)));
    }
    response
}

/// Rounded up and never 0: a client that is told 0 comes back at once, and so do all the others.
fn whole_seconds(duration: Duration) -> u64 {
    let started = u64::from(duration.subsec_nanos() > 0);
    duration.as_secs().saturating_add(started).max(1)
}

/// `text` in quotation marks, as JSON has it.
fn json_string(text: &str) -> String {
    let mut json = String::with_capacity(text.len() + 2);
    json.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => json.extend(['\\', c]),
            c if c < ' ' => {
                write!(json, "\\u{:04x}", u32::from(c))
                    .expect("a string takes all that is written");
            }
            c => json.push(c),
        }
    }
    json.push('"');
    json
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_is_rounded_up_and_never_zero() {
        let cases = [(0, 1), (1, 1), (999, 1), (1000, 1), (1001, 2), (5000, 5)];
        for (ms, seconds) in cases {
            assert_eq!(whole_seconds(Duration::from_millis(ms)), seconds, "{ms} ms");
        }
        assert_eq!(whole_seconds(Duration::MAX), u64::MAX);
    }

    #[test]
    fn any_detail_makes_valid_json() {
        let detail = "quotes \" and \\ and\u{1}\n\u{7f} and ü 🔒";
        let response = problem(StatusCode::IM_A_TEAPOT, detail, None);
        let json: serde_json::Value = serde_json::from_slice(response.body()).unwrap();
        assert_eq!(json["detail"], detail);
        assert_eq!(json["title"], "I'm a teapot");
        assert_eq!(json["status"], 418);
    }
}
