//! A socket between a process and its child, without a file for it.
//!
//! The child finds it in the place of its standard input, and its standard input in the socket.

use std::{
    io::{self, IoSlice, IoSliceMut},
    mem::MaybeUninit,
    os::{
        fd::{AsFd, OwnedFd},
        unix::net::UnixStream,
    },
    process::Command,
};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

/// Gives a command that will be started this process's standard input, and a socket to this process, which it returns.
///
/// The command keeps an end of the socket until it is dropped.
pub(super) fn pass_on(command: &mut Command) -> io::Result<UnixStream> {
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
pub(super) fn take() -> io::Result<UnixStream> {
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
