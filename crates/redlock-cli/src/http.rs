//! A server of HTTP with limits: no client keeps the command from its nodes, or another client from an answer.

use std::{collections::VecDeque, convert::Infallible, net::SocketAddr, time::Duration};

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use rustix::process::{Resource, getrlimit};
use tokio::{
    net::{TcpListener, TcpStream},
    task::{AbortHandle, JoinSet},
    time::{sleep, timeout},
};

use crate::exit::CommandError;

/// Listens at an address, and returns the address with the port that the system has chosen if none was given.
pub(crate) async fn listen(address: SocketAddr) -> Result<(TcpListener, SocketAddr), CommandError> {
    let failed = |error| CommandError::wrong(format!("cannot listen at {address}: {error}"));
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    Ok((listener, address))
}

/// Answers each connection once, for ever; dropping the future closes all of them.
pub(crate) async fn serve(listener: &TcpListener, routes: Router) -> Infallible {
    let mut open = Connections::default();
    let most = most();
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                open.make_room(most).await;
                open.add(stream, routes.clone());
            }
            // The client has gone, or this process has no file descriptor left.
            Err(_) => {
                open.make_room(most / 2).await;
                sleep(PAUSE).await;
            }
        }
    }
}

/// The open connections, all of which end with this value.
#[derive(Default)]
struct Connections {
    tasks: JoinSet<()>,
    /// The oldest one first.
    handles: VecDeque<AbortHandle>,
}

impl Connections {
    /// Closes the oldest connections until there are fewer than `most`: an answer takes a moment, so the oldest one is idle.
    async fn make_room(&mut self, most: usize) {
        while self.tasks.try_join_next().is_some() {}
        self.handles.retain(|handle| !handle.is_finished());
        while self.tasks.len() >= most.max(1) {
            if let Some(oldest) = self.handles.pop_front() {
                oldest.abort();
            }
            // Its file descriptor is closed then.
            drop(self.tasks.join_next().await);
        }
    }

    fn add(&mut self, stream: TcpStream, routes: Router) {
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEADER)
            .keep_alive(false)
            .max_buf_size(LONGEST_HEADER)
            .serve_connection(TokioIo::new(stream), TowerToHyperService::new(routes));
        // A client may have gone, or sent what is no request.
        let answered = async { drop(timeout(LONGEST, connection).await) };
        self.handles.push_back(self.tasks.spawn(answered));
    }
}

/// Returns how many connections may be open: the other file descriptors are for the nodes.
fn most() -> usize {
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    usize::try_from(limit / 4).unwrap_or(MOST).clamp(1, MOST)
}

/// More at a time are not needed, however many machines and tabs ask.
const MOST: usize = 256;
/// How long a client may take to send the head of its request.
const HEADER: Duration = Duration::from_secs(5);
/// The longest head of a request, in bytes.
const LONGEST_HEADER: usize = 16 * 1_024;
/// How long a connection may take with its answer: a stream of the console ends by itself before.
const LONGEST: Duration = Duration::from_secs(310);
/// How long no connection is accepted after an error.
const PAUSE: Duration = Duration::from_millis(50);
