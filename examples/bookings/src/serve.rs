//! A replica from its start to its end.

use std::{io, time::Duration};

use axum::Router;
use redlock_core::Redlock;
use redlock_cron::SingletonScheduler;
use tokio::{
    net::TcpListener,
    signal::unix::{SignalKind, signal},
    time::timeout,
};

/// Serves until this process is asked to end, and then ends in order.
///
/// Requests that wait for a lock are refused, requests that hold one are served, runs of jobs have their grace, and the
/// nodes confirm the last releases.
pub async fn serve(
    listener: TcpListener,
    app: Router,
    redlock: Redlock,
    jobs: SingletonScheduler,
) -> io::Result<()> {
    // Before the first request, so that no signal is lost.
    let mut term = signal(SignalKind::terminate())?;
    let ending = redlock.clone();
    axum::serve(listener, app)
        .with_graceful_shutdown(async move {
            tokio::select! {
                _ = term.recv() => {}
                _ = tokio::signal::ctrl_c() => {}
            }
            tracing::info!("asked to end");
            ending.close().await;
        })
        .await?;
    let report = jobs.shutdown(RUNS_MAY_TAKE).await;
    for run in report.unfinished() {
        tracing::warn!(job = run.job(), tick = %run.tick(), "did not finish");
    }
    if timeout(RELEASES_MAY_TAKE, redlock.close()).await.is_err() {
        tracing::warn!("the last locks end by their time to live");
    }
    Ok(())
}

/// Less than what is left of Kubernetes' half minute after the longest request.
const RUNS_MAY_TAKE: Duration = Duration::from_secs(10);

const RELEASES_MAY_TAKE: Duration = Duration::from_secs(5);
