use std::{error::Error, fmt};

/// An option of an acquire that the client cannot grant: the caller must change the program.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
/// use redlock_core::AcquireOptions;
/// use std::time::Duration;
///
/// let options = AcquireOptions::new().ttl(Duration::from_millis(10));
/// let invalid = redlock.check(&options).unwrap_err();
/// assert_eq!(invalid.field(), "ttl");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Eq, PartialEq)]
pub struct InvalidOption {
    field: &'static str,
    message: String,
}

impl InvalidOption {
    pub(crate) fn new(field: &'static str, message: String) -> Self {
        Self { field, message }
    }

    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// Returns the name of the wrong option in [`AcquireOptions`](crate::AcquireOptions).
    pub fn field(&self) -> &'static str {
        self.field
    }
}

impl fmt::Display for InvalidOption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.message)
    }
}

impl Error for InvalidOption {}

debug_as_display!(InvalidOption);
