//! The error of a server that did not start.

use std::{error::Error, ffi::OsStr, fmt, io, process::ExitStatus, time::Duration};

use crate::CommandError;

/// The error of a server that did not start.
#[derive(Debug)]
pub struct StartError {
    kind: StartErrorKind,
    message: String,
    source: Option<io::Error>,
}

impl StartError {
    /// Returns the kind of the error.
    pub fn kind(&self) -> StartErrorKind {
        self.kind
    }

    pub(crate) fn io(doing: &str, source: io::Error) -> Self {
        Self {
            kind: StartErrorKind::Io,
            message: format!("could not {doing}"),
            source: Some(source),
        }
    }

    pub(crate) fn refused(error: &CommandError) -> Self {
        Self {
            kind: StartErrorKind::Refused,
            message: format!("a server refused its settings: {error}"),
            source: None,
        }
    }

    pub(crate) fn port_taken(port: u16) -> Self {
        Self {
            kind: StartErrorKind::PortTaken,
            message: format!("port {port} of the loopback interface is taken"),
            source: None,
        }
    }

    pub(crate) fn exited(status: Option<ExitStatus>, log: &str) -> Self {
        let status =
            status.map_or_else(|| "of itself".to_owned(), |status| format!("with {status}"));
        Self {
            kind: StartErrorKind::Exited,
            message: format!(
                "the server ended {status} before it answered: {}",
                last_lines(log)
            ),
            source: None,
        }
    }

    pub(crate) fn timed_out(limit: Duration, log: &str) -> Self {
        Self {
            kind: StartErrorKind::TimedOut,
            message: format!(
                "the server did not answer within {limit:?}: {}",
                last_lines(log)
            ),
            source: None,
        }
    }

    pub(crate) fn no_compiler(program: &OsStr, source: io::Error) -> Self {
        Self {
            kind: StartErrorKind::Compiler,
            message: format!(
                "a server's own clock is written in C, and the compiler {} cannot be run; to name \
                 another, type: export CC=<path of a compiler>",
                program.display()
            ),
            source: Some(source),
        }
    }

    pub(crate) fn compiler(program: &OsStr, status: ExitStatus, output: &str) -> Self {
        Self {
            kind: StartErrorKind::Compiler,
            message: format!(
                "the compiler {} of a server's own clock ended with {status}: {}",
                program.display(),
                last_lines(output)
            ),
            source: None,
        }
    }

    pub(crate) fn clock(condition: &str) -> Self {
        Self {
            kind: StartErrorKind::Clock,
            message: format!("a server can have a clock of its own {condition}"),
            source: None,
        }
    }
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for StartError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_ref().map(|source| source as _)
    }
}

/// The kinds of [`StartError`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum StartErrorKind {
    /// Another socket has the requested port.
    PortTaken,
    /// The server ended before it answered; the message has the end of its log.
    Exited,
    /// The server runs but never answered; the message has the end of its log.
    TimedOut,
    /// A server of a set refused the command that makes it a part of the set.
    Refused,
    /// The C compiler, which a server with a clock of its own needs, is missing, or it failed.
    Compiler,
    /// A clock of the server's own was requested and is not possible; the message says what it needs.
    Clock,
    /// The system refused a process, a file or a socket; the source has the reason.
    Io,
}

/// Returns the end of a log: the last lines say what stopped a server.
fn last_lines(log: &str) -> String {
    const LINES: usize = 4;
    let lines: Vec<_> = log.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(LINES)..].join(" | ")
}
