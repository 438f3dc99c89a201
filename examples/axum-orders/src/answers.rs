//! What a client is answered that cannot have the lock.

use std::time::Duration;

use http::StatusCode;
use tokio::time::sleep;

use stage::{BoxError, Nodes, Story};

use crate::{
    books::Catalogue,
    client::{Answer, Http},
    load::{Ids, catalogue},
};

/// A second import of a tenant is refused at once while the first one runs.
pub(crate) async fn conflict(replicas: &[String], story: Story) -> Result<(), BoxError> {
    let http = Http::new();
    let ids = Ids::new();
    for attempt in 0..ATTEMPTS {
        let tenant = ids.nth(attempt);
        let first = import(&http, &replicas[0], tenant, LONG);
        let second = async {
            let url = format!("{}/tenants/{tenant}/catalogue", replicas[1]);
            while http.get::<Catalogue>(&url).await?.articles == 0 {
                sleep(Duration::from_millis(10)).await;
            }
            import(&http, &replicas[1], tenant, 1).await
        };
        let (first, second) = tokio::try_join!(first, second)?;
        if first.status != StatusCode::CREATED {
            return Err(format!("the first import was answered {first}").into());
        }
        if second.is_refusal(StatusCode::CONFLICT) {
            story.tell(format_args!(
                "POST /tenants/{tenant}/imports, while another import runs: {second}"
            ));
            return Ok(());
        }
        if second.status != StatusCode::CREATED {
            return Err(format!("the second import was answered {second}").into());
        }
    }
    Err("the first import was always done before the second one came".into())
}

/// Without a majority of the nodes nothing is let through; it says with what status.
pub(crate) async fn unavailable(
    nodes: &Nodes,
    replicas: &[String],
    story: Story,
) -> Result<&'static str, BoxError> {
    let http = Http::new();
    let tenant = Ids::new().nth(0);
    if !nodes.freeze_majority()? {
        story.tell(format_args!(
            "the nodes are not ours to stop, so there is no 503 to see"
        ));
        return Ok("no 503");
    }
    // Other routes try for as long as they may wait.
    let refused = import(&http, &replicas[2], tenant, 1).await?;
    nodes.thaw_majority()?;
    story.tell(format_args!(
        "POST /tenants/{tenant}/imports, while 3 of 5 nodes do not answer: {refused}"
    ));
    if !refused.is_refusal(StatusCode::SERVICE_UNAVAILABLE) {
        return Err("that is no 503 that tells when to come back".into());
    }
    let url = imports(&replicas[2], tenant);
    let (answer, _) = http
        .post_patiently(&url, &catalogue(1), Duration::ZERO)
        .await?;
    if answer.status != StatusCode::CREATED {
        return Err(format!("with all nodes back, it was answered {answer}").into());
    }
    story.tell(format_args!("the nodes answer again: {answer}"));
    Ok("503")
}

async fn import(
    http: &Http,
    replica: &str,
    tenant: i64,
    articles: usize,
) -> Result<Answer, BoxError> {
    let url = imports(replica, tenant);
    http.post(&url, &catalogue(articles)).await
}

fn imports(replica: &str, tenant: i64) -> String {
    format!("{replica}/tenants/{tenant}/imports")
}

/// Enough articles for another request to come while they are imported.
const LONG: usize = 400;
const ATTEMPTS: usize = 3;
