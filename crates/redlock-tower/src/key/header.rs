use std::{
    borrow::Cow,
    fmt::{self, Display},
    str::FromStr,
};

use http::{HeaderName, Request, StatusCode};
use redlock_core::{ResourceKey, ResourceKeys};

use crate::{KeyError, KeyExtractor};

/// Locks the resource that a header names.
///
/// The layer answers a request without the header with 400, unless the key is [`optional`](Self::optional).
/// It also answers with 400 if the header is there twice, is not visible ASCII, or makes no valid
/// [`ResourceKey`](redlock_core::ResourceKey).
///
/// The key is the text of the header.
/// If the handler parses the header, use [`parsed`](Self::parsed): otherwise one resource has a lock for each of its
/// spellings.
///
/// This key is no idempotency store.
/// With a header such as `Idempotency-Key`, two requests with one value do not run at the same time, but the second
/// request runs when the first is done, because the layer does not remember the first answer.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use http::{HeaderName, Request};
/// use redlock_tower::{HeaderKey, KeyExtractor};
///
/// let key = HeaderKey::new("account", HeaderName::from_static("x-account"));
/// let mut request = Request::get("/").header("x-account", "42").body(())?;
/// let locked = key.extract(&mut request).await?.expect("it names one");
/// assert_eq!(locked.first().as_str(), "account:42");
///
/// let without = key.extract(&mut Request::new(())).await.unwrap_err();
/// assert_eq!(without.status(), 400);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "a key does nothing until it is given to a layer"]
pub struct HeaderKey {
    named: ResourceClass,
    header: HeaderName,
    optional: bool,
}

impl HeaderKey {
    /// Locks the resource of the class `class` that `header` names.
    pub fn new(class: &'static str, header: HeaderName) -> Self {
        Self {
            named: ResourceClass::new(class),
            header,
            optional: false,
        }
    }

    /// Lets requests without the header through unlocked.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use http::{HeaderName, Request};
    /// use redlock_tower::{HeaderKey, KeyExtractor};
    ///
    /// let key = HeaderKey::new("account", HeaderName::from_static("x-account")).optional();
    /// assert_eq!(key.extract(&mut Request::new(())).await?, None);
    /// # Ok(())
    /// # }
    /// ```
    pub fn optional(mut self) -> Self {
        self.optional = true;
        self
    }

    /// Reads the header as a `T`, as the handler does, and locks what `T` writes.
    ///
    /// The layer answers a header that is no `T` with 400.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use http::{HeaderName, Request};
    /// use redlock_tower::{HeaderKey, KeyExtractor};
    ///
    /// let key = HeaderKey::new("account", HeaderName::from_static("x-account")).parsed::<u64>();
    /// let mut request = Request::get("/").header("x-account", "042").body(())?;
    /// let locked = key.extract(&mut request).await?.expect("it names one");
    /// assert_eq!(locked.first().as_str(), "account:42");
    /// # Ok(())
    /// # }
    /// ```
    pub fn parsed<T: FromStr + Display>(mut self) -> Self {
        self.named = self.named.parsed::<T>();
        self
    }

    fn key<B>(&self, request: &Request<B>) -> Result<Option<ResourceKeys>, KeyError> {
        let bad = |wrong: &str| {
            KeyError::new(
                StatusCode::BAD_REQUEST,
                format!("the header `{}` {wrong}", self.header),
            )
        };
        let mut values = request.headers().get_all(&self.header).iter();
        let Some(value) = values.next() else {
            return if self.optional {
                Ok(None)
            } else {
                Err(bad("is missing"))
            };
        };
        // Whichever of the two was locked, the handler might read the other.
        if values.next().is_some() {
            return Err(bad("is there more than once"));
        }
        let value = value.to_str().map_err(|_| bad("is not visible ASCII"))?;
        Ok(Some(self.named.key(value)?.into()))
    }
}

impl<B: Send> KeyExtractor<Request<B>> for HeaderKey {
    async fn extract(&self, request: &mut Request<B>) -> Result<Option<ResourceKeys>, KeyError> {
        self.key(request)
    }

    fn extract_now(
        &self,
        request: &mut Request<B>,
    ) -> Option<Result<Option<ResourceKeys>, KeyError>> {
        Some(self.key(request))
    }
}

/// A class of resources, and how a text that a client sent names one of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ResourceClass {
    class: &'static str,
    spelling: Spelling,
}

/// The one spelling of a value, or `None` if the text is none.
type Spelling = fn(&str) -> Option<Cow<'_, str>>;

impl ResourceClass {
    pub(crate) fn new(class: &'static str) -> Self {
        Self {
            class,
            spelling: |text| Some(Cow::Borrowed(text)),
        }
    }

    /// The resource's name is what `T` writes after it has read the text.
    pub(crate) fn parsed<T: FromStr + fmt::Display>(self) -> Self {
        let spelling: Spelling = |text| Some(Cow::Owned(text.parse::<T>().ok()?.to_string()));
        Self { spelling, ..self }
    }

    /// Returns the key of the resource that `text` names.
    pub(crate) fn key(&self, text: &str) -> Result<ResourceKey, KeyError> {
        let name = self.spelled(text)?;
        self.key_of(&name)
    }

    /// Returns the one spelling of what `text` says.
    pub(crate) fn spelled<'a>(&self, text: &'a str) -> Result<Cow<'a, str>, KeyError> {
        (self.spelling)(text).ok_or_else(|| {
            let detail = format!("that is no valid {}", self.class);
            KeyError::new(StatusCode::BAD_REQUEST, detail)
        })
    }

    /// Returns the same class, with names that are just the text.
    #[cfg(feature = "axum")]
    pub(crate) fn as_it_is(self) -> Self {
        Self::new(self.class)
    }

    /// Returns the key of the resource with this name.
    pub(crate) fn key_of(&self, name: &str) -> Result<ResourceKey, KeyError> {
        ResourceKey::new(self.class, name).map_err(|invalid| {
            // The class is the program's; no client can do anything about it.
            match ResourceKey::new(self.class, "any") {
                Ok(_) => invalid.into(),
                Err(invalid) => KeyError::misuse(invalid.to_string()),
            }
        })
    }
}
