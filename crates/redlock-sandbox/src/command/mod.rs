//! One command to a server, on a connection of its own.

mod resp;

use std::{
    error::Error,
    fmt,
    io::{self, BufReader, Write},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

pub use self::resp::Value;
use self::resp::encode;

/// Sends one command to a server that this crate did not start, and waits up to five seconds for its reply.
///
/// For a server that this crate has started, use [`Server::command`](crate::Server::command), which knows its address
/// and password.
///
/// # Errors
///
/// [`CommandError`] if there is no reply, or if the reply is an error.
pub fn command<A: AsRef<[u8]>>(
    address: SocketAddr,
    arguments: &[A],
) -> Result<Value, CommandError> {
    send(address, None, arguments, PATIENCE)
}

/// Sends `arguments` to the server at `address`, after the password if there is one.
///
/// `limit` bounds each wait for the network, not their sum.
pub(crate) fn send<A: AsRef<[u8]>>(
    address: SocketAddr,
    password: Option<&str>,
    arguments: &[A],
    limit: Duration,
) -> Result<Value, CommandError> {
    let stream = TcpStream::connect_timeout(&address, limit)?;
    stream.set_read_timeout(Some(limit))?;
    stream.set_write_timeout(Some(limit))?;
    stream.set_nodelay(true)?;
    let mut input = BufReader::new(&stream);
    let mut call = |request: &[u8]| -> Result<Value, CommandError> {
        (&stream).write_all(request)?;
        match Value::read(&mut input)? {
            Value::Error(message) => Err(CommandError(Cause::Refused(message))),
            value => Ok(value),
        }
    };
    if let Some(password) = password {
        call(&encode(&["AUTH", password]))?;
    }
    call(&encode(arguments))
}

/// The error of a command that got no reply, or an error for a reply.
#[derive(Debug)]
pub struct CommandError(Cause);

#[derive(Debug)]
enum Cause {
    Refused(String),
    Io(io::Error),
}

impl CommandError {
    /// Returns the kind of the error.
    pub fn kind(&self) -> CommandErrorKind {
        match &self.0 {
            Cause::Refused(_) => CommandErrorKind::Refused,
            Cause::Io(error) => match error.kind() {
                // A read that ran into its limit says the one on some systems, the other on others.
                io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => CommandErrorKind::TimedOut,
                _ => CommandErrorKind::Io,
            },
        }
    }
}

impl From<io::Error> for CommandError {
    fn from(error: io::Error) -> Self {
        Self(Cause::Io(error))
    }
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Cause::Refused(message) => write!(f, "the server answered: {message}"),
            Cause::Io(_) => f.write_str("the command got no reply"),
        }
    }
}

impl Error for CommandError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &self.0 {
            Cause::Refused(_) => None,
            Cause::Io(error) => Some(error),
        }
    }
}

/// The kinds of [`CommandError`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum CommandErrorKind {
    /// The server answered with an error, which the message quotes.
    Refused,
    /// No reply came in time, for example from a frozen server.
    TimedOut,
    /// There is no connection, or it broke, for example because the server is down.
    Io,
}

/// How long a command waits for its reply unless told otherwise.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);
