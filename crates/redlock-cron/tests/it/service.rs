//! Jobs whose runs are calls of tower services.

use std::{
    future::Ready,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use redlock_core::Redlock;
use redlock_cron::{
    BoxError, Outcome, Run, SingletonJob, SingletonScheduler, TickReport,
    tokio_cron_scheduler::JobScheduler,
};
use tower::{ServiceBuilder, ServiceExt, retry::Policy, service_fn};

/// A scheduler with this one job, which is due once a year.
async fn scheduler(job: SingletonJob) -> SingletonScheduler {
    let redlock = Redlock::builder().in_memory_nodes(3).build().await.unwrap();
    let scheduler = JobScheduler::new().await.unwrap();
    let jobs = SingletonScheduler::builder(redlock, scheduler)
        .namespace("tests")
        .build()
        .unwrap();
    jobs.add(job).await.unwrap();
    jobs
}

async fn trigger(job: SingletonJob) -> TickReport {
    scheduler(job).await.trigger_now("job").await.unwrap()
}

#[derive(Clone)]
struct ThreeTimes(usize);

impl Policy<Run, (), BoxError> for ThreeTimes {
    type Future = Ready<()>;

    fn retry(&mut self, _: &mut Run, result: &mut Result<(), BoxError>) -> Option<Ready<()>> {
        self.0 -= 1;
        (result.is_err() && self.0 > 0).then(|| std::future::ready(()))
    }

    fn clone_request(&mut self, run: &Run) -> Option<Run> {
        Some(run.clone())
    }
}

#[tokio::test]
async fn a_layer_tries_again_within_one_run() {
    let calls = Arc::new(AtomicUsize::new(0));
    let called = Arc::clone(&calls);
    let service = ServiceBuilder::new()
        .retry(ThreeTimes(3))
        .service(service_fn(move |run: Run| {
            let called = Arc::clone(&called);
            async move {
                assert!(run.lease().is_held());
                match called.fetch_add(1, Ordering::SeqCst) {
                    2 => Ok(()),
                    _ => Err(BoxError::from("not yet")),
                }
            }
        }));
    let job = SingletonJob::cron("job", "0 0 0 1 1 *", chrono_tz::UTC, move |run| {
        service.clone().oneshot(run)
    });
    let report = trigger(job).await;
    assert_eq!(report.outcome(), Outcome::Ok, "{report:?}");
    assert_eq!(calls.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn a_layer_ends_a_run_that_takes_too_long() {
    let service = ServiceBuilder::new()
        .concurrency_limit(1)
        .timeout(Duration::from_millis(50))
        .service(service_fn(|_: Run| {
            std::future::pending::<Result<(), BoxError>>()
        }));
    let job = SingletonJob::every("job", Duration::from_secs(86_400), move |run| {
        service.clone().oneshot(run)
    });
    let jobs = scheduler(job).await;
    for _ in 0..2 {
        let report = jobs.trigger_now("job").await.unwrap();
        assert_eq!(report.outcome(), Outcome::Failed, "{report:?}");
        assert!(report.detail().unwrap().contains("timed out"), "{report:?}");
    }
}
