use std::{error::Error, fmt};

use redlock_core::InvalidOption;

/// A layer that could not be built: a setting must be changed.
///
/// # Examples
///
/// ```
/// use redlock_core::Redlock;
/// use redlock_tower::{ConfigErrorKind, PathKey, RedlockLayer};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let redlock = Redlock::builder().in_memory_nodes(3).build().await?;
/// let nothing = RedlockLayer::builder(redlock).only([]).build(PathKey::new("order", "order_id"));
/// let error = nothing.unwrap_err();
/// assert_eq!((error.kind(), error.field()), (ConfigErrorKind::Misuse, "only"));
/// assert_eq!(error.to_string(), "only: a layer that locks no method locks nothing");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ConfigError {
    kind: ConfigErrorKind,
    field: &'static str,
    message: String,
}

/// The kind of a [`ConfigError`].
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum ConfigErrorKind {
    /// A setting is not valid: change the one that [`ConfigError::field`] names.
    Misuse,
}

impl ConfigError {
    pub(crate) fn misuse(field: &'static str, message: &str) -> Self {
        Self {
            kind: ConfigErrorKind::Misuse,
            field,
            message: format!("{field}: {message}"),
        }
    }

    /// Returns why the layer could not be built.
    pub fn kind(&self) -> ConfigErrorKind {
        self.kind
    }

    /// Returns the setting at fault, as the builder calls it.
    pub fn field(&self) -> &str {
        self.field
    }
}

impl From<InvalidOption> for ConfigError {
    fn from(invalid: InvalidOption) -> Self {
        Self {
            kind: ConfigErrorKind::Misuse,
            field: invalid.field(),
            message: invalid.to_string(),
        }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for ConfigError {}
