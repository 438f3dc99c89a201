//! What must never happen.

use std::fmt;

use crate::name::Name;

/// What must never happen, and did.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Breach {
    /// Two clients finished with the same token.
    Repeated {
        /// The client that finished first.
        first: usize,
        /// The client that finished last.
        second: usize,
        /// The token of both.
        token: u8,
    },
    /// A client started after another had finished, and its token is not the greater one.
    NotGreater {
        /// The client that started later.
        client: usize,
        /// Its token.
        token: u8,
        /// The greatest token that was handed out before it started.
        before: u8,
    },
    /// A number came up that is greater than any that the rules lead to in this scope.
    OutOfBounds {
        /// The number.
        number: u64,
    },
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Repeated {
                first,
                second,
                token,
            } => {
                let (first, second) = (Name(first), Name(second));
                write!(f, "{first} and {second} both finished with token {token}")
            }
            Self::NotGreater {
                client,
                token,
                before,
            } => write!(
                f,
                "{} finished with token {token}, but {before} was handed out before it started",
                Name(client),
            ),
            Self::OutOfBounds { number } => {
                write!(f, "{number} is greater than any number the rules lead to")
            }
        }
    }
}
