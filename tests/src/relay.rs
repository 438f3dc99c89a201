//! A middleman that hides a restart, or what a server is, or repeats what it was asked.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::{
    io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
    select,
    sync::Notify,
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
    repeats: Arc<AtomicBool>,
    hang_up: Arc<Notify>,
    // Ends with this value, and every connection with it.
    _tasks: JoinSet<()>,
}

/// Makes an answer of the arguments of a command, the first of which is its name.
pub type Repeat = fn(&[String]) -> String;

impl Relay {
    /// A relay in front of `server`.
    ///
    /// # Errors
    ///
    /// As listening on a socket.
    pub async fn start(server: SocketAddr) -> io::Result<Self> {
        Self::changing(server, |_| (), |_| String::new()).await
    }

    /// A relay in front of `server` that can be told to answer by itself, with what `repeat` makes of the command.
    ///
    /// # Errors
    ///
    /// As listening on a socket.
    pub async fn repeating(server: SocketAddr, repeat: Repeat) -> io::Result<Self> {
        Self::changing(server, |_| (), repeat).await
    }

    /// Whether it answers by itself from now on.
    pub fn repeat(&self, repeats: bool) {
        self.repeats.store(repeats, Ordering::SeqCst);
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
        Self::changing(server, edit, |_| String::new()).await
    }

    async fn changing(
        server: SocketAddr,
        edit: impl Fn(&mut [u8]) + Send + Sync + 'static,
        repeat: Repeat,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let connections = Arc::new(AtomicU64::new(0));
        let mut tasks = JoinSet::new();
        let repeats = Arc::new(AtomicBool::new(false));
        let hang_up = Arc::new(Notify::new());
        let answers = Answers {
            edit: Arc::new(edit),
            repeat,
            repeats: Arc::clone(&repeats),
            hang_up: Arc::clone(&hang_up),
        };
        tasks.spawn(accept(listener, server, Arc::clone(&connections), answers));
        Ok(Self {
            address,
            connections,
            repeats,
            hang_up,
            _tasks: tasks,
        })
    }

    /// Ends the connections that stand now.
    pub fn hang_up(&self) {
        self.hang_up.notify_waiters();
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

/// What a relay does beside passing on.
#[derive(Clone)]
struct Answers {
    edit: Edit,
    repeat: Repeat,
    repeats: Arc<AtomicBool>,
    hang_up: Arc<Notify>,
}

async fn accept(
    listener: TcpListener,
    server: SocketAddr,
    connections: Arc<AtomicU64>,
    answers: Answers,
) {
    let mut tasks = JoinSet::new();
    while let Ok((client, _)) = listener.accept().await {
        connections.fetch_add(1, Ordering::SeqCst);
        let answers = answers.clone();
        tasks.spawn(async move {
            let hang_up = Arc::clone(&answers.hang_up);
            // It ends when the client, the server or the test hangs up.
            select! {
                _ = relay(client, server, answers) => {}
                () = hang_up.notified() => {}
            }
        });
        while tasks.try_join_next().is_some() {}
    }
}

async fn relay(mut client: TcpStream, server: SocketAddr, answers: Answers) -> io::Result<()> {
    client.set_nodelay(true)?;
    let (from_client, mut to_client) = client.split();
    let mut from_client = BufReader::new(from_client);
    let mut upstream = connect(server).await?;
    loop {
        let command = message(&mut from_client).await?;
        if answers.repeats.load(Ordering::SeqCst) {
            let repeated = (answers.repeat)(&arguments(&command));
            to_client.write_all(repeated.as_bytes()).await?;
            continue;
        }
        let mut reply = match exchange(&mut upstream, &command).await {
            Ok(reply) => reply,
            Err(_) => {
                upstream = connect(server).await?;
                b"-ERR the server behind the relay restarts\r\n".to_vec()
            }
        };
        (answers.edit)(&mut reply);
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

/// The arguments of a command; none has a line break in it but the script.
fn arguments(command: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(command);
    let mut parts = text.split("\r\n").skip(1);
    let mut arguments = Vec::new();
    while let (Some(_length), Some(argument)) = (parts.next(), parts.next()) {
        arguments.push(argument.replace('\n', " "));
    }
    arguments
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
