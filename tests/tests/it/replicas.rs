//! Two replicas of a service behind the layer, in processes of their own, on five masters.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use http::{Method, Request, StatusCode, header};
use http_body_util::{BodyExt, Empty};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use redlock_tests::{ClientProcess, Connect, History, Nodes, Serve, Work, now, within};
use tokio::{net::TcpStream, task::JoinSet, time::sleep};

const REPLICA: &str = env!("CARGO_BIN_EXE_redlock-test-client");
const CLIENTS: u32 = 200;
/// Those that ask for the hot key, when there is one.
const HOT: u32 = CLIENTS / 5;
const ROUNDS: usize = 4;
const REQUESTS: usize = 5;
const REST: Duration = Duration::from_millis(400);

/// What all clients saw in one round.
#[derive(Default)]
struct Round {
    answers: BTreeMap<u16, usize>,
    /// How long each request of the clients took that never ask for the hot key.
    unrelated: Vec<Duration>,
}

/// A connection to a replica, and which client it is.
struct Client {
    number: u32,
    sender: SendRequest<Empty<Bytes>>,
    _connection: JoinSet<()>,
}

impl Client {
    async fn connect(number: u32, replica: SocketAddr) -> Self {
        let stream = TcpStream::connect(replica).await.unwrap();
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move { connection.await.unwrap() });
        Self {
            number,
            sender,
            _connection: tasks,
        }
    }

    async fn post(&mut self, name: &str) -> StatusCode {
        let request = Request::builder()
            .method(Method::POST)
            .uri(format!("/work/{name}"))
            .header(header::HOST, "replica")
            .body(Empty::new())
            .unwrap();
        self.sender.ready().await.unwrap();
        let response = self.sender.send_request(request).await.unwrap();
        let status = response.status();
        response.into_body().collect().await.unwrap();
        status
    }

    /// Makes its requests, each after a rest.
    async fn round(&mut self, hot: bool, next: &AtomicU32) -> Round {
        let mut round = Round::default();
        for request in 0..REQUESTS {
            // Spread, and differently for each.
            let part = (self.number as usize * 7 + request * 3) % 10;
            sleep(REST / 2 + REST * u32::try_from(part).unwrap() / 10).await;
            let name = if hot && self.number < HOT {
                "hot".to_owned()
            } else {
                format!("cold-{}", next.fetch_add(1, Ordering::Relaxed) % 1_000)
            };
            let start = now();
            let status = self.post(&name).await;
            *round.answers.entry(status.as_u16()).or_default() += 1;
            if self.number >= HOT {
                round.unrelated.push(now() - start);
            }
        }
        round
    }
}

async fn round(clients: &mut Vec<Client>, hot: bool, next: &Arc<AtomicU32>) -> Round {
    let mut running = JoinSet::new();
    for mut client in clients.drain(..) {
        let next = Arc::clone(next);
        running.spawn(async move {
            let round = client.round(hot, &next).await;
            (client, round)
        });
    }
    let mut all = Round::default();
    let ended = within("all requests are answered", LIMIT, running.join_all()).await;
    for (client, round) in ended {
        clients.push(client);
        for (status, count) in round.answers {
            *all.answers.entry(status).or_default() += count;
        }
        all.unrelated.extend(round.unrelated);
    }
    all
}

fn p99(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() * 99 / 100]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn two_replicas_exclude_per_key_answer_all_and_keep_a_hot_key_to_itself() {
    let nodes = Nodes::start(5);
    let history = History::new();
    let mut replicas = ["one", "two"].map(|name| {
        let serve = Serve {
            history: history.file(name),
            connect: Connect::to(nodes.urls(), Duration::from_secs(5)),
            wait: Duration::from_secs(20),
            work: Duration::from_millis(2),
        };
        ClientProcess::start(REPLICA, &Work::Serve(serve))
    });
    let mut clients = Vec::new();
    for (index, replica) in (0..).zip(&mut replicas) {
        let address: SocketAddr = replica.first_line().await.parse().unwrap();
        for number in (index..CLIENTS).step_by(2) {
            clients.push(Client::connect(number, address).await);
        }
    }
    let next = Arc::new(AtomicU32::new(0));
    // Connections and counters are there, and every page was touched.
    round(&mut clients, true, &next).await;

    let (mut without, mut with) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        for (hot, times) in [(false, &mut without), (true, &mut with)] {
            let round = round(&mut clients, hot, &next).await;
            let all = CLIENTS as usize * REQUESTS;
            assert_eq!(round.answers, BTreeMap::from([(200, all)]), "hot: {hot}");
            times.push(p99(round.unrelated));
        }
    }
    eprintln!("p99 of unrelated keys: {without:?} without a hot key, {with:?} with one");

    let holds = history.assert_exclusive();
    let all = (2 * ROUNDS + 1) * CLIENTS as usize * REQUESTS;
    assert_eq!(holds.len(), all, "each request ran once");
    let hot: Vec<_> = holds.iter().filter(|hold| hold.key == "name:hot").collect();
    let passed_on = hot
        .windows(2)
        .filter(|two| two[0].owner.0 != two[1].owner.0);
    let passed_on = passed_on.count();
    eprintln!(
        "{all} holds, {} of the hot key, {passed_on} times to the other replica",
        hot.len()
    );
    assert_eq!(hot.len(), (ROUNDS + 1) * HOT as usize * REQUESTS);
    assert!(passed_on > ROUNDS, "{passed_on}");

    // What else the machine does makes a round worse and never better.
    let (without, with) = (
        without.into_iter().min().unwrap(),
        with.into_iter().min().unwrap(),
    );
    assert!(
        with <= 2 * without,
        "a hot key raised the p99 of unrelated keys from {without:?} to {with:?}"
    );
}

const LIMIT: Duration = Duration::from_secs(60);
