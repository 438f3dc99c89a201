//! The connection that commands travel over: ours, or one of redis-rs.
//!
//! | file | has |
//! |---|---|
//! | `direct` | connections that are made here, over TCP and Unix sockets; redis-rs greets the server on them |
//! | `pipe` | commands and answers over such a connection, without a task of its own |
//! | `resp` | answers as they are on the wire |
//! | `waiting` | the tasks to wake when there is more to read |
//!
//! A connection of redis-rs has a task and two channels, each of which costs a lone call a turn of its thread.
//! It stays where there is no other way to the stream: TLS, RESP3, and pools of the user's.

mod direct;
mod pipe;
mod resp;
#[cfg(test)]
mod tests;
mod waiting;

use std::borrow::Cow;

use deadpool_redis::redis::{
    Cmd, RedisResult, Value,
    aio::{ConnectionLike, MultiplexedConnection},
};

pub(super) use self::direct::Direct;
use self::pipe::Pipe;

/// A command that a connection can send.
pub(super) trait Command: Send + Sync {
    /// Writes it behind what is to be sent.
    fn write(&self, output: &mut Vec<u8>);

    /// Returns it as redis-rs has it.
    fn to_redis(&self) -> Cow<'_, Cmd>;
}

impl Command for Cmd {
    fn write(&self, output: &mut Vec<u8>) {
        self.write_packed_command(output);
    }

    fn to_redis(&self) -> Cow<'_, Cmd> {
        Cow::Borrowed(self)
    }
}

/// One connection; cloning it gives another handle to it.
#[derive(Clone)]
pub(super) enum Transport {
    /// Made here.
    Own(Pipe),
    /// Taken out of a pool.
    Pooled(MultiplexedConnection),
}

impl Transport {
    /// Sends a command, and returns the server's answer; an error that it sent is an error here too.
    ///
    /// Commands take effect in the order in which their futures were first polled.
    pub(super) async fn ask<C: Command>(&mut self, command: &C) -> RedisResult<Value> {
        let answer = match self {
            Self::Own(pipe) => pipe.ask(command).await,
            Self::Pooled(connection) => connection.req_packed_command(&command.to_redis()).await,
        };
        answer?.extract_error()
    }
}
