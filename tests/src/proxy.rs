//! A network between client and server that fails on command.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    select,
    sync::{Notify, mpsc, watch},
    task::JoinSet,
    time::{Instant, sleep, sleep_until},
};

/// Listens on the loopback interface and passes bytes to a server and back, in order.
///
/// What has arrived here is on its way: it reaches the server though the client hangs up meanwhile.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    state: Arc<State>,
    // Ends with this value, and every connection with it.
    _connections: JoinSet<()>,
}

#[derive(Debug)]
struct State {
    faults: Mutex<Faults>,
    /// How many connections there were so far.
    connections: AtomicU64,
    /// Requests on connections with smaller numbers are kept back.
    kept_back: watch::Sender<u64>,
}

#[derive(Clone, Copy, Debug)]
struct Faults {
    server: SocketAddr,
    request_delay: Duration,
    reply_delay: Duration,
    /// The reply to a request with this word in it is lost, and the connection with it.
    cut_after: Option<&'static str>,
    cuts: u64,
}

impl Proxy {
    /// A proxy in front of `server`, which passes everything on.
    ///
    /// # Errors
    ///
    /// As listening on a socket.
    pub async fn start(server: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let faults = Faults {
            server,
            request_delay: Duration::ZERO,
            reply_delay: Duration::ZERO,
            cut_after: None,
            cuts: 0,
        };
        let state = Arc::new(State {
            faults: Mutex::new(faults),
            connections: AtomicU64::new(0),
            kept_back: watch::Sender::new(0),
        });
        let mut connections = JoinSet::new();
        connections.spawn(accept(listener, Arc::clone(&state)));
        Ok(Self {
            address,
            state,
            _connections: connections,
        })
    }

    /// The URL for clients.
    pub fn url(&self) -> String {
        format!("redis://{}", self.address)
    }

    /// Each request takes this much longer from now on.
    pub fn delay_requests(&self, delay: Duration) {
        self.state.faults().request_delay = delay;
    }

    /// Each reply takes this much longer from now on.
    pub fn delay_replies(&self, delay: Duration) {
        self.state.faults().reply_delay = delay;
    }

    /// Keeps back what is requested on the connections that stand now; later connections pass everything on.
    pub fn hold_requests(&self) {
        self.state.kept_back.send_replace(self.connections());
    }

    /// Keeps back what is requested on all connections, also on later ones.
    pub fn cut_off(&self) {
        self.state.kept_back.send_replace(u64::MAX);
    }

    /// Lets through what was kept back, though its sender may have hung up long ago.
    pub fn let_through(&self) {
        self.state.kept_back.send_replace(0);
    }

    /// How many connections clients have made so far.
    pub fn connections(&self) -> u64 {
        self.state.connections.load(Ordering::SeqCst)
    }

    /// Connections that are made from now on lead to `server`, as an address that moves after a failover.
    pub fn lead_to(&self, server: SocketAddr) {
        self.state.faults().server = server;
    }

    /// Once: lets a request with `word` in it through, and loses its reply and the connection.
    pub fn cut_after(&self, word: &'static str) {
        self.state.faults().cut_after = Some(word);
    }

    /// How many connections were cut.
    pub fn cuts(&self) -> u64 {
        self.state.faults().cuts
    }
}

/// A proxy for each of several servers.
#[derive(Debug)]
pub struct Proxies(pub Vec<Proxy>);

impl Proxies {
    /// Starts them.
    ///
    /// # Panics
    ///
    /// If the system has no port left.
    pub async fn start(servers: impl IntoIterator<Item = SocketAddr>) -> Self {
        let mut proxies = Vec::new();
        for server in servers {
            proxies.push(Proxy::start(server).await.expect("a port is free"));
        }
        Self(proxies)
    }

    /// The URLs for clients.
    pub fn urls(&self) -> Vec<String> {
        self.0.iter().map(Proxy::url).collect()
    }
}

impl State {
    fn faults(&self) -> MutexGuard<'_, Faults> {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether this request is the one whose reply is to be lost.
    fn is_cut(&self, request: &[u8]) -> bool {
        let mut faults = self.faults();
        let found = faults.cut_after.is_some_and(|word| {
            request
                .windows(word.len())
                .any(|part| part == word.as_bytes())
        });
        if found {
            faults.cut_after = None;
            faults.cuts += 1;
        }
        found
    }
}

async fn accept(listener: TcpListener, state: Arc<State>) {
    let mut connections = JoinSet::new();
    while let Ok((client, _)) = listener.accept().await {
        let number = state.connections.fetch_add(1, Ordering::SeqCst);
        connections.spawn(pass(client, number, Arc::clone(&state)));
        while connections.try_join_next().is_some() {}
    }
}

/// Serves one connection until both of its sides are done or it is cut.
async fn pass(client: TcpStream, number: u64, state: Arc<State>) {
    let address = state.faults().server;
    let Ok(server) = TcpStream::connect(address).await else {
        return;
    };
    // A proxy that gathers small packets would add delays of its own.
    if client.set_nodelay(true).is_err() || server.set_nodelay(true).is_err() {
        return;
    }
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let (cut, severed) = (Notify::new(), Notify::new());
    let requests = stream(
        from_client,
        to_server,
        || state.faults().request_delay,
        Some((number, state.kept_back.subscribe())),
        |request| {
            if state.is_cut(request) {
                cut.notify_one();
            }
        },
    );
    // From the cut on replies are lost, and the server has time to execute the request.
    let replies = async {
        select! {
            biased;
            () = cut.notified() => sleep(EXECUTION).await,
            () = stream(from_server, to_client, || state.faults().reply_delay, None, |_| ()) => return,
        }
        severed.notify_one();
    };
    select! {
        // One side that hangs up ends one direction: what is under way in the other still arrives.
        _ = async { tokio::join!(requests, replies) } => {}
        () = severed.notified() => {}
    }
}

/// A connection's number, and below which one it is kept back.
type Gate = (u64, watch::Receiver<u64>);

/// Passes bytes on in their order, each after the delay that was set when it arrived.
async fn stream(
    from: OwnedReadHalf,
    to: OwnedWriteHalf,
    delay: impl Fn() -> Duration,
    gate: Option<Gate>,
    look: impl Fn(&[u8]),
) {
    let (sender, receiver) = mpsc::unbounded_channel();
    tokio::join!(take(from, sender, delay), deliver(to, receiver, gate, look));
}

async fn take(
    mut from: OwnedReadHalf,
    under_way: mpsc::UnboundedSender<(Instant, Vec<u8>)>,
    delay: impl Fn() -> Duration,
) {
    let mut buffer = vec![0; 65_536];
    while let Ok(length @ 1..) = from.read(&mut buffer).await {
        let at = Instant::now() + delay();
        if under_way.send((at, buffer[..length].to_vec())).is_err() {
            return;
        }
    }
}

async fn deliver(
    mut to: OwnedWriteHalf,
    mut under_way: mpsc::UnboundedReceiver<(Instant, Vec<u8>)>,
    mut gate: Option<Gate>,
    look: impl Fn(&[u8]),
) {
    while let Some((at, part)) = under_way.recv().await {
        sleep_until(at).await;
        if let Some((number, kept_back)) = &mut gate {
            // The proxy, which opens the gate, is gone only when this is.
            let _ = kept_back.wait_for(|below| *number >= *below).await;
        }
        look(&part);
        // A receiver that hung up misses it; the sender must not be kept waiting for room.
        let _ = to.write_all(&part).await;
    }
}

/// More than a server on the same machine needs for one request.
const EXECUTION: Duration = Duration::from_millis(100);
