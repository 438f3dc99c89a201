//! Free ports of the loopback interface.

use std::{
    hash::{BuildHasher, Hasher, RandomState},
    io,
    net::{Ipv4Addr, TcpListener},
    ops::Range,
};

/// Returns a port on which no process listens at this moment.
///
/// The kernel's own choice, port 0, comes from the range it also takes the local ports of
/// outgoing connections from.
/// While a server of that range is down, a client that keeps trying to reach it can be given
/// that very port and then blocks the restart, or even connects to itself.
/// Servers here are killed and restarted on their port all the time, so it is taken from below
/// that range.
pub(crate) fn free() -> io::Result<u16> {
    let mut last = None;
    for _ in 0..ATTEMPTS {
        let port = random(PORTS);
        match TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
            Ok(_) => return Ok(port),
            Err(error) => last = Some(error),
        }
    }
    Err(last.unwrap_or_else(|| io::ErrorKind::AddrInUse.into()))
}

/// Returns a random number of `range`: two processes that start servers at once rarely draw the same.
fn random(range: Range<u16>) -> u16 {
    // Each `RandomState` hashes with keys of its own, which the standard library draws at random.
    let random = RandomState::new().build_hasher().finish();
    let offset = random % u64::from(range.end - range.start);
    range.start + u16::try_from(offset).expect("the offset is less than the length of the range")
}

/// Unprivileged, and below what Linux (32768) and macOS (49152) use for outgoing connections.
const PORTS: Range<u16> = 16_384..32_768;

const ATTEMPTS: usize = 64;
