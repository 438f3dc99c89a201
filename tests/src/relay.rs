//! A middleman that hides a restart, or what a server is.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::{
    io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
    task::JoinSet,
    time::sleep,
};

/// Keeps its clients' connections though the server behind it restarts, as proxies do that understand the
/// protocol, and as client libraries do that reconnect by themselves.
///
/// It passes on one command at a time, and answers with an error when the server dies with it.
#[derive(Debug)]
pub struct Relay {
    address: SocketAddr,
    connections: Arc<AtomicU64>,
    // Ends with this value, and every connection with it.
    _tasks: JoinSet<()>,
}

impl Relay {
    /// A relay in front of `server`.
    ///
    /// # Errors
    ///
    /// As listening on a socket.
    pub async fn start(server: SocketAddr) -> io::Result<Self> {
        Self::changing(server, |_| ()).await
    }

    /// A relay in front of `server` that makes it say of itself to be of another version of Redis, such as `6.0`.
    ///
    /// # Errors
    ///
    /// As listening on a socket.
    pub async fn of_version(server: SocketAddr, version: &'static str) -> io::Result<Self> {
        let edit = move |reply: &mut [u8]| {
            let field = b"\r\nredis_version:";
            let found = reply.windows(field.len()).position(|part| part == field);
            let Some(at) = found.map(|at| at + field.len()) else {
                return;
            };
            // The length of the reply is said before it, so it must stay.
            let there = reply[at..].iter_mut().take_while(|byte| **byte != b'\r');
            let padded = version.bytes().chain(".0000000000".bytes());
            for (byte, new) in there.zip(padded) {
                *byte = new;
            }
        };
        Self::changing(server, edit).await
    }

    async fn changing(
        server: SocketAddr,
        edit: impl Fn(&mut [u8]) + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let connections = Arc::new(AtomicU64::new(0));
        let mut tasks = JoinSet::new();
        let edit: Edit = Arc::new(edit);
        tasks.spawn(accept(listener, server, Arc::clone(&connections), edit));
        Ok(Self {
            address,
            connections,
            _tasks: tasks,
        })
    }

    /// The URL for clients.
    pub fn url(&self) -> String {
        format!("redis://{}", self.address)
    }

    /// How many connections clients have made so far.
    pub fn connections(&self) -> u64 {
        self.connections.load(Ordering::SeqCst)
    }
}

/// Changes a reply, and not its length.
type Edit = Arc<dyn Fn(&mut [u8]) + Send + Sync>;

async fn accept(
    listener: TcpListener,
    server: SocketAddr,
    connections: Arc<AtomicU64>,
    edit: Edit,
) {
    let mut tasks = JoinSet::new();
    while let Ok((client, _)) = listener.accept().await {
        connections.fetch_add(1, Ordering::SeqCst);
        let edit = Arc::clone(&edit);
        tasks.spawn(async move {
            // Whoever hangs up ends it.
            let _ = relay(client, server, edit).await;
        });
        while tasks.try_join_next().is_some() {}
    }
}

async fn relay(mut client: TcpStream, server: SocketAddr, edit: Edit) -> io::Result<()> {
    client.set_nodelay(true)?;
    let (from_client, mut to_client) = client.split();
    let mut from_client = BufReader::new(from_client);
    let mut upstream = connect(server).await?;
    loop {
        let command = message(&mut from_client).await?;
        let mut reply = match exchange(&mut upstream, &command).await {
            Ok(reply) => reply,
            Err(_) => {
                upstream = connect(server).await?;
                b"-ERR the server behind the relay restarts\r\n".to_vec()
            }
        };
        edit(&mut reply);
        to_client.write_all(&reply).await?;
    }
}

async fn exchange(upstream: &mut BufReader<TcpStream>, command: &[u8]) -> io::Result<Vec<u8>> {
    upstream.write_all(command).await?;
    message(upstream).await
}

/// Connects to a server that may be about to come back.
async fn connect(server: SocketAddr) -> io::Result<BufReader<TcpStream>> {
    loop {
        if let Ok(stream) = TcpStream::connect(server).await {
            stream.set_nodelay(true)?;
            return Ok(BufReader::new(stream));
        }
        sleep(Duration::from_millis(5)).await;
    }
}

/// One command or reply, as the bytes that it is.
async fn message(from: &mut (impl AsyncBufRead + Unpin)) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut left = 1_u64;
    while left > 0 {
        left -= 1;
        let start = bytes.len();
        if from.read_until(b'\n', &mut bytes).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let line = String::from_utf8_lossy(&bytes[start..]);
        let length = line
            .get(1..)
            .and_then(|rest| rest.trim().parse::<i64>().ok());
        let length = length.and_then(|length| u64::try_from(length).ok());
        match (line.bytes().next(), length) {
            (Some(b'*'), Some(length)) => left += length,
            (Some(b'$'), Some(length)) => {
                let data = from.take(length + 2).read_to_end(&mut bytes).await?;
                if data as u64 != length + 2 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
            }
            // Simple values, and what is not there.
            _ => {}
        }
    }
    Ok(bytes)
}
