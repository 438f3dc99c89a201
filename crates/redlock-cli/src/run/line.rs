//! The socket between a process and its child, without a file for it, and the lines on it, one for each message.

use std::{
    io::{self, IoSlice, IoSliceMut},
    mem::MaybeUninit,
    os::{
        fd::{AsFd, OwnedFd},
        unix::net::UnixStream,
    },
    process::Command,
};

use rustix::{
    net::{
        RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
        SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
    },
    time::{ClockId, clock_gettime},
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::json;

/// An order to the supervisor: until when the command may run.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(super) struct CommandDeadline {
    /// When the group is asked to end, in milliseconds as [`since_start`] has them.
    pub(super) term: u64,
    /// When it is killed.
    pub(super) kill: u64,
}

impl CommandDeadline {
    /// The time is over.
    pub(super) const OVER: Self = Self { term: 0, kill: 0 };
}

/// A message from the supervisor.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(super) enum SupervisorMessage {
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

impl SupervisorMessage {
    /// Says why the command could not be started.
    pub(super) fn not_started(error: &io::Error) -> Self {
        let (code, reason) = match error.kind() {
            io::ErrorKind::NotFound => (127, "there is no such command".to_owned()),
            _ => (126, format!("it cannot be run: {error}")),
        };
        Self::NotStarted { code, reason }
    }
}

/// Returns an order or a message as a line.
pub(super) fn written(message: &impl Serialize) -> Vec<u8> {
    format!("{}\n", json!(message)).into_bytes()
}

/// Reads a line; `None` if it is not whole, as the last one of a process that was killed.
pub(super) fn read<M: DeserializeOwned>(line: &str) -> Option<M> {
    serde_json::from_str(line).ok()
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
        let until = CommandDeadline { term: 12, kill: 34 };
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        let line = text(written(&until));
        assert_eq!(line, "{\"term\":12,\"kill\":34}\n");
        assert_eq!(read(line.trim_end()), Some(until));
        // As much of it as a process wrote that was killed meanwhile.
        assert_eq!(read::<CommandDeadline>(&line[..line.len() - 3]), None);
        let reason = "no such\nfile".to_owned();
        for news in [
            SupervisorMessage::Ready,
            SupervisorMessage::Started,
            SupervisorMessage::Exited(255),
            SupervisorMessage::NotStarted { code: 127, reason },
            SupervisorMessage::Stopping,
        ] {
            let line = text(written(&news));
            assert_eq!(line.find('\n'), Some(line.len() - 1), "{line}");
            assert_eq!(read(&line), Some(news));
        }
        assert_eq!(read::<SupervisorMessage>("{\"Exited\":256}"), None);
    }
}
