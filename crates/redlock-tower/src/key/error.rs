use std::{borrow::Cow, error::Error, fmt};

use http::StatusCode;
use redlock_core::InvalidKey;

/// The error for a request that must not go on, because its key cannot be determined.
///
/// An [`InvalidKey`] becomes a `KeyError` with the status 400, so that `?` works on
/// [`ResourceKey::new`](redlock_core::ResourceKey::new).
///
/// # Examples
///
/// ```
/// use http::{Request, StatusCode};
/// use redlock_core::ResourceKey;
/// use redlock_tower::KeyError;
///
/// /// `?shop=7` names the resource; a number that is none makes the status 400 by `?`.
/// fn shop(request: &Request<()>) -> Result<Option<ResourceKey>, KeyError> {
///     let query = request.uri().query().unwrap_or_default();
///     let Some(shop) = query.strip_prefix("shop=") else {
///         return Err(KeyError::new(StatusCode::UNPROCESSABLE_ENTITY, "say which shop"));
///     };
///     Ok(Some(ResourceKey::new("shop", shop)?))
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let locked = shop(&Request::get("/?shop=7").body(())?)?.expect("it names one");
/// assert_eq!(locked.as_str(), "shop:7");
/// assert_eq!(shop(&Request::new(())).unwrap_err().status(), StatusCode::UNPROCESSABLE_ENTITY);
/// assert_eq!(shop(&Request::get("/?shop=").body(())?).unwrap_err().status(), StatusCode::BAD_REQUEST);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct KeyError {
    status: StatusCode,
    detail: Cow<'static, str>,
    misuse: bool,
}

impl KeyError {
    /// Makes an answer with `status` and with `detail` as its text for the client.
    ///
    /// Do not repeat the key in `detail`.
    pub fn new(status: StatusCode, detail: impl Into<Cow<'static, str>>) -> Self {
        Self {
            status,
            detail: detail.into(),
            misuse: false,
        }
    }

    /// Makes an answer for a mistake in the program, and not in the request: 500, and [`RejectionKind::Misuse`].
    ///
    /// [`RejectionKind::Misuse`]: crate::RejectionKind::Misuse
    ///
    /// # Examples
    ///
    /// ```
    /// use redlock_tower::{KeyError, Rejection, RejectionKind};
    ///
    /// let error = KeyError::misuse("no layer has found the tenant");
    /// assert_eq!(error.status(), 500);
    /// assert_eq!(Rejection::from(error).kind(), RejectionKind::Misuse);
    /// ```
    pub fn misuse(detail: impl Into<Cow<'static, str>>) -> Self {
        Self {
            status: StatusCode::INTERNAL_SERVER_ERROR,
            detail: detail.into(),
            misuse: true,
        }
    }

    pub(crate) fn is_misuse(&self) -> bool {
        self.misuse
    }

    /// Returns the answer's status.
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// Returns the text for the client.
    pub fn detail(&self) -> &str {
        &self.detail
    }
}

impl From<InvalidKey> for KeyError {
    fn from(invalid: InvalidKey) -> Self {
        Self::new(StatusCode::BAD_REQUEST, invalid.to_string())
    }
}

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.detail)
    }
}

impl Error for KeyError {}
