//! The bus of a Cluster, with a cut between its nodes that clients do not notice.

use std::{
    io,
    net::Ipv4Addr,
    sync::{
        Arc,
        atomic::{AtomicU16, Ordering},
    },
    time::Duration,
};

use redlock_sandbox::{Server, Value};
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    select,
    sync::watch,
    task::JoinSet,
    time::sleep,
};

use crate::{ClusterNodes, eventually};

/// Proxies in front of the bus ports of all nodes of a Cluster.
///
/// Each node announces the port of its proxy, so that the others connect to that.
#[derive(Debug)]
pub struct Bus {
    lines: Vec<Line>,
    /// The nodes of one side of a cut, by their ports for clients; there is no cut if it has none.
    side: watch::Sender<Vec<u16>>,
    // End with this value, and every connection with them.
    _proxies: JoinSet<()>,
}

/// The way to one node.
#[derive(Debug)]
struct Line {
    /// The port for clients.
    node: u16,
    announced: u16,
    /// The port on which the node hears the others.
    bus: Arc<AtomicU16>,
}

impl Bus {
    /// Leads the nodes of this Cluster to each other.
    ///
    /// # Panics
    ///
    /// If they do not take the proxies within half a minute.
    pub async fn of(nodes: &ClusterNodes) -> Self {
        let side = watch::Sender::new(Vec::new());
        let (mut lines, mut proxies) = (Vec::new(), JoinSet::new());
        for server in nodes.servers() {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await;
            let listener = listener.expect("a port is free");
            let announced = listener.local_addr().expect("it is bound").port();
            let (node, bus) = (server.port(), Arc::new(AtomicU16::new(0)));
            proxies.spawn(accept(listener, node, Arc::clone(&bus), side.subscribe()));
            lines.push(Line {
                node,
                announced,
                bus,
            });
        }
        let this = Self {
            lines,
            side,
            _proxies: proxies,
        };
        for server in nodes.servers() {
            this.announce(server);
        }
        let others_know = |server: &Server| {
            let known = server.command(&["CLUSTER", "NODES"]);
            let known = known.ok().and_then(|it| it.as_text().map(str::to_owned));
            let known = known.unwrap_or_default();
            let is_known = |line: &Line| known.contains(&format!("@{}", line.announced));
            this.lines.iter().all(is_known) && !known.contains("disconnected")
        };
        let all_know = || nodes.servers().all(others_know);
        eventually("a bus by proxies", LIMIT, all_know, |all_know| *all_know).await;
        this
    }

    /// Has a node announce its proxy, as it must again after a restart.
    ///
    /// # Panics
    ///
    /// If the server is no node of the Cluster, or does not answer.
    pub fn announce(&self, server: &Server) {
        let line = self.lines.iter().find(|line| line.node == server.port());
        let line = line.expect("it is a node of the Cluster");
        let bus = server.command(&["CONFIG", "GET", "cluster-port"]);
        let bus = bus.expect("it answers");
        let bus = bus.as_array().and_then(|pair| pair.get(1)?.as_text());
        let bus = bus.and_then(|port| port.parse().ok());
        line.bus.store(bus.expect("it is a port"), Ordering::SeqCst);
        let announced = line.announced.to_string();
        let set = ["CONFIG", "SET", "cluster-announce-bus-port", &announced];
        let set = server.command(&set).expect("it answers");
        assert_eq!(set, Value::Status("OK".to_owned()));
    }

    /// Cuts these nodes, by their ports for clients, off from all others, and not from each other.
    pub fn cut_off(&self, nodes: &[u16]) {
        self.side.send_replace(nodes.to_vec());
    }

    /// Ends the cut.
    pub fn let_through(&self) {
        self.side.send_replace(Vec::new());
    }
}

async fn accept(
    listener: TcpListener,
    node: u16,
    bus: Arc<AtomicU16>,
    side: watch::Receiver<Vec<u16>>,
) {
    let mut connections = JoinSet::new();
    while let Ok((from, _)) = listener.accept().await {
        let (bus, side) = (bus.load(Ordering::SeqCst), side.clone());
        connections.spawn(async move {
            // Either node ends it, or the cut does.
            drop(pass(from, node, bus, side).await);
        });
        while connections.try_join_next().is_some() {}
    }
}

async fn pass(
    mut from: TcpStream,
    node: u16,
    bus: u16,
    mut side: watch::Receiver<Vec<u16>>,
) -> io::Result<()> {
    let sender = sender_of(&from).await?;
    let is_cut = |side: &Vec<u16>| side.contains(&sender) != side.contains(&node);
    if is_cut(&side.borrow_and_update()) {
        return Ok(());
    }
    let mut to = TcpStream::connect((Ipv4Addr::LOCALHOST, bus)).await?;
    select! {
        passed = copy_bidirectional(&mut from, &mut to) => passed.map(drop),
        _ = side.wait_for(is_cut) => Ok(()),
    }
}

/// The port for clients of the node that has connected, which each message has in its head.
async fn sender_of(from: &TcpStream) -> io::Result<u16> {
    let mut head = [0; SENDER + 2];
    loop {
        match from.peek(&mut head).await? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            length if length < head.len() => sleep(POLL).await,
            _ => return Ok(u16::from_be_bytes([head[SENDER], head[SENDER + 1]])),
        }
    }
}

/// Behind the signature, the length and the version.
const SENDER: usize = 10;
const LIMIT: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(1);
