use std::{error::Error, fmt};

use redlock_core::InvalidOption;

/// A layer that could not be built: a setting must be changed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ConfigError {
    field: &'static str,
    message: String,
}

impl ConfigError {
    pub(crate) fn new(field: &'static str, message: String) -> Self {
        Self { field, message }
    }

    /// Returns the setting at fault, as the builder calls it.
    pub fn field(&self) -> &str {
        self.field
    }
}

impl From<InvalidOption> for ConfigError {
    fn from(invalid: InvalidOption) -> Self {
        Self {
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
