//! Why a run ended.

use std::fmt;

/// Why a run ended; said to the user as it is.
#[derive(Debug)]
pub(crate) struct Failed(pub(crate) String);

/// An outcome, or why there is none.
pub(crate) type Result<T, E = Failed> = std::result::Result<T, E>;

impl<E: fmt::Display> From<E> for Failed {
    fn from(error: E) -> Self {
        Self(error.to_string())
    }
}
