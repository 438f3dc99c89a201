//! A replica from its start to its end.

use std::{io, pin::pin, time::Duration};

use axum::Router;
use redlock_core::Redlock;
use redlock_cron::SingletonScheduler;
use tokio::{
    join,
    net::TcpListener,
    signal::unix::{SignalKind, signal},
    sync::oneshot,
    time::timeout,
};

use crate::app::REQUEST_MAY_TAKE;

/// Serves until this process is asked to end, and then ends in order.
///
/// Requests that wait for a lock, be it their second, are refused, others that hold one are served, runs of jobs have their grace meanwhile,
/// and the nodes confirm the last releases.
pub async fn serve(
    listener: TcpListener,
    app: Router,
    redlock: Redlock,
    jobs: SingletonScheduler,
) -> io::Result<()> {
    // Before the first request, so that no signal is lost.
    let mut term = signal(SignalKind::terminate())?;
    let (ending, (say, asked)) = (redlock.clone(), oneshot::channel());
    let server = axum::serve(listener, app).with_graceful_shutdown(async move {
        tokio::select! {
            _ = term.recv() => {}
            _ = tokio::signal::ctrl_c() => {}
        }
        tracing::info!("asked to end");
        // Jobs end first: a client that is closed starts no tick.
        let _: Result<(), ()> = say.send(());
        ending.close().await;
    });
    let mut server = pin!(server.into_future());
    tokio::select! {
        biased;
        _ = asked => {}
        failed = &mut server => return failed,
    }
    let (served, report) = join!(
        timeout(REQUESTS_MAY_TAKE, server),
        jobs.shutdown(RUNS_MAY_TAKE)
    );
    match served {
        Ok(served) => served?,
        Err(_) => tracing::warn!("requests that were not answered in time end with this process"),
    }
    for run in report.unfinished() {
        tracing::warn!(job = run.job(), tick = %run.tick(), "did not finish");
    }
    if timeout(RELEASES_MAY_TAKE, redlock.close()).await.is_err() {
        tracing::warn!("the last locks end by their time to live");
    }
    Ok(())
}

/// The longest that a request may take, and a little more: a client that stalls does not keep this process from ending.
///
/// With the releases it is less than Kubernetes' half minute.
const REQUESTS_MAY_TAKE: Duration = REQUEST_MAY_TAKE.saturating_add(Duration::from_secs(5));

const RUNS_MAY_TAKE: Duration = Duration::from_secs(10);

const RELEASES_MAY_TAKE: Duration = Duration::from_secs(5);
