//! Servers with a clock of their own, and what to ask them.

use std::time::Duration;

use redlock_sandbox::{Server, ServerBinary, ServerClock, ServerOptions, Value};

pub(crate) const HOUR: Duration = Duration::from_secs(3_600);
pub(crate) const MILLISECOND: Duration = Duration::from_millis(1);
pub(crate) const MICROSECOND: Duration = Duration::from_micros(1);

/// In November 2023, at the start of a second.
pub(crate) const NOON: Duration = Duration::from_secs(1_700_049_600);

pub(crate) fn start() -> Server {
    Server::start(&binary(), ServerOptions::default().own_clock()).unwrap()
}

pub(crate) fn binary() -> ServerBinary {
    ServerBinary::find().unwrap_or_else(|error| panic!("{error}"))
}

pub(crate) fn clock(server: &Server) -> &ServerClock {
    server.clock().unwrap()
}

pub(crate) fn instant(reply: &Value) -> Duration {
    match reply.as_array() {
        Some([seconds, micros]) => {
            since_epoch(seconds.as_text().unwrap(), micros.as_text().unwrap())
        }
        _ => panic!("{reply:?}"),
    }
}

pub(crate) fn since_epoch(seconds: &str, micros: &str) -> Duration {
    Duration::from_secs(seconds.parse().unwrap()) + Duration::from_micros(micros.parse().unwrap())
}

pub(crate) fn set(server: &Server, key: &str, ttl: Duration) {
    let ttl = ttl.as_millis().to_string();
    server.command(&["SET", key, "mine", "PX", &ttl]).unwrap();
}

pub(crate) fn exists(server: &Server, key: &str) -> bool {
    server.command(&["EXISTS", key]).unwrap().as_integer() == Some(1)
}

pub(crate) fn left(server: &Server, key: &str) -> i64 {
    let reply = server.command(&["PTTL", key]).unwrap();
    reply.as_integer().unwrap()
}
