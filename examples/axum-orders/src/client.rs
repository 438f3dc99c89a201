//! A client of the service, over HTTP.

use std::{fmt, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, Method, Request, StatusCode, header};
use http_body_util::{BodyExt, Full};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::sleep;

use stage::BoxError;

#[derive(Clone, Debug)]
pub(crate) struct Http(Client<HttpConnector, Full<Bytes>>);

/// What a client was answered; shown as it came.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
}

impl Http {
    pub(crate) fn new() -> Self {
        Self(Client::builder(TokioExecutor::new()).build_http())
    }

    /// What can be read at this URL.
    pub(crate) async fn get<T: DeserializeOwned>(&self, url: &str) -> Result<T, BoxError> {
        let answer = self.send(Method::GET, url, &Value::Null).await?;
        match answer.status {
            StatusCode::OK => Ok(serde_json::from_slice(&answer.body)?),
            _ => Err(format!("GET {url}: {answer}").into()),
        }
    }

    pub(crate) async fn put(&self, url: &str, body: &Value) -> Result<(), BoxError> {
        let answer = self.send(Method::PUT, url, body).await?;
        match answer.status {
            StatusCode::OK => Ok(()),
            _ => Err(format!("PUT {url}: {answer}").into()),
        }
    }

    /// Asks once.
    pub(crate) async fn post(&self, url: &str, body: &Value) -> Result<Answer, BoxError> {
        self.send(Method::POST, url, body).await
    }

    /// Asks, and comes back for as often as it is told to, within reason.
    ///
    /// `offset` is added to each wait, so that clients which were sent away at once do not come back at once.
    /// Returns the last answer, and how often it came back.
    pub(crate) async fn post_patiently(
        &self,
        url: &str,
        body: &Value,
        offset: Duration,
    ) -> Result<(Answer, usize), BoxError> {
        let mut returns = 0;
        loop {
            let answer = self.post(url, body).await?;
            match answer.retry_after() {
                Some(after) if returns < PATIENCE => sleep(after + offset).await,
                _ => return Ok((answer, returns)),
            }
            returns += 1;
        }
    }

    async fn send(&self, method: Method, url: &str, body: &Value) -> Result<Answer, BoxError> {
        let mut request = Request::builder().method(method).uri(url);
        let mut sent = Bytes::new();
        if !body.is_null() {
            request = request.header(header::CONTENT_TYPE, "application/json");
            sent = serde_json::to_vec(body)?.into();
        }
        let request = request.body(Full::new(sent))?;
        let failed = |error: &dyn fmt::Display| format!("{url}: {error}");
        let answer = self.0.request(request).await;
        let (head, body) = answer.map_err(|error| failed(&error))?.into_parts();
        let body = body.collect().await.map_err(|error| failed(&error))?;
        Ok(Answer {
            status: head.status,
            headers: head.headers,
            body: body.to_bytes(),
        })
    }
}

impl Answer {
    /// When the client was told to come back, if it was.
    pub(crate) fn retry_after(&self) -> Option<Duration> {
        let after = self.headers.get(header::RETRY_AFTER)?.to_str().ok()?;
        Some(Duration::from_secs(after.parse().ok()?))
    }

    /// Whether it is a refusal of the lock's: with a time to come back, and a body as of RFC 9457.
    pub(crate) fn is_refusal(&self, status: StatusCode) -> bool {
        let kind = self.headers.get(header::CONTENT_TYPE);
        let body: Option<Value> = serde_json::from_slice(&self.body).ok();
        self.status == status
            && self.retry_after().is_some()
            && kind.is_some_and(|kind| kind == "application/problem+json")
            && body.is_some_and(|body| body["status"] == status.as_u16())
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.status)?;
        for name in [header::CONTENT_TYPE, header::RETRY_AFTER] {
            if let Some(value) = self.headers.get(&name) {
                write!(f, "\n    {name}: {}", value.to_str().unwrap_or_default())?;
            }
        }
        write!(f, "\n    {}", String::from_utf8_lossy(&self.body))
    }
}

/// How often a client comes back.
const PATIENCE: usize = 8;
