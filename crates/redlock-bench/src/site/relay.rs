//! A network that takes its time.

use std::{
    io::{self, Read, Write},
    net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};

use super::Nodes;
use crate::{failed::Result, meter};

/// A relay in front of each node.
#[derive(Debug)]
pub(crate) struct Relays(Vec<Relay>);

impl Relays {
    /// Starts them: each direction takes half of `round_trip` longer than it would.
    pub(crate) fn start(nodes: &Nodes, round_trip: Duration) -> Result<Self> {
        let relays = nodes.addresses().into_iter();
        let relays = relays.map(|node| Relay::start(node, round_trip / 2));
        Ok(Self(relays.collect::<io::Result<_>>()?))
    }

    pub(crate) fn urls(&self) -> Vec<String> {
        let url = |relay: &Relay| format!("redis://{}", relay.address);
        self.0.iter().map(url).collect()
    }

    /// Measures how long one command takes through a relay, several times.
    pub(crate) fn round_trips(&self, count: usize) -> Result<Vec<Duration>> {
        let mut stream = TcpStream::connect(self.0[0].address)?;
        stream.set_nodelay(true)?;
        let mut answer = [0; 7];
        let mut round_trip = || {
            let started = meter::now();
            stream.write_all(b"PING\r\n")?;
            stream.read_exact(&mut answer)?;
            Ok(started.elapsed())
        };
        (0..count).map(|_| round_trip()).collect()
    }
}

/// Passes bytes to a node and back, in order, each part after a delay.
///
/// It has threads, because their sleep is exact: the runtime's timer knows whole milliseconds only.
#[derive(Debug)]
struct Relay {
    address: SocketAddr,
    ended: Arc<AtomicBool>,
}

impl Relay {
    fn start(node: SocketAddr, delay: Duration) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let ended = Arc::new(AtomicBool::new(false));
        let end = Arc::clone(&ended);
        thread::spawn(move || {
            while let Ok((client, _)) = listener.accept() {
                if end.load(Ordering::Relaxed) || pass(client, node, delay).is_err() {
                    return;
                }
            }
        });
        Ok(Self { address, ended })
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        // Its thread waits for a connection.
        let _ = TcpStream::connect(self.address);
    }
}

fn pass(client: TcpStream, node: SocketAddr, delay: Duration) -> io::Result<()> {
    let node = TcpStream::connect(node)?;
    client.set_nodelay(true)?;
    node.set_nodelay(true)?;
    stream(client.try_clone()?, node.try_clone()?, delay);
    stream(node, client, delay);
    Ok(())
}

/// Passes one direction on, until either side ends it.
fn stream(mut from: TcpStream, mut to: TcpStream, delay: Duration) {
    let (sender, receiver) = mpsc::channel::<(Instant, Vec<u8>)>();
    thread::spawn(move || {
        let mut buffer = vec![0; 65_536];
        while let Ok(length @ 1..) = from.read(&mut buffer) {
            let due = meter::now() + delay;
            if sender.send((due, buffer[..length].to_vec())).is_err() {
                return;
            }
        }
    });
    thread::spawn(move || {
        for (due, part) in receiver {
            thread::sleep(due.saturating_duration_since(meter::now()));
            if to.write_all(&part).is_err() {
                break;
            }
        }
        // The reader at the other end learns of the end; it may have hung up before.
        let _ = to.shutdown(Shutdown::Both);
    });
}
