//! The layer for services whose requests only the leader serves.

use std::{
    fmt,
    pin::Pin,
    sync::{Arc, MutexGuard, PoisonError},
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Request, Response, StatusCode, header};
use http_body::Body;
use pin_project_lite::pin_project;
use redlock_core::{Election, HolderLabel, Leadership};
use tokio::{sync::Mutex, time::Instant};
use tower_layer::Layer;
use tower_service::Service;

use crate::{
    Rejection, ResponseBody,
    grpc::Protocol,
    metrics::{self, RequestCounters, RequestOutcome},
    request::call::{Admission, Completion, LockedCall},
};

/// The header in which a follower names the leader, by its candidate: `redlock-leader`.
pub const LEADER: HeaderName = HeaderName::from_static("redlock-leader");

/// Lets requests through to the inner service only on the replica that leads an election.
///
/// It needs a task that campaigns, such as [`Election::lead`] of the same election or of a clone.
/// The leader puts a view of its term, a [`Lease`](redlock_core::Lease), into the request's extensions.
/// It decides when the request comes: a request that has begun goes on if the term is lost meanwhile.
/// A handler whose work must not overlap with that of the next leader uses the lease: it [runs](redlock_core::Lease::run)
/// its work for as long as the term lasts, or lets the resource refuse older [tokens](redlock_core::Lease::token).
///
/// The other replicas answer with `503`, `Retry-After`, and the leader's candidate in the header [`LEADER`], if they know
/// it; or they [redirect](Self::redirect).
/// A follower asks the nodes for the leader when a request comes, once in a third of the election's ttl at most.
/// Requests that come while another one asks are answered by the look before, and only wait if there was none.
/// So a follower may name a leader whose term has ended, for a third of the ttl and the time that the look takes.
///
/// # Examples
///
/// ```
/// use axum::{Extension, Router, body::Body, http::{Request, StatusCode}, routing::post};
/// use redlock_core::{Lease, Redlock, Wait};
/// use redlock_tower::LeaderOnlyLayer;
/// use tower::ServiceExt;
///
/// async fn import(Extension(term): Extension<Lease>) -> String {
///     format!("written with the token {}", term.token())
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let redlock = Redlock::builder().in_memory_nodes(3).build().await?;
/// let replica = |name: &str| redlock.election("importer").candidate(name).build();
/// let app = |election| Router::new().route("/import", post(import)).layer(LeaderOnlyLayer::new(election));
/// let ask = || Request::post("/import").body(Body::empty()).expect("it is valid");
///
/// let leader = replica("web-7")?;
/// let term = leader.lead_with(Wait::Never).await?; // or a task with `leader.lead(..)`
/// let served: axum::response::Response = app(leader).oneshot(ask()).await?;
/// assert_eq!(served.status(), StatusCode::OK);
///
/// let refused = app(replica("web-8")?).oneshot(ask()).await?;
/// assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
/// assert_eq!(refused.headers()["redlock-leader"], "web-7");
/// # drop(term);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "a layer does nothing until it is put around a service"]
pub struct LeaderOnlyLayer {
    election: Election,
    last_look: Arc<LastLook>,
    counters: Arc<RequestCounters>,
    redirects: bool,
}

/// The leader that a follower saw last.
#[derive(Debug, Default)]
struct LastLook {
    /// When the look ended, and what it said.
    seen: std::sync::Mutex<Option<(Instant, Leadership)>>,
    /// Locked while a request looks.
    looking: Mutex<()>,
}

impl LastLook {
    fn seen(&self) -> MutexGuard<'_, Option<(Instant, Leadership)>> {
        // Nothing panics while it is locked.
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LeaderOnlyLayer {
    /// Makes a layer that lets requests through while the candidate of `election` leads.
    pub fn new(election: Election) -> Self {
        metrics::describe();
        Self {
            election,
            last_look: Arc::default(),
            counters: Arc::default(),
            redirects: false,
        }
    }

    /// Lets followers answer with `307 Temporary Redirect` where the leader's candidate is a base URL, such as
    /// `http://10.0.0.7:8080`: the location is the base with the path and the query of the request.
    ///
    /// In axum's nested routers the path is the whole one, with the feature `axum`.
    /// A follower does not redirect to its own candidate, nor a request of gRPC.
    ///
    /// # Examples
    ///
    /// ```
    /// use axum::{Router, body::Body, http::{Request, StatusCode}, routing::post};
    /// # use redlock_core::{Redlock, Wait};
    /// use redlock_tower::LeaderOnlyLayer;
    /// use tower::ServiceExt;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let redlock = Redlock::builder().in_memory_nodes(3).build().await?;
    /// let replica = |address: &str| redlock.election("importer").candidate(format!("http://{address}")).build();
    /// let leader = replica("10.0.0.7:8080")?;
    /// let term = leader.lead_with(Wait::Never).await?;
    ///
    /// let leader_only = LeaderOnlyLayer::new(replica("10.0.0.8:8080")?).redirect();
    /// let app: Router = Router::new().route("/import", post(async || "done")).layer(leader_only);
    /// let answer = app.oneshot(Request::post("/import?all").body(Body::empty())?).await?;
    /// assert_eq!(answer.status(), StatusCode::TEMPORARY_REDIRECT);
    /// assert_eq!(answer.headers()["location"], "http://10.0.0.7:8080/import?all");
    /// # drop(term);
    /// # Ok(())
    /// # }
    /// ```
    pub fn redirect(mut self) -> Self {
        self.redirects = true;
        self
    }

    fn count(&self, outcome: RequestOutcome) {
        #[cfg(feature = "metrics")]
        self.counters.count(outcome, self.election.lock_labels());
        #[cfg(not(feature = "metrics"))]
        let _ = (&self.counters, outcome);
    }

    /// Refuses a request, with the leader if it is known.
    async fn refuse(self) -> Rejection {
        let leader = self.leader().await;
        Rejection::follower(match leader {
            Leadership::Leader { candidate, .. } => candidate,
            Leadership::None | Leadership::Unknown => None,
        })
    }

    /// Returns the leader by the last look, or by a new one if that is old and no other request looks.
    async fn leader(&self) -> Leadership {
        let fresh = || {
            let last = *self.last_look.seen();
            last.filter(|(at, _)| at.elapsed() < self.election.ttl() / 3)
        };
        if let Some((_, leader)) = fresh() {
            return leader;
        }
        let last = *self.last_look.seen();
        let looking = match (self.last_look.looking.try_lock(), last) {
            (Ok(looking), _) => looking,
            // The look may take as long as the nodes' time limits.
            (Err(_), Some((_, leader))) => return leader,
            (Err(_), None) => self.last_look.looking.lock().await,
        };
        let leader = match fresh() {
            Some((_, leader)) => leader,
            None => self.election.leader().await,
        };
        *self.last_look.seen() = Some((Instant::now(), leader));
        drop(looking);
        leader
    }

    /// Returns the path and the query behind a location, if a request for them may be redirected.
    fn target<B>(&self, request: &Request<B>, protocol: Protocol) -> Option<String> {
        if !self.redirects || protocol == Protocol::Grpc {
            return None;
        }
        let uri = request.uri();
        #[cfg(feature = "axum")]
        let uri = (request.extensions())
            .get::<::axum::extract::OriginalUri>()
            .map_or_else(|| uri, |original| &original.0);
        Some(uri.path_and_query()?.as_str().to_owned())
    }
}

impl<S> Layer<S> for LeaderOnlyLayer {
    type Service = LeaderOnlyService<S>;

    fn layer(&self, inner: S) -> Self::Service {
        LeaderOnlyService {
            inner,
            layer: self.clone(),
        }
    }
}

/// The service that [`LeaderOnlyLayer`] makes.
///
/// # Readiness
///
/// The service is always ready.
/// The leader makes the inner service ready when a request has come, and a follower never does.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
/// use axum::{body::Body, http::{Request, Response, StatusCode}};
/// use redlock_tower::{LeaderOnlyLayer, LeaderOnlyService};
/// use tower::{Layer, ServiceExt, service_fn};
///
/// let inner = service_fn(async |_: Request<Body>| Ok::<_, std::io::Error>(Response::new(Body::empty())));
/// let election = redlock.election("importer").build()?;
/// let service: LeaderOnlyService<_> = LeaderOnlyLayer::new(election).layer(inner);
/// let refused = service.oneshot(Request::new(Body::empty())).await?;
/// assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE, "it does not lead");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct LeaderOnlyService<S> {
    inner: S,
    layer: LeaderOnlyLayer,
}

impl<S, ReqBody, ResBody> Service<Request<ReqBody>> for LeaderOnlyService<S>
where
    S: Service<Request<ReqBody>, Response = Response<ResBody>> + Clone,
    ReqBody: Send + 'static,
    ResBody: Body<Data = Bytes>,
{
    type Response = Response<ResponseBody<ResBody>>;
    type Error = S::Error;
    type Future = LeaderOnlyFuture<S, ReqBody>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<ReqBody>) -> Self::Future {
        let layer = &self.layer;
        let protocol = Protocol::of(request.headers());
        let mut target = None;
        let admission = match layer.election.lease() {
            Some(term) => {
                request.extensions_mut().insert(term);
                Admission::Unlocked(request)
            }
            None => {
                target = layer.target(&request, protocol);
                let refuse = layer.clone().refuse();
                Admission::Acquiring(Box::pin(async move { Err(refuse.await) }))
            }
        };
        LeaderOnlyFuture {
            // `self.inner` was never made ready, so its clone may be taken instead of itself.
            call: LockedCall::new(self.inner.clone(), admission),
            layer: self.layer.clone(),
            target,
            protocol,
        }
    }
}

pin_project! {
    /// The response's future of [`LeaderOnlyService`].
    ///
    /// # Panics
    ///
    /// If the future is polled outside a tokio runtime with its timer enabled, or after it is done.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the inner future, and has no other effect.
    #[must_use = "futures do nothing unless polled"]
    pub struct LeaderOnlyFuture<S, ReqBody>
    where
        S: Service<Request<ReqBody>>,
    {
        #[pin]
        call: LockedCall<S, Request<ReqBody>>,
        layer: LeaderOnlyLayer,
        target: Option<String>,
        protocol: Protocol,
    }
}

impl<S, ReqBody, ResBody> Future for LeaderOnlyFuture<S, ReqBody>
where
    S: Service<Request<ReqBody>, Response = Response<ResBody>>,
    ResBody: Body<Data = Bytes>,
{
    type Output = Result<Response<ResponseBody<ResBody>>, S::Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let protocol = *this.protocol;
        Poll::Ready(match ready!(this.call.poll(cx)) {
            Completion::Served(response, _) => {
                this.layer.count(RequestOutcome::Unlocked);
                Ok(response.map(|body| ResponseBody::new(body, None, protocol, None)))
            }
            Completion::Failed(error) => Err(error),
            Completion::Refused(rejection) => {
                rejection.log(None);
                this.layer.count(RequestOutcome::Refused(rejection.kind()));
                let target = this.target.as_deref();
                let own = this.layer.election.candidate();
                let mut response = answer(&rejection, protocol, target, own);
                response.extensions_mut().insert(rejection);
                Ok(response.map(ResponseBody::refusal))
            }
        })
    }
}

/// Returns a follower's answer to a request for `target`, if that may be redirected.
fn answer(
    rejection: &Rejection,
    protocol: Protocol,
    target: Option<&str>,
    own: HolderLabel,
) -> Response<Bytes> {
    let leader = rejection.leader();
    let mut response = match protocol {
        Protocol::Http => rejection.problem(),
        Protocol::Grpc => rejection.grpc(),
    };
    let location = leader
        .filter(|leader| **leader != own)
        .zip(target)
        .and_then(|(leader, target)| location(leader.as_str(), target));
    if let Some(location) = location {
        response = Response::new(Bytes::new());
        *response.status_mut() = StatusCode::TEMPORARY_REDIRECT;
        response.headers_mut().insert(header::LOCATION, location);
    }
    // A candidate has only printable characters of ASCII.
    if let Some(leader) = leader.and_then(|leader| HeaderValue::from_str(leader.as_str()).ok()) {
        response.headers_mut().insert(LEADER, leader);
    }
    response
}

/// Returns the URL of `target` below the base URL `base`; `None` if that is no base URL.
fn location(base: &str, target: &str) -> Option<HeaderValue> {
    let authority = ["http://", "https://"]
        .iter()
        .find_map(|scheme| base.strip_prefix(scheme))?;
    if authority.is_empty() || authority.starts_with('/') || authority.contains(['?', '#', ' ']) {
        return None;
    }
    HeaderValue::try_from(format!("{}{target}", base.trim_end_matches('/'))).ok()
}

impl<S, ReqBody> fmt::Debug for LeaderOnlyFuture<S, ReqBody>
where
    S: Service<Request<ReqBody>>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeaderOnlyFuture")
            .field("state", &self.call)
            .finish_non_exhaustive()
    }
}
