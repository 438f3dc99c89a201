use std::{error::Error, fmt, sync::Arc, time::Duration};

use redlock_core::{AcquireOptions, Redlock, Wait};
use tower_layer::Layer;

use crate::{RedlockService, acquire::Shared};

/// Lets one request per resource at a time through to the inner service, across every replica.
///
/// `K` says what a request locks; see [`KeyExtractor`](crate::KeyExtractor).
/// The [crate page](crate) tells the whole story.
///
/// All state is in the client and in this value, behind one `Arc`.
/// [`Layer::layer`] makes another handle to it and nothing else, because a server may call it anew for
/// every connection, as `axum::serve` does.
///
/// # Examples
///
/// The type can be written down:
///
/// ```
/// use redlock_core::Redlock;
/// use redlock_tower::{HeaderKey, RedlockLayer};
///
/// fn one_per_account(redlock: Redlock) -> RedlockLayer<HeaderKey> {
///     let header = http::HeaderName::from_static("x-account");
///     RedlockLayer::new(redlock, HeaderKey::new("account", header))
/// }
/// ```
#[must_use = "a layer does nothing until it is put around a service"]
pub struct RedlockLayer<K> {
    shared: Arc<Shared<K>>,
}

/// Until when a request holds its lock.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum Hold {
    /// Until the response's body has ended: by its last frame, by an error or by being dropped.
    ///
    /// A client that reads slowly holds the lock for as long as it reads.
    #[default]
    Body,
    /// Until the response's head is there.
    ///
    /// For bodies that only report work which is already done.
    Response,
}

impl<K> RedlockLayer<K> {
    /// A layer that locks what `key` names, with the client's own time to live and wait.
    pub fn new(redlock: Redlock, key: K) -> Self {
        Self::from_parts(redlock, AcquireOptions::new(), Hold::default(), key)
    }

    fn from_parts(redlock: Redlock, options: AcquireOptions, hold: Hold, key: K) -> Self {
        Self {
            shared: Arc::new(Shared {
                redlock,
                options,
                hold,
                key,
            }),
        }
    }
}

impl RedlockLayer<()> {
    /// Starts to describe a layer; the key comes last, in [`RedlockLayerBuilder::build`].
    pub fn builder(redlock: Redlock) -> RedlockLayerBuilder {
        RedlockLayerBuilder {
            redlock,
            ttl: None,
            wait: None,
            hold: Hold::default(),
        }
    }
}

impl<S, K> Layer<S> for RedlockLayer<K> {
    type Service = RedlockService<S, K>;

    fn layer(&self, inner: S) -> Self::Service {
        RedlockService::new(inner, Arc::clone(&self.shared))
    }
}

// By hand, because a derived one would ask for `K: Clone`.
impl<K> Clone for RedlockLayer<K> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
        }
    }
}

impl<K> fmt::Debug for RedlockLayer<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RedlockLayer").field(&self.shared).finish()
    }
}

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
    ttl: Option<Duration>,
    wait: Option<Wait>,
    hold: Hold,
}

impl RedlockLayerBuilder {
    /// How long a request waits while another holds its resource; the client's wait by default.
    ///
    /// A wait is always finite, and never longer than a day.
    pub fn wait(mut self, wait: Wait) -> Self {
        self.wait = Some(wait);
        self
    }

    /// How long the nodes keep the key without a renewal; the client's time to live by default.
    ///
    /// The lease is renewed for as long as the request holds it, so this bounds how long a crashed
    /// replica keeps others out, and not how long a handler may run.
    /// From 100 ms to the client's [`max_ttl`](Redlock::max_ttl), in whole milliseconds.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = Some(ttl);
        self
    }

    /// Until when a request holds its lock; [`Hold::Body`] by default.
    pub fn hold(mut self, hold: Hold) -> Self {
        self.hold = hold;
        self
    }

    /// The layer, which locks what `key` names.
    ///
    /// # Errors
    ///
    /// The time to live is out of the client's range.
    /// It is told here, because at the first request it would be told to the wrong person.
    pub fn build<K>(self, key: K) -> Result<RedlockLayer<K>, ConfigError> {
        let mut options = AcquireOptions::new();
        if let Some(ttl) = self.ttl {
            let (min, max) = (Redlock::MIN_TTL, self.redlock.max_ttl());
            if ttl < min || ttl > max {
                let message =
                    format!("{ttl:?} is not between {min:?} and the client's max_ttl of {max:?}");
                return Err(ConfigError {
                    field: "ttl",
                    message,
                });
            }
            options = options.ttl(ttl);
        }
        if let Some(wait) = self.wait {
            options = options.wait(wait);
        }
        Ok(RedlockLayer::from_parts(
            self.redlock,
            options,
            self.hold,
            key,
        ))
    }
}

/// A layer that could not be built: a setting must be changed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ConfigError {
    field: &'static str,
    message: String,
}

impl ConfigError {
    /// The setting at fault, as the builder calls it.
    pub fn field(&self) -> &str {
        self.field
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.message)
    }
}

impl Error for ConfigError {}
