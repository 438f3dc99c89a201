use std::{error::Error, fmt};

use redlock_redis::RedisNodeError;

use super::{NodeReport, nodes};

/// A client that could not be built.
///
/// The error names the setting and its valid values, and never shows a password.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use redlock_core::{BuildErrorKind, Redlock};
/// use std::time::Duration;
///
/// let builder = Redlock::builder().in_memory_nodes(3).ttl(Duration::from_millis(10));
/// let error = builder.build().await.unwrap_err();
/// assert_eq!(error.kind(), BuildErrorKind::Misuse);
/// assert_eq!(error.field(), "ttl");
/// assert!(error.reports().is_empty(), "no node was asked");
/// # Ok(())
/// # }
/// ```
pub struct BuildError {
    kind: BuildErrorKind,
    /// The file and the line of the setting, if it is from a file.
    place: Option<String>,
    field: String,
    message: String,
    reports: Vec<NodeReport>,
}

/// The kind of a [`BuildError`].
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum BuildErrorKind {
    /// A setting is not valid: change the field that [`BuildError::field`] names.
    Misuse,
    /// Fewer than a majority of the nodes can be reached and are fit to vote: look at the nodes.
    NoQuorum,
    /// The operating system refused a resource, such as a thread.
    System,
}

impl BuildError {
    pub(crate) fn misuse(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(BuildErrorKind::Misuse, field, message)
    }

    pub(crate) fn system(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(BuildErrorKind::System, field, message)
    }

    /// Makes the error for a setting of a file, or for a line without one.
    #[cfg(feature = "toml")]
    pub(crate) fn in_file(place: String, field: String, message: String) -> Self {
        Self {
            place: Some(place),
            ..Self::misuse(field, message)
        }
    }

    /// Makes the error for `up` usable nodes, where `needed` are needed.
    pub(crate) fn no_quorum(up: usize, needed: usize, reports: Vec<NodeReport>) -> Self {
        let message = format!(
            "no quorum: {up} of {} nodes can be reached and are fit to vote, {needed} needed",
            reports.len()
        );
        Self {
            reports,
            ..Self::new(BuildErrorKind::NoQuorum, "nodes", message)
        }
    }

    fn new(kind: BuildErrorKind, field: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            kind,
            place: None,
            field: field.into(),
            message: message.into(),
            reports: Vec::new(),
        }
    }

    /// Returns why it failed.
    pub fn kind(&self) -> BuildErrorKind {
        self.kind
    }

    /// Returns the name of the wrong setting in the builder and the configuration, such as `nodes[2]`; empty if a file has
    /// no setting on the wrong line.
    pub fn field(&self) -> &str {
        &self.field
    }

    /// Returns the answer of each node, if the client asked them.
    pub fn reports(&self) -> &[NodeReport] {
        &self.reports
    }
}

impl From<RedisNodeError> for BuildError {
    fn from(refused: RedisNodeError) -> Self {
        Self::misuse("url", refused.to_string())
    }
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = [self.place.as_deref(), Some(&*self.field)];
        for part in named.into_iter().flatten().filter(|part| !part.is_empty()) {
            write!(f, "{part}: ")?;
        }
        f.write_str(&self.message)?;
        nodes::write_lines(f, &self.reports)
    }
}

debug_as_display!(BuildError);

impl Error for BuildError {}

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
