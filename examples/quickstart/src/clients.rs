//! The load: many HTTP clients on few accounts, through all replicas.

use std::{net::SocketAddr, time::Duration};

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Empty};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use tokio::{sync::watch, task::JoinSet, time::Instant};

use stage::{BoxError, Story};

use crate::bank::CUSTOMERS;

/// How many transfers are made in all.
pub(crate) const TRANSFERS: usize = 300;
const CLIENTS: usize = 30;

/// Between two requests of one client, so that the load lasts for a few ticks of the job.
const THINKING: Duration = Duration::from_millis(300);

/// A load that is under way.
pub(crate) struct Load {
    began: Instant,
    clients: JoinSet<Answers>,
    done: watch::Receiver<usize>,
}

/// What the clients were answered.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    pub(crate) failed: usize,
    pub(crate) first_failure: Option<String>,
    slowest: Duration,
}

impl Load {
    pub(crate) fn start(replicas: &[SocketAddr]) -> Self {
        let (counter, done) = watch::channel(0);
        let mut clients = JoinSet::new();
        for number in 0..CLIENTS {
            clients.spawn(client(number, replicas.to_vec(), counter.clone()));
        }
        Self {
            began: Instant::now(),
            clients,
            done,
        }
    }

    /// Waits until so many requests were answered.
    pub(crate) async fn wait_for(&self, count: usize) {
        // An error means that every client is done already.
        let _ = self.done.clone().wait_for(|done| *done >= count).await;
    }

    pub(crate) async fn finish(mut self, story: &Story) -> Result<Answers, BoxError> {
        let mut all = Answers::default();
        while let Some(answers) = self.clients.join_next().await {
            let answers = answers?;
            all.failed += answers.failed;
            all.first_failure = all.first_failure.or(answers.first_failure);
            all.slowest = all.slowest.max(answers.slowest);
        }
        story.tell(format_args!(
            "{CLIENTS} clients were answered {TRANSFERS} times in {:.1} s, the slowest answer took \
             {} ms, {} failed",
            self.began.elapsed().as_secs_f64(),
            all.slowest.as_millis(),
            all.failed,
        ));
        Ok(all)
    }
}

/// One client: its requests go to the customers and to the replicas in turn.
async fn client(number: usize, replicas: Vec<SocketAddr>, done: watch::Sender<usize>) -> Answers {
    let http = Client::builder(TokioExecutor::new()).build_http();
    let mut answers = Answers::default();
    for request in 0..TRANSFERS / CLIENTS {
        let replica = replicas[(number + request) % replicas.len()];
        let customer = (number / replicas.len() + request) % CUSTOMERS;
        let url = format!("http://{replica}/customers/{customer}/transfers");
        let asked = Instant::now();
        if let Err(failure) = post(&http, &url).await {
            answers.failed += 1;
            answers
                .first_failure
                .get_or_insert_with(|| format!("POST {url}: {failure}"));
        }
        answers.slowest = answers.slowest.max(asked.elapsed());
        done.send_modify(|done| *done += 1);
        tokio::time::sleep(THINKING).await;
    }
    answers
}

async fn post(http: &Client<HttpConnector, Empty<Bytes>>, url: &str) -> Result<(), BoxError> {
    let answer = http.request(Request::post(url).body(Empty::new())?).await?;
    let status = answer.status();
    let body = answer.into_body().collect().await?.to_bytes();
    match status {
        StatusCode::OK => Ok(()),
        _ => Err(format!("{status}: {}", String::from_utf8_lossy(&body)).into()),
    }
}
