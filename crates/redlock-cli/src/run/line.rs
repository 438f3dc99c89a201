//! The socket between a process and its child, without a file for it, and the lines on it, one for each message.

use std::{
    fmt,
    io::{self, IoSlice, IoSliceMut},
    mem::MaybeUninit,
    os::{
        fd::{AsFd, OwnedFd},
        unix::net::UnixStream,
    },
    process::Command,
    str::FromStr,
};

use rustix::{
    net::{
        RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
        SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
    },
    time::{ClockId, clock_gettime},
};

/// An order to the warden: until when the command may run.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Until {
    /// When the group is asked to end, in milliseconds as [`since_start`] has them.
    pub(super) term: u64,
    /// When it is killed.
    pub(super) kill: u64,
}

impl Until {
    /// The time is over.
    pub(super) const OVER: Self = Self { term: 0, kill: 0 };
}

/// A message from the warden.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum WardenNews {
    /// It catches signals, and waits for an order.
    Ready,
    /// The command runs.
    Started,
    /// The command has ended with this exit code.
    Exited(u8),
    /// It could not be started.
    NotStarted { code: u8, reason: String },
    /// The group is asked to end, because its time is over.
    Stopping,
}

impl WardenNews {
    /// Says why the command could not be started.
    pub(super) fn not_started(error: &io::Error) -> Self {
        let (code, reason) = match error.kind() {
            io::ErrorKind::NotFound => (127, "there is no such command".to_owned()),
            _ => (126, format!("it cannot be run: {error}")),
        };
        Self::NotStarted { code, reason }
    }
}

impl fmt::Display for Until {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { term, kill } = self;
        writeln!(f, "until {term} {kill}")
    }
}

impl FromStr for Until {
    type Err = Garbled;

    fn from_str(line: &str) -> Result<Self, Garbled> {
        let times = line.strip_prefix("until ").ok_or(Garbled)?;
        let (term, kill) = times.split_once(' ').ok_or(Garbled)?;
        let number = |word: &str| word.parse().map_err(|_| Garbled);
        Ok(Self {
            term: number(term)?,
            kill: number(kill)?,
        })
    }
}

impl fmt::Display for WardenNews {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ready => writeln!(f, "ready"),
            Self::Started => writeln!(f, "started"),
            Self::Exited(code) => writeln!(f, "exited {code}"),
            Self::NotStarted { code, reason } => writeln!(f, "not-started {code} {reason}"),
            Self::Stopping => writeln!(f, "stopping"),
        }
    }
}

impl FromStr for WardenNews {
    type Err = Garbled;

    fn from_str(line: &str) -> Result<Self, Garbled> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "ready" => Ok(Self::Ready),
            "started" => Ok(Self::Started),
            "exited" => rest.parse().map(Self::Exited).map_err(|_| Garbled),
            "not-started" => {
                let (code, reason) = rest.split_once(' ').ok_or(Garbled)?;
                let (code, reason) = (code.parse().map_err(|_| Garbled)?, reason.to_owned());
                Ok(Self::NotStarted { code, reason })
            }
            "stopping" => Ok(Self::Stopping),
            _ => Err(Garbled),
        }
    }
}

/// Returns the time since the machine was started, in milliseconds, as both processes read it.
pub(super) fn since_start() -> u64 {
    #[cfg(target_os = "linux")]
    let clock = ClockId::Boottime;
    #[cfg(not(target_os = "linux"))]
    let clock = ClockId::Monotonic;
    let time = clock_gettime(clock);
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    seconds * 1_000 + u64::try_from(time.tv_nsec).unwrap_or_default() / 1_000_000
}

/// A line that is neither an order nor a message.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Garbled;

/// Gives a command that will be started this process's standard input, and a socket to this process, which it returns.
///
/// The child finds the socket in the place of its standard input, and its standard input in the socket.
/// The command keeps an end of the socket until it is dropped.
pub(super) fn hand_over(command: &mut Command) -> io::Result<UnixStream> {
    let (own, of_child) = UnixStream::pair()?;
    let stdin = io::stdin();
    let stdin = [stdin.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    control.push(SendAncillaryMessage::ScmRights(&stdin));
    sendmsg(
        &own,
        &[IoSlice::new(&[0])],
        &mut control,
        SendFlags::empty(),
    )?;
    own.set_nonblocking(true)?;
    command.stdin(OwnedFd::from(of_child));
    Ok(own)
}

/// Returns the socket to the process that started this one, and has its standard input back.
pub(super) fn take_over() -> io::Result<UnixStream> {
    let socket = io::stdin().as_fd().try_clone_to_owned()?;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let mut parts = [IoSliceMut::new(&mut byte)];
    recvmsg(&socket, &mut parts, &mut control, RecvFlags::empty())?;
    let mut passed = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut files) => files.next(),
        _ => None,
    });
    let stdin = passed.next().ok_or(io::ErrorKind::InvalidInput)?;
    rustix::stdio::dup2_stdin(&stdin)?;
    Ok(socket.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let until = Until { term: 12, kill: 34 };
        assert_eq!(until.to_string(), "until 12 34\n");
        assert_eq!("until 12 34".parse(), Ok(until));
        assert_eq!("until 12".parse::<Until>(), Err(Garbled));
        let reason = "no such file".to_owned();
        for news in [
            WardenNews::Ready,
            WardenNews::Started,
            WardenNews::Exited(255),
            WardenNews::NotStarted { code: 127, reason },
            WardenNews::Stopping,
        ] {
            assert_eq!(news.to_string().trim_end().parse(), Ok(news));
        }
        assert_eq!("exited 256".parse::<WardenNews>(), Err(Garbled));
    }
}
