mod holding;
mod waiting;

use std::sync::Arc;

use bytes::Bytes;
use http::{Method, Response, StatusCode};
use redlock_core::{AcquireOptions, Redlock, Slots};

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
    slots: Option<usize>,
    answers: Answers,
    only: Option<Arc<[Method]>>,
    per_request: PerRequest,
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
    /// use redlock_core::Wait;
    /// use redlock_tower::{PathKey, RedlockLayer};
    ///
    /// let lock = RedlockLayer::builder(redlock)
    ///     .wait(Wait::Never)
    ///     .build(PathKey::new("order", "order_id"))?;
    /// # drop(lock);
    /// # Ok(())
    /// # }
    /// ```
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
            slots: None,
            answers: Answers::default(),
            only: None,
            per_request: PerRequest::default(),
        }
    }

    /// Locks only requests of these methods, and lets all others through unlocked.
    ///
    /// This is for layers that also see requests which no handler serves: `MethodRouter::layer` and `Router::layer` of
    /// axum, or a `ServiceBuilder` around a whole service.
    /// There, a request with `OPTIONS` or a wrong method would wait for the lock before its answer 405.
    /// The layer does not lock a method that is not named here, even if a handler for it is added later.
    /// `GET` stands for `HEAD` too, because a `get` handler of axum answers both.
    /// Default: every method.
    ///
    /// # Examples
    ///
    /// ```
    /// # use axum::{Router, body::Body, http::{Method, Request, StatusCode}, routing::get};
    /// # use redlock_core::{Redlock, Wait};
    /// # use redlock_tower::{PathKey, RedlockLayer};
    /// # use tower::ServiceExt;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let redlock = Redlock::builder().in_memory_nodes(3).build().await?;
    /// let lock = RedlockLayer::builder(redlock.clone())
    ///     .wait(Wait::Never)
    ///     .only([Method::PUT, Method::DELETE])
    ///     .build(PathKey::new("order", "order_id"))?;
    /// let order = get(async || "an order").put(async || "changed");
    /// let app: Router = Router::new().route("/orders/{order_id}", order).layer(lock);
    ///
    /// let another = redlock.acquire("order:42").await?;
    /// let ask = |method| Request::builder().method(method).uri("/orders/42").body(Body::empty());
    /// assert_eq!(app.clone().oneshot(ask(Method::GET)?).await?.status(), StatusCode::OK);
    /// assert_eq!(app.oneshot(ask(Method::PUT)?).await?.status(), StatusCode::CONFLICT);
    /// # drop(another);
    /// # Ok(())
    /// # }
    /// ```
    pub fn only(mut self, methods: impl IntoIterator<Item = Method>) -> Self {
        let mut only: Vec<_> = methods.into_iter().collect();
        if only.contains(&Method::GET) {
            only.push(Method::HEAD);
        }
        self.only = Some(only.into());
        self
    }

    /// Sets the status of the answer when another request holds the resource; 409 by default.
    ///
    /// 423 (Locked) and 429 (Too Many Requests) are common alternatives.
    ///
    /// # Examples
    ///
    /// ```
    /// # use axum::{Router, body::Body, http::{Request, StatusCode}, routing::post};
    /// # use redlock_core::{Redlock, Wait};
    /// # use redlock_tower::{PathKey, RedlockLayer};
    /// # use tower::ServiceExt;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let redlock = Redlock::builder().in_memory_nodes(3).build().await?;
    /// # let ask = || Request::post("/orders/42/pay").body(Body::empty()).expect("it is valid");
    /// let lock = RedlockLayer::builder(redlock.clone())
    ///     .wait(Wait::Never)
    ///     .contended_status(StatusCode::LOCKED)
    ///     .build(PathKey::new("order", "order_id"))?;
    /// let app: Router = Router::new().route("/orders/{order_id}/pay", post(async || "paid").route_layer(lock));
    ///
    /// let another = redlock.acquire("order:42").await?;
    /// assert_eq!(app.oneshot(ask()).await?.status(), StatusCode::LOCKED);
    /// # drop(another);
    /// # Ok(())
    /// # }
    /// ```
    pub fn contended_status(mut self, status: StatusCode) -> Self {
        self.answers.contended = status;
        self
    }

    /// Sets the function that makes the answer to a refused request, in place of [`Rejection::problem`] and
    /// [`Rejection::grpc`].
    ///
    /// The layer puts the rejection into the response's extensions in both cases.
    ///
    /// # Examples
    ///
    /// ```
    /// # use axum::{Router, body::Body, http::{HeaderValue, Request, StatusCode}, routing::post};
    /// # use redlock_core::{Redlock, Wait};
    /// # use redlock_tower::{PathKey, RedlockLayer};
    /// # use tower::ServiceExt;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let redlock = Redlock::builder().in_memory_nodes(3).build().await?;
    /// let lock = RedlockLayer::builder(redlock.clone())
    ///     .wait(Wait::Never)
    ///     .reject_with(|rejection| {
    ///         let mut response = rejection.problem();
    ///         response.headers_mut().insert("x-refused-by", HeaderValue::from_static("lock"));
    ///         response
    ///     })
    ///     .build(PathKey::new("order", "order_id"))?;
    /// let app: Router = Router::new().route("/orders/{order_id}/pay", post(async || "paid").route_layer(lock));
    ///
    /// let another = redlock.acquire("order:42").await?;
    /// let refused = app.oneshot(Request::post("/orders/42/pay").body(Body::empty())?).await?;
    /// assert_eq!(refused.status(), StatusCode::CONFLICT);
    /// assert_eq!(refused.headers()["x-refused-by"], "lock");
    /// # drop(another);
    /// # Ok(())
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
    /// A setting is not possible: a time to live outside of the client's range, a hold of no time, a status that is no
    /// error.
    /// The error comes here, and not at the first request, so that the program sees it and no client does.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
    /// use redlock_tower::{PathKey, RedlockLayer};
    /// use std::time::Duration;
    ///
    /// let too_long = redlock.max_ttl() + Duration::from_secs(1);
    /// let refused = RedlockLayer::builder(redlock).ttl(too_long).build(PathKey::new("order", "order_id"));
    /// assert_eq!(refused.unwrap_err().field(), "ttl");
    /// # Ok(())
    /// # }
    /// ```
    pub fn build<K>(self, key: K) -> Result<RedlockLayer<K>, ConfigError> {
        let Self {
            redlock,
            options,
            hold,
            on_lost,
            slots,
            answers,
            only,
            per_request,
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
        if slots.is_some() && per_request.shares.is_some() {
            let message = "who has a slot has it alone: leave `slots` or `shared_when` out";
            return Err(ConfigError::misuse("shared_when", message));
        }
        let contended = answers.contended;
        if !contended.is_client_error() && !contended.is_server_error() {
            let message = format!("{contended} is not the status of an error");
            return Err(ConfigError::misuse("contended_status", &message));
        }
        let terms = Terms::new(redlock, options, on_lost).with_slots(slots);
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
