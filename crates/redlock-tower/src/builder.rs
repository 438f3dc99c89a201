use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Method, Response, StatusCode, request::Parts};
use redlock_core::{AcquireOptions, Redlock, Wait};

use crate::{
    ConfigError, Hold, OnLost, RedlockLayer, Rejection,
    answers::Answers,
    service::Rules,
    shared::Shared,
    terms::{PerRequest, Terms},
};

/// Describes a [`RedlockLayer`] that differs from the client's defaults.
///
/// # Examples
///
/// ```
/// use redlock_core::{Redlock, ResourceKey, Wait};
/// use redlock_tower::{HeaderKey, Hold, RedlockLayer};
/// use std::time::Duration;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let redlock = Redlock::builder().in_memory_nodes(3).build().await?;
/// let layer = RedlockLayer::builder(redlock)
///     .wait(Wait::Never)
///     .ttl(Duration::from_secs(3))
///     .max_hold(Duration::from_secs(60))
///     .hold(Hold::Response)
///     .build(HeaderKey::new("account", http::HeaderName::from_static("x-account")))?;
/// # let _ = layer;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `build` is called"]
pub struct RedlockLayerBuilder {
    redlock: Redlock,
    options: AcquireOptions,
    hold: Hold,
    on_lost: OnLost,
    answers: Answers,
    only: Option<Arc<[Method]>>,
    per_request: PerRequest,
}

impl RedlockLayer<()> {
    /// Starts to describe a layer; the key comes last, in [`RedlockLayerBuilder::build`].
    pub fn builder(redlock: Redlock) -> RedlockLayerBuilder {
        RedlockLayerBuilder::new(redlock)
    }
}

impl RedlockLayerBuilder {
    fn new(redlock: Redlock) -> Self {
        Self {
            redlock,
            options: AcquireOptions::new(),
            hold: Hold::default(),
            on_lost: OnLost::default(),
            answers: Answers::default(),
            only: None,
            per_request: PerRequest::default(),
        }
    }

    /// Sets how long a request waits while another holds its resource; the client's wait by default.
    ///
    /// A wait is always finite, and never longer than a day.
    pub fn wait(mut self, wait: Wait) -> Self {
        self.options = self.options.wait(wait);
        self
    }

    /// Sets how long a request waits by what its head says; where that is `None`, it is [`wait`](Self::wait).
    ///
    /// It is asked for each request that the layer may lock, before its key is.
    /// Where clients choose how long they wait, give that a bound: each request that waits has a place in the queue.
    ///
    /// # Examples
    ///
    /// Browsers are answered at once, and a batch that says so waits for its turn:
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use axum::{Router, body::Body, http::{Request, StatusCode}, routing::post};
    /// use redlock_core::{Redlock, Wait};
    /// use redlock_tower::{PathKey, RedlockLayer};
    /// use std::time::Duration;
    /// use tower::ServiceExt;
    ///
    /// let redlock = Redlock::builder().in_memory_nodes(3).build().await?;
    /// let lock = RedlockLayer::builder(redlock.clone())
    ///     .wait(Wait::Never)
    ///     .wait_with(|head| {
    ///         let is_batch = head.headers.contains_key("x-batch");
    ///         is_batch.then_some(Wait::UpTo(Duration::from_secs(30)))
    ///     })
    ///     .build(PathKey::new("order", "order_id").parsed::<u64>())?;
    /// let pay = post(async || "paid").route_layer(lock);
    /// let app: Router = Router::new().route("/orders/{order_id}/pay", pay);
    ///
    /// let another = redlock.acquire("order:42").await?;
    /// let browser = Request::post("/orders/42/pay").body(Body::empty())?;
    /// assert_eq!(app.clone().oneshot(browser).await?.status(), StatusCode::CONFLICT);
    ///
    /// let batch = Request::post("/orders/42/pay").header("x-batch", "7").body(Body::empty())?;
    /// let (answer, released) = tokio::join!(app.oneshot(batch), another.release());
    /// assert_eq!(answer?.status(), StatusCode::OK);
    /// # released?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn wait_with<F>(mut self, wait: F) -> Self
    where
        F: Fn(&Parts) -> Option<Wait> + Send + Sync + 'static,
    {
        self.per_request.wait = Some(Arc::new(wait));
        self
    }

    /// Sets how long an outage of the nodes may last before requests are refused at once; what the client has by
    /// default, which is [2 s](redlock_core::RedlockBuilder::quorum_wait).
    pub fn quorum_wait(mut self, quorum_wait: Duration) -> Self {
        self.options = self.options.quorum_wait(quorum_wait);
        self
    }

    /// Sets how long the nodes keep the key without a renewal; the client's time to live by default.
    ///
    /// The lease is renewed for as long as the request holds it, so this bounds how long a crashed
    /// replica keeps others out, and not how long a handler may run.
    /// From 100 ms to the client's [`max_ttl`](Redlock::max_ttl), in whole milliseconds.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.options = self.options.ttl(ttl);
        self
    }

    /// Sets how long the nodes keep a request's key without a renewal by what its head says; where that is `None`, it is
    /// [`ttl`](Self::ttl).
    ///
    /// A time to live that the client cannot grant is the program's fault, and is answered with 500.
    /// Within a process, a lease passes without asking the nodes only to a request that asks for the same time to live.
    ///
    /// # Examples
    ///
    /// ```
    /// # use redlock_core::Redlock;
    /// # use redlock_tower::{ConfigError, HeaderKey, RedlockLayer};
    /// # use std::time::Duration;
    /// # fn example(redlock: Redlock, key: HeaderKey) -> Result<(), ConfigError> {
    /// // Others get an account soon after a replica crashed, but for one that was erasing it.
    /// let lock = RedlockLayer::builder(redlock)
    ///     .ttl(Duration::from_secs(2))
    ///     .ttl_with(|head| (head.method == http::Method::DELETE).then_some(Duration::from_secs(10)))
    ///     .build(key)?;
    /// # drop(lock);
    /// # Ok(())
    /// # }
    /// ```
    pub fn ttl_with<F>(mut self, ttl: F) -> Self
    where
        F: Fn(&Parts) -> Option<Duration> + Send + Sync + 'static,
    {
        self.per_request.ttl = Some(Arc::new(ttl));
        self
    }

    /// Locks requests of these methods only, and lets all others through unlocked.
    ///
    /// For places that also see requests which no handler serves, such as `MethodRouter::layer` and `Router::layer` of
    /// axum, or a `ServiceBuilder` around a whole service: there `OPTIONS` or a wrong method would wait for the lock
    /// before it is answered with 405.
    /// A method that is not named here is not locked, also if a handler is added for it later.
    /// Default: every method.
    ///
    /// # Examples
    ///
    /// ```
    /// # use redlock_core::Redlock;
    /// # use redlock_tower::{ConfigError, HeaderKey, RedlockLayer};
    /// # fn example(redlock: Redlock, key: HeaderKey) -> Result<(), ConfigError> {
    /// let layer = RedlockLayer::builder(redlock)
    ///     .only([http::Method::POST, http::Method::DELETE])
    ///     .build(key)?;
    /// # drop(layer);
    /// # Ok(())
    /// # }
    /// ```
    pub fn only(mut self, methods: impl IntoIterator<Item = Method>) -> Self {
        self.only = Some(methods.into_iter().collect());
        self
    }

    /// Sets until when a request holds its lock; [`Hold::Body`] by default.
    pub fn hold(mut self, hold: Hold) -> Self {
        self.hold = hold;
        self
    }

    /// Sets the longest time for which a request holds its lock, whatever the handler does and however slowly a client
    /// reads; the lease is lost then, as [`on_lost`](Self::on_lost) says.
    ///
    /// While a client reads nothing at all, a server does not ask for the body, which cannot release anything then:
    /// the next request gets the lock up to a [time to live](Self::ttl) later.
    ///
    /// A lock with such an end is not handed on within the process without asking the nodes.
    /// Default: for as long as the request takes.
    pub fn max_hold(mut self, max_hold: Duration) -> Self {
        self.options = self.options.max_hold(max_hold);
        self
    }

    /// Sets what happens to a request whose lease is lost; [`OnLost::Abort`] by default.
    pub fn on_lost(mut self, on_lost: OnLost) -> Self {
        self.on_lost = on_lost;
        self
    }

    /// Sets how many requests of this replica may wait for one resource; the next is answered with 503.
    ///
    /// Default: what the client has, which is 1,024 by default.
    /// Callers of the client that do not come through this layer count as well.
    pub fn max_waiters_per_key(mut self, waiters: usize) -> Self {
        self.options = self.options.max_waiters_per_key(waiters);
        self
    }

    /// Sets how many requests of this replica may wait in all; the next that would have to is answered with 503.
    ///
    /// Default: what the client has, which is 65,536 by default.
    /// Callers of the client that do not come through this layer count as well.
    pub fn max_waiters(mut self, waiters: usize) -> Self {
        self.options = self.options.max_waiters(waiters);
        self
    }

    /// Sets the status of the answer when another request holds the resource; 409 by default.
    ///
    /// 423 (Locked) and 429 (Too Many Requests) are in use as well.
    pub fn contended_status(mut self, status: StatusCode) -> Self {
        self.answers.contended = status;
        self
    }

    /// Sets what makes the answer to a request that is refused, in the place of [`Rejection::problem`] and
    /// [`Rejection::grpc`].
    ///
    /// The rejection is put into the response's extensions either way.
    ///
    /// # Examples
    ///
    /// ```
    /// # use redlock_core::Redlock;
    /// # use redlock_tower::RedlockLayer;
    /// # fn example(redlock: Redlock) {
    /// let builder = RedlockLayer::builder(redlock).reject_with(|rejection| {
    ///     let mut response = rejection.problem();
    ///     response.headers_mut().insert("x-refused-by", "lock".parse().unwrap());
    ///     response
    /// });
    /// # let _ = builder;
    /// # }
    /// ```
    pub fn reject_with<F>(mut self, reject_with: F) -> Self
    where
        F: Fn(&Rejection) -> Response<Bytes> + Send + Sync + 'static,
    {
        self.answers.reject_with = Some(Arc::new(reject_with));
        self
    }

    /// Builds the layer, which locks what `key` names.
    ///
    /// # Errors
    ///
    /// A setting cannot be: a time to live out of the client's range, a hold of no time, a status that is no error.
    /// It is told here, because at the first request it would be told to the wrong person.
    pub fn build<K>(self, key: K) -> Result<RedlockLayer<K>, ConfigError> {
        let Self {
            redlock,
            options,
            hold,
            on_lost,
            answers,
            only,
            per_request,
        } = self;
        redlock.check(&options)?;
        if only.as_ref().is_some_and(|methods| methods.is_empty()) {
            let message = "a layer that locks no method locks nothing";
            return Err(ConfigError::misuse("only", message));
        }
        let contended = answers.contended;
        if !contended.is_client_error() && !contended.is_server_error() {
            let message = format!("{contended} is not the status of an error");
            return Err(ConfigError::misuse("contended_status", &message));
        }
        let terms = Terms::new(redlock, options, on_lost);
        let shared = Shared { terms, key };
        let rules = Rules {
            hold,
            answers,
            only,
            per_request,
        };
        Ok(RedlockLayer::from_parts(shared, rules))
    }
}
