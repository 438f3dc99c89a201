use std::{fmt, sync::Arc};

use bytes::Bytes;
use http::{Method, Response, request::Parts};
use redlock_core::{AcquireOptions, Mode, Redlock, Slots};

use super::rules::{HttpRules, OptionsOfHead, RejectWith};
use crate::{
    ConfigError, Hold, LossPolicy, RedlockLayer, Rejection, request::call::KeyedLocker,
    request::request_lock::Locker,
};

/// Describes a [`RedlockLayer`] that differs from the client's defaults.
///
/// # Examples
///
/// ```
/// use http::{HeaderName, Method};
/// use redlock_core::{AcquireOptions, Redlock, Wait};
/// use redlock_tower::{HeaderKey, Hold, LossPolicy, RedlockLayer};
/// use std::time::Duration;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let redlock = Redlock::builder().in_memory_nodes(3).build().await?;
/// let options = AcquireOptions::new()
///     .wait(Wait::Never)
///     .ttl(Duration::from_secs(3))
///     .max_hold(Duration::from_secs(60));
/// let layer = RedlockLayer::builder(redlock)
///     .options(options)
///     .hold(Hold::Response)
///     .on_lost(LossPolicy::Signal)
///     .only([Method::POST])
///     .build(HeaderKey::new("account", HeaderName::from_static("x-account")))?;
/// # let _ = layer;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
#[must_use = "a builder does nothing until `build` is called"]
pub struct RedlockLayerBuilder {
    redlock: Redlock,
    options: AcquireOptions,
    options_with: Option<Arc<OptionsOfHead>>,
    hold: Hold,
    on_lost: LossPolicy,
    slots: Option<usize>,
    only: Option<Vec<Method>>,
    reject_with: Option<Arc<RejectWith>>,
}

impl RedlockLayer<()> {
    /// Begins the description of a layer; [`RedlockLayerBuilder::build`] takes the key.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
    /// use redlock_core::{AcquireOptions, Wait};
    /// use redlock_tower::{PathKey, RedlockLayer};
    ///
    /// let lock = RedlockLayer::builder(redlock)
    ///     .options(AcquireOptions::new().wait(Wait::Never))
    ///     .build(PathKey::new("order", "order_id"))?;
    /// # drop(lock);
    /// # Ok(())
    /// # }
    /// ```
    pub fn builder(redlock: Redlock) -> RedlockLayerBuilder {
        RedlockLayerBuilder {
            redlock,
            options: AcquireOptions::new(),
            options_with: None,
            hold: Hold::default(),
            on_lost: LossPolicy::default(),
            slots: None,
            only: None,
            reject_with: None,
        }
    }
}

impl RedlockLayerBuilder {
    /// Sets options for each lock of the layer: how long a request waits, the time to live, the longest hold, the bounds
    /// for waiting requests; by default, those of the client.
    ///
    /// Several calls add up, and the later call prevails where both set an option.
    /// What some of them mean for a layer:
    ///
    /// - [`ttl`](AcquireOptions::ttl): The client renews the lease for as long as the request holds it.
    ///   So the time to live bounds how long a crashed replica keeps other replicas out, and not how long a handler may
    ///   run.
    /// - [`max_hold`](AcquireOptions::max_hold): However long the handler runs and however slowly a client reads, the
    ///   lease is lost after this time, and [`on_lost`](Self::on_lost) decides what happens.
    ///   While a client reads nothing at all, a server does not poll the body, so the body cannot release the lock: the
    ///   next request then gets the lock up to one time to live later.
    /// - [`max_waiters_per_key`](AcquireOptions::max_waiters_per_key): The layer answers the next request that would have to
    ///   wait with 503.
    ///   Callers of the client that do not come through this layer count as well.
    /// - [`shared`](AcquireOptions::shared): All requests share what they lock; see [`options_with`](Self::options_with)
    ///   for some requests.
    pub fn options(mut self, options: AcquireOptions) -> Self {
        self.options = options.or(&self.options);
        self
    }

    /// Sets options for the lock of each request, from the request's head; where `options` sets none, those of
    /// [`options`](Self::options) hold.
    ///
    /// The layer calls `options` for each request that it may lock, before it extracts the key.
    /// What [`KeyExtractor::options`](crate::KeyExtractor::options) returns takes precedence.
    /// A second call replaces the function of the first.
    /// Options that the client cannot grant are a mistake in the program: the layer answers with 500.
    ///
    /// If clients choose how long they wait, bound their choice: each waiting request takes a place in the queue.
    /// Within a process, a lease passes from one request to the next without a call to the nodes only if both ask for
    /// the same time to live, and for no [`max_hold`](AcquireOptions::max_hold).
    ///
    /// Requests for which the options are [`shared`](AcquireOptions::shared) run together, on all replicas, and all
    /// other requests hold alone what they lock.
    /// A request that writes waits for the readers before it, and keeps later readers waiting, as
    /// [`Redlock::acquire_shared`] describes.
    /// A request that already shares a key, through an outer layer, and asks to hold it alone is a mistake in the
    /// program: the layer answers with 500.
    /// So is a request that shares in a layer with [`slots`](Self::slots).
    ///
    /// # Examples
    ///
    /// Readers share an order, and a batch that asks for it waits for its turn:
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use axum::{Router, body::Body, http::{Request, StatusCode}, routing::get};
    /// use redlock_core::{AcquireOptions, Redlock, Wait};
    /// use redlock_tower::{PathKey, RedlockLayer};
    /// use std::time::Duration;
    /// use tower::ServiceExt;
    ///
    /// let redlock = Redlock::builder().in_memory_nodes(3).build().await?;
    /// let lock = RedlockLayer::builder(redlock.clone())
    ///     .options(AcquireOptions::new().wait(Wait::Never))
    ///     .options_with(|head| {
    ///         let mut options = AcquireOptions::new();
    ///         if head.method.is_safe() {
    ///             options = options.shared();
    ///         }
    ///         if head.headers.contains_key("x-batch") {
    ///             options = options.wait(Wait::UpTo(Duration::from_secs(30)));
    ///         }
    ///         options
    ///     })
    ///     .build(PathKey::new("order", "order_id").parsed::<u64>())?;
    /// let order = get(async || "an order").put(async || "changed").route_layer(lock);
    /// let app: Router = Router::new().route("/orders/{order_id}", order);
    /// let ask = |method| Request::builder().method(method).uri("/orders/42");
    ///
    /// let reader = redlock.acquire_shared("order:42").await?;
    /// let reads = app.clone().oneshot(ask("GET").body(Body::empty())?).await?;
    /// assert_eq!(reads.status(), StatusCode::OK);
    /// let writes = app.clone().oneshot(ask("PUT").body(Body::empty())?).await?;
    /// assert_eq!(writes.status(), StatusCode::CONFLICT);
    ///
    /// let batch = ask("PUT").header("x-batch", "7").body(Body::empty())?;
    /// drop(reads); // an answer that is not read to its end holds its lock
    /// let (answer, released) = tokio::join!(app.oneshot(batch), reader.release());
    /// assert_eq!(answer?.status(), StatusCode::OK);
    /// # released?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn options_with<F>(mut self, options: F) -> Self
    where
        F: Fn(&Parts) -> AcquireOptions + Send + Sync + 'static,
    {
        self.options_with = Some(Arc::new(options));
        self
    }

    /// Sets until when a request holds its lock; [`Hold::Body`] by default.
    ///
    /// [`Hold`] has an example.
    pub fn hold(mut self, hold: Hold) -> Self {
        self.hold = hold;
        self
    }

    /// Sets what happens to a request whose lease is lost; [`LossPolicy::Abort`] by default.
    ///
    /// [`LossPolicy`] has an example.
    pub fn on_lost(mut self, on_lost: LossPolicy) -> Self {
        self.on_lost = on_lost;
        self
    }

    /// Lets up to `slots` requests with the same key run at once, on all replicas together: 1 to 64.
    ///
    /// Default: one, under a lock on the key itself.
    /// With slots, a request holds one of [the key's slots](redlock_core::Slots), which is a lock on another name: the
    /// layer's key with `#` and a number.
    /// So a layer without slots does not exclude these requests.
    /// Set the same number on all replicas: the nodes refuse requests of a layer with another number than the one last
    /// used, for a time to live after that, and the layer answers with 503.
    /// So do two layers around each other that give the same key different numbers.
    /// A resource cannot compare the tokens of different slots: a resource that [fences](crate::guide::fencing) needs a
    /// layer without slots.
    /// A request that already holds a slot of a key, through an outer layer with the same number, uses that slot.
    /// A key extractor that returns several keys is a mistake in the program: the layer answers with 500.
    ///
    /// # Examples
    ///
    /// ```
    /// # use axum::{Router, body::Body, http::{Request, StatusCode}, routing::post};
    /// # use redlock_core::{AcquireOptions, Redlock, Wait};
    /// # use redlock_tower::{PathKey, RedlockLayer};
    /// # use tower::ServiceExt;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let redlock = Redlock::builder().in_memory_nodes(3).build().await?;
    /// # let ask = || Request::post("/tenants/7/export").body(Body::empty()).expect("it is valid");
    /// // Two exports of a tenant at a time, on whatever replicas.
    /// let lock = RedlockLayer::builder(redlock.clone())
    ///     .slots(2)
    ///     .options(AcquireOptions::new().wait(Wait::Never))
    ///     .build(PathKey::new("tenant", "tenant_id"))?;
    /// let export = post(async || "exported").route_layer(lock);
    /// let app: Router = Router::new().route("/tenants/{tenant_id}/export", export);
    ///
    /// let exports = redlock.slots("tenant:7", 2)?;
    /// let one = exports.acquire().await?;
    /// assert_eq!(app.clone().oneshot(ask()).await?.status(), StatusCode::OK);
    /// let two = exports.acquire().await?;
    /// assert_eq!(app.oneshot(ask()).await?.status(), StatusCode::CONFLICT);
    /// # drop((one, two));
    /// # Ok(())
    /// # }
    /// ```
    pub fn slots(mut self, slots: usize) -> Self {
        self.slots = Some(slots);
        self
    }

    /// Locks only requests of these methods, and lets all others through unlocked.
    ///
    /// This is for layers that also see requests which no handler serves: `MethodRouter::layer` and `Router::layer` of
    /// axum, or a `ServiceBuilder` around a whole service.
    /// There, a preflight of CORS, a health probe by `HEAD` or a wrong method would wait for the lock before its answer.
    /// The layer does not lock a method that is not named here, even if a handler for it is added later.
    /// `GET` stands for `HEAD` too, because a `get` handler of axum answers both.
    /// Default: every method, `HEAD` and `OPTIONS` too, because a handler may serve them, and none may run unlocked.
    /// [Some requests only](crate::guide::keys#some-requests-only) has an example.
    pub fn only(mut self, methods: impl IntoIterator<Item = Method>) -> Self {
        let mut only: Vec<_> = methods.into_iter().collect();
        if only.contains(&Method::GET) {
            only.push(Method::HEAD);
        }
        self.only = Some(only);
        self
    }

    /// Sets the function that makes the answer to a refused request, in place of [`Rejection::problem`] and
    /// [`Rejection::grpc`].
    ///
    /// The layer puts the rejection into the response's extensions in both cases.
    ///
    /// # Examples
    ///
    /// 423 (Locked) instead of 409 if another request holds the resource:
    ///
    /// ```
    /// # use axum::{Router, body::{Body, Bytes}, http::{Request, Response, StatusCode}, routing::post};
    /// # use redlock_core::{AcquireOptions, Redlock, Wait};
    /// # use redlock_tower::{PathKey, RedlockLayer, RejectionKind};
    /// # use tower::ServiceExt;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let redlock = Redlock::builder().in_memory_nodes(3).build().await?;
    /// let lock = RedlockLayer::builder(redlock.clone())
    ///     .options(AcquireOptions::new().wait(Wait::Never))
    ///     .reject_with(|rejection| {
    ///         if rejection.kind() != RejectionKind::Contended {
    ///             return rejection.problem();
    ///         }
    ///         let mut response = Response::new(Bytes::from_static(b"the order is being paid"));
    ///         *response.status_mut() = StatusCode::LOCKED;
    ///         response
    ///     })
    ///     .build(PathKey::new("order", "order_id"))?;
    /// let app: Router = Router::new().route("/orders/{order_id}/pay", post(async || "paid").route_layer(lock));
    ///
    /// let another = redlock.acquire("order:42").await?;
    /// let refused = app.oneshot(Request::post("/orders/42/pay").body(Body::empty())?).await?;
    /// assert_eq!(refused.status(), StatusCode::LOCKED);
    /// # drop(another);
    /// # Ok(())
    /// # }
    /// ```
    pub fn reject_with<F>(mut self, reject_with: F) -> Self
    where
        F: Fn(&Rejection) -> Response<Bytes> + Send + Sync + 'static,
    {
        self.reject_with = Some(Arc::new(reject_with));
        self
    }

    /// Builds the layer, which locks what `key` names.
    ///
    /// # Errors
    ///
    /// A setting is not possible: a time to live outside of the client's range, a hold of no time, no method to lock.
    /// The error comes here, and not at the first request, so that the program sees it and no client does.
    /// [`ConfigError`] has an example.
    pub fn build<K>(self, key: K) -> Result<RedlockLayer<K>, ConfigError> {
        let Self {
            redlock,
            options,
            options_with,
            hold,
            on_lost,
            slots,
            only,
            reject_with,
        } = self;
        redlock.check(&options)?;
        if only.as_ref().is_some_and(|methods| methods.is_empty()) {
            let message = "a layer that locks no method locks nothing";
            return Err(ConfigError::misuse("only", message));
        }
        if slots.is_some_and(|slots| !(1..=Slots::MAX_COUNT).contains(&slots)) {
            let message = format!("a key has 1 to {} slots", Slots::MAX_COUNT);
            return Err(ConfigError::misuse("slots", &message));
        }
        if slots.is_some() && options.mode() == Mode::Shared {
            let message = "a slot has one holder: leave `slots` or `shared` out";
            return Err(ConfigError::misuse("shared", message));
        }
        let mut rules = HttpRules::new(redlock.clone());
        rules.hold = hold;
        rules.only = only;
        rules.options_with = options_with;
        rules.reject_with = reject_with;
        let locker = Locker::new(redlock, options, on_lost).with_slots(slots);
        let keyed = KeyedLocker { locker, key };
        Ok(RedlockLayer::from_parts(keyed, rules))
    }
}

impl fmt::Debug for RedlockLayerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedlockLayerBuilder")
            .field("options", &self.options)
            .field("hold", &self.hold)
            .field("on_lost", &self.on_lost)
            .field("slots", &self.slots)
            .field("only", &self.only)
            .finish_non_exhaustive()
    }
}
