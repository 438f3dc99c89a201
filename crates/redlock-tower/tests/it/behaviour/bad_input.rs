//! What no good client sends, over a socket.

use std::time::Duration;

use axum::{
    Router,
    body::Bytes,
    extract::Path,
    routing::{any, get},
};
use futures_util::poll;
use redlock_core::{AcquireOptions, Redlock, Wait};
use redlock_tower::{PathKey, RedlockLayer, RedlockLayerBuilder};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::Instant,
};

use crate::behaviour::kit::{
    HEADER, KEY, LONG, Nodes, Server, by_header, in_time, is_free, request,
};

struct Site {
    nodes: Nodes,
    redlock: Redlock,
    server: Server,
}

/// A server whose handlers read the whole of a request's body, or only its path.
async fn site(layer: impl Fn(RedlockLayerBuilder) -> RedlockLayerBuilder) -> Site {
    let nodes = Nodes::new();
    let redlock = nodes.client().build().await.unwrap();
    let builder = layer(RedlockLayer::builder(redlock.clone()));
    let by_path = builder.clone().build(PathKey::new("order", "id")).unwrap();
    let by_header = builder.build(by_header()).unwrap();
    let read = any(async |body: Bytes| body.len().to_string());
    let app = Router::new().route("/", read.layer(by_header)).route(
        "/orders/{id}",
        get(async |_: Path<String>| "done").layer(by_path),
    );
    Site {
        nodes,
        redlock,
        server: Server::start(app).await,
    }
}

impl Site {
    async fn send(&self, bytes: &[u8]) -> TcpStream {
        let mut stream = self.server.raw().await;
        stream.write_all(bytes).await.unwrap();
        stream
    }

    /// All that is answered to `head`, which asks for the connection's end.
    async fn answer(&self, head: &[u8]) -> String {
        let closing = [head, b"connection: close\r\n\r\n"].concat();
        rest_of(&mut self.send(&closing).await).await
    }

    /// Nothing is held, and the next request is served.
    async fn is_as_before(&self) {
        self.nodes.have_keys(0).await;
        assert!(is_free(&self.redlock, KEY).await);
        self.nodes.have_keys(0).await;
        assert_eq!(self.server.answer(request(KEY)).await.status, 200);
    }

    /// Waits until another request waits for the key or, with `false`, until none does.
    async fn somebody_waits(&self, somebody: bool) {
        let nobody_else = AcquireOptions::new().max_waiters_per_key(1);
        let refused = async || {
            let key = format!("test:{KEY}");
            let acquire = self.redlock.acquire_with(key, nobody_else.clone());
            poll!(std::pin::pin!(acquire)).is_ready()
        };
        in_time(async {
            while refused().await != somebody {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        })
        .await;
    }
}

async fn rest_of(stream: &mut TcpStream) -> String {
    let mut answer = Vec::new();
    in_time(stream.read_to_end(&mut answer)).await.unwrap();
    String::from_utf8(answer).unwrap()
}

#[tokio::test]
async fn a_header_that_names_no_resource_is_400() {
    let site = site(|builder| builder).await;
    let longest = "k".repeat(512 - "test:".len());
    let (too_long, huge) = (format!("{longest}k"), "k".repeat(100_000));
    let cases: [(&[u8], &str); 6] = [
        (b"", "is empty"),
        (too_long.as_bytes(), "has 513 bytes"),
        (huge.as_bytes(), "has 100005 bytes"),
        (b"a\tb", "contains a control character"),
        (b"\xff\xfe", "is not visible ASCII"),
        ("ü".as_bytes(), "is not visible ASCII"),
    ];
    for (value, detail) in cases {
        let head = format!("GET / HTTP/1.1\r\nhost: test\r\n{HEADER}: ");
        let head = [head.as_bytes(), value, b"\r\n"].concat();
        let answer = site.answer(&head).await;
        assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
        assert!(answer.contains("application/problem+json"), "{answer}");
        assert!(answer.contains(detail), "{answer}");
        assert!(
            !answer.contains("kkk") && !answer.contains("retry-after"),
            "{answer}"
        );
    }
    let head = format!("GET / HTTP/1.1\r\nhost: test\r\n{HEADER}: {longest}\r\n");
    let answer = site.answer(head.as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    site.is_as_before().await;
}

/// What is no HTTP does not get as far as the layer.
#[tokio::test]
async fn a_control_character_in_a_header_is_400() {
    let site = site(|builder| builder).await;
    for control in ["\x01", "\x1b", "\x7f", "\0"] {
        let head = format!("GET / HTTP/1.1\r\nhost: test\r\n{HEADER}: a{control}b\r\n");
        let answer = site.answer(head.as_bytes()).await;
        assert!(answer.starts_with("HTTP/1.1 400 "), "{control:?}: {answer}");
    }
    site.is_as_before().await;
}

#[tokio::test]
async fn a_path_that_names_no_resource_is_refused() {
    let site = site(|builder| builder).await;
    let (long, huge) = ("k".repeat(507), "k".repeat(100_000));
    let cases = [
        ("", 404),
        ("%00", 400),
        ("%0a", 400),
        ("%C2%85", 400),
        ("%ff", 400),
        (&long, 400),
        // As the server has it: no longer URI is read.
        (&huge, 414),
    ];
    for (id, status) in cases {
        let head = format!("GET /orders/{id} HTTP/1.1\r\nhost: test\r\n");
        let answer = site.answer(head.as_bytes()).await;
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status} ")),
            "{id}: {answer}"
        );
        assert!(!answer.contains("kkk"), "{answer}");
    }
    let head = format!("GET /orders/{} HTTP/1.1\r\nhost: test\r\n", &long[1..]);
    assert!(
        site.answer(head.as_bytes())
            .await
            .starts_with("HTTP/1.1 200 ")
    );
    site.is_as_before().await;
}

/// More than a server reads ahead, and less than it is told to expect.
fn half_an_upload() -> Vec<u8> {
    const WHOLE: usize = 1024 * 1024;
    let head = format!(
        "POST / HTTP/1.1\r\nhost: test\r\n{HEADER}: {KEY}\r\ncontent-length: {WHOLE}\r\n\r\n"
    );
    [head.into_bytes(), vec![b'x'; WHOLE / 2]].concat()
}

/// Over HTTP/1.1 a server does not notice that a client has left whose body it does not read.
#[tokio::test]
async fn half_an_upload_waits_no_longer_than_others_do() {
    let wait = Duration::from_millis(500);
    let site = site(|builder| builder.options(AcquireOptions::new().wait(Wait::UpTo(wait)))).await;
    let holder = site.redlock.acquire(format!("test:{KEY}")).await.unwrap();
    let start = Instant::now();
    // The client can send all of it only once the server reads it, which the server does not do.
    let mut stream = site.server.raw().await;
    let upload = half_an_upload();
    let leaves = async {
        site.somebody_waits(true).await;
    };
    tokio::select! {
        biased;
        () = leaves => {}
        sent = stream.write_all(&upload) => {
            sent.unwrap();
            site.somebody_waits(true).await;
        }
    }
    drop(stream);
    site.somebody_waits(false).await;
    assert!(
        start.elapsed() >= wait,
        "it was noticed after all: {:?}",
        start.elapsed()
    );
    drop(holder);
    site.is_as_before().await;
}

#[tokio::test]
async fn half_an_upload_that_gets_the_lock_gives_it_back() {
    let site = site(|builder| builder.options(AcquireOptions::new().wait(LONG))).await;
    let holder = site.redlock.acquire(format!("test:{KEY}")).await.unwrap();
    let mut stream = site.server.raw().await;
    let upload = half_an_upload();
    tokio::select! {
        biased;
        () = site.somebody_waits(true) => {}
        sent = stream.write_all(&upload) => sent.unwrap(),
    }
    site.somebody_waits(true).await;
    drop(stream);
    drop(holder);
    site.is_as_before().await;
}

#[tokio::test]
async fn an_upload_that_never_ends_is_answered_when_its_hold_does() {
    let max_hold = Duration::from_millis(400);
    let site = site(|builder| builder.options(AcquireOptions::new().max_hold(max_hold))).await;
    let mut stream = site.send(&half_an_upload()[..10_000]).await;
    let mut answer = vec![0; 12];
    in_time(stream.read_exact(&mut answer)).await.unwrap();
    assert_eq!(String::from_utf8(answer).unwrap(), "HTTP/1.1 503");
    site.is_as_before().await;
}
