use std::{any::type_name, fmt, marker::PhantomData};

use http::Request;
use redlock_core::{AcquireOptions, ResourceKeys};

use crate::{KeyError, KeyExtractor, LockKey};

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
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
    /// use redlock_core::{ResourceKey, ResourceKeys};
    /// use redlock_tower::{ExtensionKey, KeyError, LockKey, RedlockLayer};
    ///
    /// /// What the layer for authentication leaves in the request's extensions.
    /// struct User { id: u64 }
    ///
    /// impl LockKey for User {
    ///     fn lock_key(&self) -> Result<ResourceKeys, KeyError> {
    ///         Ok(ResourceKey::new("user", self.id)?.into())
    ///     }
    /// }
    ///
    /// let one_per_user = RedlockLayer::new(redlock, ExtensionKey::<User>::new());
    /// # drop(one_per_user);
    /// # Ok(())
    /// # }
    /// ```
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
