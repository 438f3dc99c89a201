//! A replica is stopped beyond its lease, and then writes late.

use std::time::Duration;

use http::StatusCode;
use serde_json::json;
use tokio::time::{Instant, sleep};

use stage::{BoxError, Story};

use crate::{
    books::Order,
    client::{Answer, Http},
    load::Ids,
    replica::Replica,
    server::{SLOW_CARD, Statistics},
};

/// What became of the late write.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Late {
    refused: u64,
    payments: usize,
}

impl Late {
    /// In words, if it is as it should be.
    pub(crate) fn verdict(self) -> Result<String, BoxError> {
        let Self { refused, payments } = self;
        match (refused, payments) {
            (1, 1) => Ok("1 late write refused".to_owned()),
            _ => Err(format!(
                "{refused} late writes refused instead of 1, and the order is paid {payments} times"
            )
            .into()),
        }
    }
}

pub(crate) async fn run(replicas: &[Replica], story: Story) -> Result<Late, BoxError> {
    let [stopped, other, ..] = replicas else {
        return Err("it takes two replicas".into());
    };
    let ids = Ids::new();
    for attempt in 0..ATTEMPTS {
        if let Some(late) = attempt_at(stopped, other, ids.nth(attempt), story).await? {
            return Ok(late);
        }
        story.tell(format_args!(
            "the replica was quicker than we are; once more"
        ));
    }
    Err("no replica could be stopped in the middle of a payment".into())
}

/// `None` if the payment was done before the replica was stopped.
async fn attempt_at(
    stopped: &Replica,
    other: &Replica,
    order: i64,
    story: Story,
) -> Result<Option<Late>, BoxError> {
    let http = Http::new();
    let path = format!("/orders/{order}");
    let before = statistics(&http, stopped).await?;
    http.put(&format!("{}{path}", other.url), &json!({ "amount": 9_900 }))
        .await?;
    let url = format!("{}{path}/pay", stopped.url);
    let patient = http.clone();
    let first = async move { patient.post(&url, &json!({ "card": SLOW_CARD })).await };
    let mut first = Box::pin(first);

    // Its client waits on while we look.
    let asked = until(&http, stopped, |now| now.banks_asked > before.banks_asked);
    tokio::select! {
        _ = &mut first => return Ok(None),
        asked = asked => asked?,
    };
    stopped.freeze()?;
    story.tell(format_args!(
        "replica 1 waits for a bank when it is stopped (SIGSTOP), and so is the renewal of its lease"
    ));
    let began = Instant::now();
    let url = format!("{}{path}/pay", other.url);
    let body = json!({ "card": "usual" });
    let (second, _) = http.post_patiently(&url, &body, Duration::ZERO).await?;
    if second.status == StatusCode::OK {
        story.tell(format_args!(
            "replica 2 is asked to pay the same order, and has done so {:.1} s later",
            began.elapsed().as_secs_f64()
        ));
    }
    stopped.thaw()?;
    if second.status != StatusCode::OK {
        first.await?;
        return Ok(None);
    }
    story.tell(format_args!(
        "replica 1 goes on (SIGCONT), long after its lease"
    ));
    let first: Answer = first.await?;
    story.tell(format_args!("the client of replica 1 is told: {first}"));
    if !first.is_refusal(StatusCode::SERVICE_UNAVAILABLE) {
        return Err("that is not what a client must be told whose lease was lost".into());
    }
    until(&http, stopped, |now| now.payments_under_way == 0).await?;
    let now = statistics(&http, stopped).await?;
    let refused = now.late_writes_refused - before.late_writes_refused;
    let Order { payments } = http.get(&format!("{}{path}", other.url)).await?;
    story.tell(format_args!(
        "{refused} late write(s) refused by the fence, the order is paid {payments} time(s)"
    ));
    Ok(Some(Late { refused, payments }))
}

async fn statistics(http: &Http, replica: &Replica) -> Result<Statistics, BoxError> {
    http.get(&format!("{}/statistics", replica.url)).await
}

/// Waits until a replica is so far.
async fn until(
    http: &Http,
    replica: &Replica,
    is_so_far: impl Fn(&Statistics) -> bool,
) -> Result<(), BoxError> {
    let began = Instant::now();
    while !is_so_far(&statistics(http, replica).await?) {
        if began.elapsed() > LIMIT {
            return Err(format!("the replica at {} is stuck", replica.url).into());
        }
        sleep(Duration::from_millis(10)).await;
    }
    Ok(())
}

const ATTEMPTS: usize = 3;
const LIMIT: Duration = Duration::from_secs(10);
