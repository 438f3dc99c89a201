//! One connection: commands that wait to be written, and answers that are waited for.

use std::{
    collections::VecDeque,
    io::{ErrorKind, Read, Write},
    net::SocketAddr,
};

use mio::{Interest, Poll, Token, net::TcpStream};

use crate::failed::{Failed, Result};

/// The task and the round that an answer is for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ticket {
    pub(super) task: usize,
    pub(super) round: u64,
}

/// A connection to one node.
pub(super) struct Connection {
    stream: TcpStream,
    /// What is to be written, from `written` on.
    output: Vec<u8>,
    written: usize,
    /// Whether the system takes nothing more for now.
    blocked: bool,
    /// What was read and is not a whole line yet.
    input: Vec<u8>,
    buffer: Box<[u8]>,
    /// What the next answers are for.
    waiting: VecDeque<Ticket>,
}

impl Connection {
    pub(super) fn open(address: SocketAddr, index: usize, poll: &Poll) -> Result<Self> {
        // Connected before it is registered, so that the first write cannot come too early.
        let stream = std::net::TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        let mut stream = TcpStream::from_std(stream);
        let interest = Interest::READABLE | Interest::WRITABLE;
        poll.registry()
            .register(&mut stream, Token(index), interest)?;
        Ok(Self {
            stream,
            output: Vec::new(),
            written: 0,
            blocked: false,
            input: Vec::new(),
            buffer: vec![0; 65_536].into(),
            waiting: VecDeque::new(),
        })
    }

    /// Adds a command to what is to be written; a node that takes nothing does not get it.
    pub(super) fn send(&mut self, ticket: Ticket, command: &[u8]) {
        if self.output.len() - self.written < BACKLOG {
            self.output.extend_from_slice(command);
            self.waiting.push_back(ticket);
        }
    }

    /// Says if answers are missing.
    pub(super) fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Notes that the system takes more again.
    pub(super) fn unblock(&mut self) {
        self.blocked = false;
    }

    /// Writes as much as the system takes.
    pub(super) fn flush(&mut self) -> Result<()> {
        while !self.blocked && self.written < self.output.len() {
            match self.stream.write(&self.output[self.written..]) {
                Ok(written) => self.written += written,
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.blocked = true,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        if self.written == self.output.len() {
            self.output.clear();
            self.written = 0;
        }
        Ok(())
    }

    /// Reads all there is, and tells of each answer if it is a yes.
    pub(super) fn read(&mut self, on: &mut impl FnMut(Ticket, bool)) -> Result<()> {
        loop {
            let length = match self.stream.read(&mut self.buffer) {
                Ok(0) => return Err(Failed("raw: a node hung up".to_owned())),
                Ok(length) => length,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error.into()),
            };
            self.input.extend_from_slice(&self.buffer[..length]);
            let mut read = 0;
            // Each answer is one line: `+OK`, `$-1` for nothing, `:1`, `:0`, or an error.
            while let Some(end) = self.input[read..].iter().position(|byte| *byte == b'\n') {
                let line = &self.input[read..read + end];
                read += end + 1;
                if let Some(ticket) = self.waiting.pop_front() {
                    on(ticket, line.starts_with(b"+") || line.starts_with(b":1"));
                }
            }
            self.input.drain(..read);
            // Less than there was room for is all there was, and more would be told of again.
            if length < self.buffer.len() {
                return Ok(());
            }
        }
    }
}

/// How many bytes wait for a node at most.
const BACKLOG: usize = 1 << 20;
