//! The keys that values name: in the request's extensions, or in the arguments of its handler.

use std::{any::type_name, fmt, marker::PhantomData, ops::Deref};

use http::Request;
use redlock_core::{AcquireOptions, ResourceKeys};

use crate::{KeyError, KeyExtractor};

/// A value that names what to lock: a user that an outer layer has found, or a body that a handler takes.
///
/// [`ExtensionKey`](crate::ExtensionKey) and, with the feature `axum`, `Locked` take the lock that it names.
/// A type that derefs to such a value implements the trait too: `Json<Transfer>` does if `Transfer` does.
///
/// # Examples
///
/// ```
/// use redlock_core::{ResourceKey, ResourceKeys};
/// use redlock_tower::{KeyError, LockKey};
///
/// struct Transfer { from: u64, to: u64, cents: u64 }
///
/// impl LockKey for Transfer {
///     fn lock_key(&self) -> Result<ResourceKeys, KeyError> {
///         // Both accounts: whatever else moves money from or to one of them waits.
///         let accounts = [ResourceKey::new("account", self.from)?, ResourceKey::new("account", self.to)?];
///         Ok(ResourceKeys::new(accounts)?)
///     }
/// }
///
/// # fn main() -> Result<(), KeyError> {
/// let locked = Transfer { from: 9, to: 7, cents: 100 }.lock_key()?;
/// let names: Vec<&str> = locked.iter().map(|key| key.as_str()).collect();
/// assert_eq!(names, ["account:7", "account:9"]);
/// # Ok(())
/// # }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say what to lock",
    label = "implement `LockKey` for `{Self}`, or for what it derefs to",
    note = "`fn lock_key(&self) -> Result<ResourceKeys, KeyError> {{ Ok(ResourceKey::new(\"order\", self.id)?.into()) }}`"
)]
pub trait LockKey {
    /// Returns the keys of what to lock, usually one: `Ok(ResourceKey::new("order", self.id)?.into())`.
    ///
    /// # Errors
    ///
    /// The request must not go on; the error has the answer.
    fn lock_key(&self) -> Result<ResourceKeys, KeyError>;

    /// Returns options that replace the layer's settings for this lease; by default, none.
    ///
    /// # Examples
    ///
    /// ```
    /// use redlock_core::{AcquireOptions, ResourceKey, ResourceKeys, Wait};
    /// use redlock_tower::{KeyError, LockKey};
    ///
    /// struct Import { tenant: u64, by_hand: bool }
    ///
    /// impl LockKey for Import {
    ///     fn lock_key(&self) -> Result<ResourceKeys, KeyError> {
    ///         Ok(ResourceKey::new("import", self.tenant)?.into())
    ///     }
    ///
    ///     fn options(&self) -> AcquireOptions {
    ///         let options = AcquireOptions::new();
    ///         // A user at a screen gets an answer at once.
    ///         if self.by_hand { options.wait(Wait::Never) } else { options }
    ///     }
    /// }
    /// ```
    fn options(&self) -> AcquireOptions {
        AcquireOptions::new()
    }
}

// Otherwise the compiler's error for a missing implementation says that the value does not deref.
#[diagnostic::do_not_recommend]
impl<T> LockKey for T
where
    T: Deref,
    T::Target: LockKey,
{
    fn lock_key(&self) -> Result<ResourceKeys, KeyError> {
        (**self).lock_key()
    }

    fn options(&self) -> AcquireOptions {
        (**self).options()
    }
}

/// Locks what a value in the request's extensions names, such as the user that an outer layer has found.
///
/// The layer answers a request without the value with 500, because the layer that sets the value is missing or is an
/// inner one.
/// [`optional`](Self::optional) lets such a request through unlocked.
///
/// # Examples
///
/// ```
/// use redlock_core::{Redlock, ResourceKey, ResourceKeys};
/// use redlock_tower::{ExtensionKey, KeyError, LockKey, RedlockLayer};
///
/// #[derive(Clone)]
/// struct User { id: u64 }
///
/// impl LockKey for User {
///     fn lock_key(&self) -> Result<ResourceKeys, KeyError> {
///         Ok(ResourceKey::new("user", self.id)?.into())
///     }
/// }
///
/// fn one_per_user(redlock: Redlock) -> RedlockLayer<ExtensionKey<User>> {
///     RedlockLayer::new(redlock, ExtensionKey::new())
/// }
/// # use http::Request;
/// # use redlock_tower::KeyExtractor;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
///
/// let mut request = Request::get("/").extension(User { id: 7 }).body(())?;
/// let locked = ExtensionKey::<User>::new().extract(&mut request).await?.expect("it names one");
/// assert_eq!(locked.first().as_str(), "user:7");
/// # Ok(())
/// # }
/// ```
#[must_use = "a key does nothing until it is given to a layer"]
pub struct ExtensionKey<T> {
    optional: bool,
    // Not `T`: the key is `Send` and `Sync` whatever the value is.
    value: PhantomData<fn() -> T>,
}

impl<T> ExtensionKey<T> {
    /// Locks what the `T` in the request's extensions names.
    pub fn new() -> Self
    where
        T: LockKey,
    {
        Self {
            optional: false,
            value: PhantomData,
        }
    }

    /// Lets requests without a `T` through unlocked.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use http::Request;
    /// # use redlock_core::{ResourceKey, ResourceKeys};
    /// # use redlock_tower::{ExtensionKey, KeyError, KeyExtractor, LockKey};
    /// # #[derive(Clone)]
    /// # struct User { id: u64 }
    /// # impl LockKey for User {
    /// #     fn lock_key(&self) -> Result<ResourceKeys, KeyError> { Ok(ResourceKey::new("user", self.id)?.into()) }
    /// # }
    /// let key = ExtensionKey::<User>::new().optional();
    /// assert_eq!(key.extract(&mut Request::new(())).await?, None);
    /// # Ok(())
    /// # }
    /// ```
    pub fn optional(mut self) -> Self {
        self.optional = true;
        self
    }
}

impl<T> ExtensionKey<T>
where
    T: LockKey + Send + Sync + 'static,
{
    fn key<B>(&self, request: &Request<B>) -> Result<Option<ResourceKeys>, KeyError> {
        match request.extensions().get::<T>() {
            Some(value) => value.lock_key().map(Some),
            None if self.optional => Ok(None),
            None => Err(KeyError::misuse(format!(
                "the request has no extension `{}` to lock: the layer that puts it there must be outside of \
                 `RedlockLayer`",
                type_name::<T>()
            ))),
        }
    }
}

impl<T, B> KeyExtractor<Request<B>> for ExtensionKey<T>
where
    T: LockKey + Send + Sync + 'static,
    B: Send,
{
    async fn extract(&self, request: &mut Request<B>) -> Result<Option<ResourceKeys>, KeyError> {
        self.key(request)
    }

    fn extract_now(
        &self,
        request: &mut Request<B>,
    ) -> Option<Result<Option<ResourceKeys>, KeyError>> {
        Some(self.key(request))
    }

    fn options(&self, request: &Request<B>) -> AcquireOptions {
        let value = request.extensions().get::<T>();
        value.map_or_else(AcquireOptions::new, LockKey::options)
    }
}

impl<T: LockKey> Default for ExtensionKey<T> {
    fn default() -> Self {
        Self::new()
    }
}

// By hand, because derived ones would ask the same of `T`.
impl<T> Clone for ExtensionKey<T> {
    fn clone(&self) -> Self {
        Self {
            optional: self.optional,
            value: PhantomData,
        }
    }
}

impl<T> fmt::Debug for ExtensionKey<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExtensionKey")
            .field("value", &type_name::<T>())
            .field("optional", &self.optional)
            .finish()
    }
}

/// Locks nothing by itself, because the handler takes the lock: by the extractor `Locked` (with the feature `axum`).
///
/// It is for keys that a layer cannot see, such as a key in the request's body.
/// The layer watches over the locks that the handler takes as over its own, and holds them as long.
/// Its settings hold for them, unless the [`LockKey`](crate::LockKey) sets other options.
///
/// Use it with [`RedlockLayer`](crate::RedlockLayer) only; in a [`GenericLayer`](crate::GenericLayer) it locks nothing
/// at all.
///
/// # Examples
///
/// ```
/// use axum::{Json, Router, body::Body, http::{Request, StatusCode}, routing::post};
/// use redlock_core::{AcquireOptions, Redlock, ResourceKey, ResourceKeys, Wait};
/// use redlock_tower::{InHandler, KeyError, LockKey, Locked, RedlockLayer};
/// use tower::ServiceExt;
///
/// #[derive(serde::Deserialize)]
/// struct Payment { order: u64 }
///
/// impl LockKey for Payment {
///     fn lock_key(&self) -> Result<ResourceKeys, KeyError> {
///         Ok(ResourceKey::new("order", self.order)?.into())
///     }
/// }
///
/// async fn pay(payment: Locked<Json<Payment>>) -> String {
///     format!("order {} is paid", payment.order)
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let redlock = Redlock::builder().in_memory_nodes(3).build().await?;
/// let at_once = AcquireOptions::new().wait(Wait::Never);
/// let lock = RedlockLayer::builder(redlock.clone()).options(at_once).build(InHandler)?;
/// let app: Router = Router::new().route("/payments", post(pay).route_layer(lock));
/// let ask = || {
///     let request = Request::post("/payments").header("content-type", "application/json");
///     request.body(Body::from(r#"{"order":42}"#))
/// };
///
/// let another = redlock.acquire("order:42").await?;
/// assert_eq!(app.clone().oneshot(ask()?).await?.status(), StatusCode::CONFLICT);
/// another.release().await?;
/// assert_eq!(app.oneshot(ask()?).await?.status(), StatusCode::OK);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::exhaustive_structs, reason = "it is a name and has no parts")]
#[must_use = "a key does nothing until it is given to a layer"]
pub struct InHandler;

impl<Req: Send> KeyExtractor<Req> for InHandler {
    async fn extract(&self, _: &mut Req) -> Result<Option<ResourceKeys>, KeyError> {
        Ok(None)
    }

    fn extract_now(&self, _: &mut Req) -> Option<Result<Option<ResourceKeys>, KeyError>> {
        Some(Ok(None))
    }

    fn leaves_it_to_the_handler(&self) -> bool {
        true
    }
}
