//! Free ports of the loopback interface.

use std::{
    hash::{BuildHasher, Hasher, RandomState},
    io,
    net::{Ipv4Addr, TcpListener, UdpSocket},
    ops::Range,
};

/// A port that no other server of any sandbox gets while this value lives, even while its own server is down.
///
/// The claim is a UDP socket of the same number: the system refuses a second one, and closes it with the process.
#[derive(Debug)]
pub(crate) struct Port {
    number: u16,
    _claim: UdpSocket,
}

impl Port {
    /// Claims `number` if no process listens on it at this moment.
    pub(crate) fn claim(number: u16) -> io::Result<Self> {
        let claim = UdpSocket::bind((Ipv4Addr::LOCALHOST, number))?;
        TcpListener::bind((Ipv4Addr::LOCALHOST, number))?;
        Ok(Self {
            number,
            _claim: claim,
        })
    }

    /// Returns the number of the port.
    pub(crate) fn number(&self) -> u16 {
        self.number
    }
}

/// Claims a random port on which no process listens at this moment.
///
/// The port is below the range from which the kernel takes ports for outgoing connections, and for port 0.
/// While a server of that range is down, a client that tries to reach it can get its port as its own.
/// The client then blocks the restart of the server, or even connects to itself.
pub(crate) fn free() -> io::Result<Port> {
    let mut last = None;
    for _ in 0..ATTEMPTS {
        match Port::claim(random(PORTS)) {
            Ok(port) => return Ok(port),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_stays_claimed_while_its_server_is_down() {
        let port = free().unwrap();
        let other = Port::claim(port.number()).unwrap_err();
        assert_eq!(other.kind(), io::ErrorKind::AddrInUse);
        let number = port.number();
        drop(port);
        Port::claim(number).unwrap();
    }
}
