//! Stands between the command and a server: adds a delay, changes what the server says, or hangs up.

use std::{
    io::{Read, Write},
    net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};

/// An address at which a server answers in another way.
pub(crate) struct Relay {
    address: SocketAddr,
    is_cut: Arc<AtomicBool>,
}

/// What is done with all that a server says.
#[derive(Clone)]
struct Change {
    delay: Duration,
    /// Of equal length, so that lengths stay right.
    replaced: Option<(String, String)>,
}

/// Words that end a connection when the command says them, and over how many connections that is still so.
#[derive(Clone)]
struct HangUp {
    words: String,
    left: Arc<AtomicUsize>,
}

impl Relay {
    /// Delays each answer by so much.
    pub(crate) fn delaying(server: SocketAddr, delay: Duration) -> Self {
        Self::start(
            server,
            Change {
                delay,
                replaced: None,
            },
        )
    }

    /// Replaces words by others of the same length in all that the server says.
    pub(crate) fn replacing(server: SocketAddr, from: &str, to: &str) -> Self {
        assert_eq!(from.len(), to.len());
        let change = Change {
            delay: Duration::ZERO,
            replaced: Some((from.to_owned(), to.to_owned())),
        };
        Self::start(server, change)
    }

    /// Hangs up when the command says these words, over so many connections; passes everything else on.
    pub(crate) fn hanging_up_on(server: SocketAddr, words: &str, connections: usize) -> Self {
        let unchanged = Change {
            delay: Duration::ZERO,
            replaced: None,
        };
        let hang_up = HangUp {
            words: words.to_owned(),
            left: Arc::new(AtomicUsize::new(connections)),
        };
        Self::start_with(server, unchanged, Some(hang_up))
    }

    /// Passes everything on, until it is cut.
    pub(crate) fn to(server: SocketAddr) -> Self {
        Self::delaying(server, Duration::ZERO)
    }

    /// Swallows all that is said from now on, in both directions.
    pub(crate) fn cut(&self) {
        self.is_cut.store(true, Ordering::Relaxed);
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://{}", self.address)
    }

    fn start(server: SocketAddr, change: Change) -> Self {
        Self::start_with(server, change, None)
    }

    fn start_with(server: SocketAddr, change: Change, hang_up: Option<HangUp>) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let is_cut = Arc::new(AtomicBool::new(false));
        let cut = Arc::clone(&is_cut);
        // It ends with the process of the test.
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let Ok(server) = TcpStream::connect(server) else {
                    continue;
                };
                let (from_client, to_server) = (client.try_clone(), server.try_clone());
                let unchanged = Change {
                    delay: Duration::ZERO,
                    replaced: None,
                };
                let (out, back) = (Arc::clone(&cut), Arc::clone(&cut));
                let hang_up = hang_up.clone();
                thread::spawn(move || {
                    let (client, server) = (from_client.ok()?, to_server.ok()?);
                    pass_on(client, server, &unchanged, hang_up.as_ref(), &out)
                });
                let change = change.clone();
                thread::spawn(move || pass_on(server, client, &change, None, &back));
            }
        });
        Self { address, is_cut }
    }
}

impl HangUp {
    fn ends(&self, part: &[u8]) -> bool {
        let mut windows = part.windows(self.words.len());
        let one_less = |left: usize| left.checked_sub(1);
        let order = Ordering::Relaxed;
        windows.any(|at| at == self.words.as_bytes())
            && self.left.fetch_update(order, order, one_less).is_ok()
    }
}

/// Passes on what is said, each part after the delay; parts that follow each other closely do not wait for each other.
#[expect(clippy::disallowed_methods, reason = "a delay of a test")]
fn pass_on(
    mut from: TcpStream,
    mut to: TcpStream,
    change: &Change,
    hang_up: Option<&HangUp>,
    is_cut: &AtomicBool,
) -> Option<()> {
    let (said, to_say) = mpsc::channel::<(Instant, Vec<u8>)>();
    thread::spawn(move || {
        for (at, part) in to_say {
            thread::sleep(at.saturating_duration_since(Instant::now()));
            to.write_all(&part).ok()?;
        }
        to.shutdown(Shutdown::Both).ok()
    });
    let mut buffer = vec![0; 64 * 1_024];
    loop {
        let length = from.read(&mut buffer).unwrap_or(0);
        if length == 0 {
            return None;
        }
        if is_cut.load(Ordering::Relaxed) {
            continue;
        }
        let part = &mut buffer[..length];
        if hang_up.is_some_and(|hang_up| hang_up.ends(part)) {
            from.shutdown(Shutdown::Both).ok()?;
            return None;
        }
        if let Some((old, new)) = &change.replaced {
            let found = part.windows(old.len()).position(|at| at == old.as_bytes());
            if let Some(at) = found {
                part[at..at + new.len()].copy_from_slice(new.as_bytes());
            }
        }
        said.send((Instant::now() + change.delay, part.to_vec()))
            .ok()?;
    }
}
