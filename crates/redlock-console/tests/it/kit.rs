//! A console, and what it answers.

use axum::{
    Router,
    body::{Body, Bytes},
    http::{HeaderMap, Request, StatusCode},
};
use futures_util::StreamExt;
use redlock_console::{Console, Snapshot, router};
use redlock_core::Redlock;
use redlock_sandbox::{ServerBinary, ServerOptions, ServerSet};
use tower::ServiceExt;

/// An answer of the console.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name);
        value.map_or("", |value| value.to_str().unwrap())
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        assert_eq!(self.status, StatusCode::OK, "{self:?}");
        serde_json::from_str(&self.text).unwrap()
    }
}

/// Sends a request, and returns the answer as its body begins.
pub(crate) async fn send(routes: &Router, request: Request<Body>) -> axum::response::Response {
    routes.clone().oneshot(request).await.unwrap()
}

/// Sends a request, and returns all of its answer.
pub(crate) async fn answer(routes: &Router, request: Request<Body>) -> Answer {
    let answer = send(routes, request).await;
    let (status, headers) = (answer.status(), answer.headers().clone());
    let body = axum::body::to_bytes(answer.into_body(), 10_000_000).await;
    let text = String::from_utf8(body.unwrap().into()).unwrap();
    Answer {
        status,
        headers,
        text,
    }
}

pub(crate) fn request(method: &str, path: &str) -> Request<Body> {
    let request = Request::builder().method(method).uri(path);
    request.header("host", "h").body(Body::empty()).unwrap()
}

pub(crate) async fn get(routes: &Router, path: &str) -> Answer {
    answer(routes, request("GET", path)).await
}

/// Sends a form as the console's own page does.
pub(crate) async fn post(routes: &Router, path: &str, form: &str) -> Answer {
    let mut request = request("POST", path);
    *request.body_mut() = Body::from(form.to_owned());
    let headers = request.headers_mut();
    let kind = "application/x-www-form-urlencoded";
    headers.insert("content-type", kind.parse().unwrap());
    headers.insert("sec-fetch-site", "same-origin".parse().unwrap());
    answer(routes, request).await
}

/// The events of a stream, as they come.
pub(crate) struct Events {
    body: axum::body::BodyDataStream,
    text: String,
}

impl Events {
    pub(crate) async fn open(routes: &Router, path: &str) -> Self {
        let answer = send(routes, request("GET", path)).await;
        assert_eq!(answer.status(), StatusCode::OK);
        assert_eq!(answer.headers()["x-accel-buffering"], "no");
        assert_eq!(answer.headers()["content-type"], "text/event-stream");
        Self {
            body: answer.into_body().into_data_stream(),
            text: String::new(),
        }
    }

    /// Returns the data of the next event; `None` at the end of the stream.
    pub(crate) async fn next(&mut self) -> Option<String> {
        loop {
            if let Some((event, rest)) = self.text.split_once("\n\n") {
                let (event, rest) = (event.to_owned(), rest.to_owned());
                self.text = rest;
                if let Some(data) = event.strip_prefix("data: ") {
                    return Some(data.to_owned());
                }
                // A comment.
                assert!(event.starts_with(':'), "{event}");
                continue;
            }
            let part: Bytes = self.body.next().await?.unwrap();
            self.text.push_str(str::from_utf8(&part).unwrap());
        }
    }

    /// Reads on until the stream ends.
    pub(crate) async fn ended(&mut self) {
        while self.next().await.is_some() {}
    }
}

/// The routes of a console that only shows, of nodes in memory.
pub(crate) async fn in_memory() -> (Router, Console) {
    let client = Redlock::builder().in_memory_nodes(3).build().await.unwrap();
    let console = Console::builder(client).build().unwrap();
    (router(console.clone()), console)
}

/// Servers for which an operator has vouched, and a client of them.
pub(crate) async fn servers(count: usize, options: &ServerOptions) -> (ServerSet, Redlock) {
    let binary = ServerBinary::find().expect("this test needs a server");
    let servers = ServerSet::start(&binary, count, options).expect("this test needs a server");
    let client = Redlock::builder().nodes(servers.urls()).label("console");
    let client = client.build().await.unwrap();
    client.dangerous_bless().await;
    (servers, client)
}
