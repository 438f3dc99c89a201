//! The end of the command: its exit codes, and what went wrong, in words without passwords.

use std::{fmt, io, process::ExitCode};

use redlock_console::look::jobs::InvalidJobName;
use redlock_core::{AcquireError, AcquireErrorKind, BuildError, BuildErrorKind, InvalidKey};

/// How the command ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Exit {
    /// It is so, or it was done.
    Yes,
    /// It is not so.
    No,
    /// Something is wrong: with what was typed, or with what was found.
    Wrong,
    /// Too few nodes vote.
    NoQuorum,
    /// The reader of the output is gone: the code is that of a program that `SIGPIPE` ended.
    ClosedPipe,
    /// A command that was run ended with this code, or the user has given it for what has happened.
    Child(u8),
    /// A signal of this number ended it.
    Signal(u8),
    /// A key of the terminal ended the command that had it, by the signal of this number.
    Key(u8),
    /// The lock cannot be had, because too few nodes vote.
    Unavailable,
    /// The lease was lost while a command ran under it.
    Lost,
}

/// What the exit codes mean, for the help and the manual.
pub(crate) const EXIT_CODES: &str = "\
Exit codes:
  0    it is so: healthy, votes, held; or it was done
  1    it is not so: warnings with --strict, does not vote, not held
  2    wrong: bad usage or configuration, a failure, an action that failed
  3    no quorum: too few nodes vote
  126  the command to be run cannot be started; 127 it cannot be found
  130  interrupted, or 128 and the number of another signal
  run, elect and sandbox pass the codes of their commands on.

Configuration:
  Flags win over REDLOCK_NODES, REDLOCK_NAMESPACE, REDLOCK_MAX_TTL and the
  library's other variables, and those win over the file of --config.";

impl Exit {
    /// Returns the exit of a verb that has done what it could, by whether enough nodes took part.
    pub(crate) const fn of_quorum(is_quorum: bool) -> Self {
        if is_quorum { Self::Yes } else { Self::NoQuorum }
    }

    const fn code(self) -> u8 {
        match self {
            Self::Yes => 0,
            Self::No => 1,
            Self::Wrong => 2,
            Self::NoQuorum => 3,
            Self::ClosedPipe => 128 + 13,
            Self::Child(code) => code,
            Self::Signal(signal) | Self::Key(signal) => 128_u8.saturating_add(signal),
            Self::Unavailable => 69,
            Self::Lost => 76,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// Why the command could not do what it was asked to.
#[derive(Debug)]
pub(crate) enum CommandError {
    /// Something is wrong.
    Wrong(String),
    /// Too few nodes vote.
    NoQuorum(String),
    /// The output cannot be written.
    Output(io::Error),
}

/// The end of a verb.
pub(crate) type CommandResult = Result<Exit, CommandError>;

impl CommandError {
    pub(crate) fn wrong(message: impl Into<String>) -> Self {
        Self::Wrong(message.into())
    }

    pub(crate) const fn exit(&self) -> Exit {
        match self {
            Self::Wrong(_) | Self::Output(_) => Exit::Wrong,
            Self::NoQuorum(_) => Exit::NoQuorum,
        }
    }
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Wrong(message) | Self::NoQuorum(message) => f.write_str(message),
            Self::Output(error) => write!(f, "the output cannot be written: {error}"),
        }
    }
}

// Every other error is put into words where it arises.
impl From<io::Error> for CommandError {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

impl From<BuildError> for CommandError {
    fn from(error: BuildError) -> Self {
        match error.kind() {
            BuildErrorKind::NoQuorum => Self::NoQuorum(error.to_string()),
            // The message repeats nothing of a node's URL, and says what a URL is like.
            _ if error.field().starts_with("nodes") || error.field() == "REDLOCK_NODES" => {
                Self::Wrong(error.to_string())
            }
            // A URL may have been given for something else.
            _ => Self::Wrong(redacted(&error.to_string())),
        }
    }
}

impl From<AcquireError> for CommandError {
    fn from(error: AcquireError) -> Self {
        match error.kind() {
            AcquireErrorKind::NoQuorum | AcquireErrorKind::Quarantined => {
                Self::NoQuorum(error.to_string())
            }
            _ => Self::Wrong(error.to_string()),
        }
    }
}

impl From<InvalidKey> for CommandError {
    fn from(error: InvalidKey) -> Self {
        Self::Wrong(error.to_string())
    }
}

impl From<InvalidJobName> for CommandError {
    fn from(error: InvalidJobName) -> Self {
        Self::Wrong(error.to_string())
    }
}

/// Returns a text with `***` instead of the part from its first `://` or quotation mark to its last `@`.
///
/// The earlier of the two begins the part: a wrong URL may lack its scheme, and is quoted.
/// The part may be longer than a password, but no part of a password is left, whatever characters it has.
pub(crate) fn redacted(text: &str) -> String {
    let scheme = text.find("://").map(|at| at + "://".len());
    let quoted = text.find(['"', '\'']).map(|at| at + 1);
    let from = scheme.into_iter().chain(quoted).min();
    let parts = from.map(|from| text.split_at(from));
    match parts.map(|(before, after)| (before, after.rsplit_once('@'))) {
        Some((before, Some((_, rest)))) => format!("{before}***@{rest}"),
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::redacted;

    #[test]
    fn no_part_of_a_password_is_left() {
        for (text, left) in [
            ("redis://me:hunter2@host", "redis://***@host"),
            (
                "\"redis://:p@ss://w@h, redis://:x@i\", expected",
                "\"***@i\", expected",
            ),
            ("redis://host", "redis://host"),
            ("mail me@host", "mail me@host"),
            (
                "unexpected argument 'me:hunter2@a,redis://me:x@b' found",
                "unexpected argument '***@b' found",
            ),
            (
                "unexpected argument 'me:hunter2@h' found",
                "unexpected argument '***@h' found",
            ),
            (
                "string \":hunter2@h\", expected",
                "string \"***@h\", expected",
            ),
        ] {
            assert_eq!(redacted(text), left);
        }
    }
}
