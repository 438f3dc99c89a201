//! A replica from its start to its end.

use std::{io, time::Duration};

use axum::Router;
use redlock_core::Redlock;
use redlock_cron::SingletonScheduler;
use redlock_tower::Shutdown;
use tokio::net::TcpListener;

use crate::app::REQUEST_MAY_TAKE;

/// Serves until this process is asked to end, and then ends in order.
///
/// Requests that wait for a lock are refused, others that hold one are served, runs of jobs have their grace meanwhile, and
/// the nodes confirm the last releases.
pub async fn serve(
    listener: TcpListener,
    app: Router,
    redlock: Redlock,
    jobs: SingletonScheduler,
) -> io::Result<()> {
    let jobs_end = async move {
        for run in jobs.shutdown(RUNS_MAY_TAKE).await.unfinished() {
            tracing::warn!(job = run.job(), tick = %run.tick(), "did not finish");
        }
    };
    Shutdown::on_signal(redlock)?
        .and(jobs_end)
        .limit(REQUESTS_MAY_TAKE)
        .serve(|asked| axum::serve(listener, app).with_graceful_shutdown(asked))
        .await
}

/// The longest that a request may take, and a little more: a client that stalls does not keep this process from ending.
///
/// With the releases it is less than Kubernetes' half minute.
const REQUESTS_MAY_TAKE: Duration = REQUEST_MAY_TAKE.saturating_add(Duration::from_secs(5));

const RUNS_MAY_TAKE: Duration = Duration::from_secs(10);
