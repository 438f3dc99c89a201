use http::{HeaderName, Request, StatusCode};
use redlock_core::ResourceKey;

use crate::{KeyError, KeyExtractor};

/// Locks the resource that a header names.
///
/// A request without the header goes through unlocked, unless the key is [`required`](Self::required).
/// A header that is there twice, is not visible ASCII, or makes no valid [`ResourceKey`] is answered
/// with 400.
///
/// # Examples
///
/// ```
/// use http::HeaderName;
/// use redlock_tower::HeaderKey;
///
/// let key = HeaderKey::new("account", HeaderName::from_static("x-account")).required();
/// ```
#[derive(Clone, Debug)]
#[must_use = "a key does nothing until it is given to a layer"]
pub struct HeaderKey {
    class: &'static str,
    header: HeaderName,
    required: bool,
}

impl HeaderKey {
    /// Locks the resource of the class `class` that `header` names.
    pub fn new(class: &'static str, header: HeaderName) -> Self {
        Self {
            class,
            header,
            required: false,
        }
    }

    /// Refuses requests without the header with 400.
    pub fn required(mut self) -> Self {
        self.required = true;
        self
    }
}

impl<B: Send> KeyExtractor<Request<B>> for HeaderKey {
    async fn extract(&self, request: &mut Request<B>) -> Result<Option<ResourceKey>, KeyError> {
        let bad = |wrong: &str| {
            KeyError::new(
                StatusCode::BAD_REQUEST,
                format!("the header `{}` {wrong}", self.header),
            )
        };
        let mut values = request.headers().get_all(&self.header).iter();
        let Some(value) = values.next() else {
            return if self.required {
                Err(bad("is missing"))
            } else {
                Ok(None)
            };
        };
        // Whichever of the two was locked, the handler might read the other.
        if values.next().is_some() {
            return Err(bad("is there more than once"));
        }
        let value = value.to_str().map_err(|_| bad("is not visible ASCII"))?;
        Ok(Some(ResourceKey::new(self.class, value)?))
    }
}
