use std::{error::Error, fmt};

/// A node that cannot be made of a configuration, in words that show no credentials.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RedisNodeError(String);

impl RedisNodeError {
    pub(crate) fn new(why: impl Into<String>) -> Self {
        Self(why.into())
    }
}

impl fmt::Display for RedisNodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for RedisNodeError {}
