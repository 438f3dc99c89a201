//! Free ports of the loopback interface.

use std::{
    hash::{BuildHasher, Hasher, RandomState},
    io,
    net::{Ipv4Addr, TcpListener},
    ops::Range,
};

/// Returns a port on which no process listens at this moment.
///
/// The port is below the range from which the kernel takes ports for outgoing connections, and for port 0.
/// While a server of that range is down, a client that tries to reach it can get its port as its own.
/// The client then blocks the restart of the server, or even connects to itself.
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
