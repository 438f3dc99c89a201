//! A scheduler's jobs, as a person sees and handles them.

mod forget;
mod look;
mod nodes;

use std::{convert::Infallible, time::Duration};

use redlock_core::{MemoryNode, Redlock};
use redlock_cron::{
    Action, ControlErrorKind, Outcome, Run, SetupErrorKind, SingletonJob, SingletonScheduler,
    actions, log_action, pause_with, resume, stop, tokio_cron_scheduler::JobScheduler,
};
use tokio::{sync::mpsc::unbounded_channel, time::timeout};

async fn replica(nodes: &[MemoryNode], name: &str) -> SingletonScheduler {
    let redlock = Redlock::builder().nodes(nodes.iter().cloned());
    let redlock = redlock.build().await.unwrap();
    let scheduler = JobScheduler::new().await.unwrap();
    SingletonScheduler::builder(redlock, scheduler)
        .namespace("tests")
        .replica(name)
        .build()
        .unwrap()
}

fn yearly<F>(work: impl Fn(Run) -> F + Send + Sync + 'static) -> SingletonJob
where
    F: Future<Output = Result<(), Infallible>> + Send + 'static,
{
    SingletonJob::cron("job", "0 0 0 1 1 *", chrono_tz::UTC, work)
}

#[tokio::test]
async fn a_job_is_paused_resumed_triggered_and_looked_at_by_its_name() {
    let nodes: Vec<_> = (0..3).map(|_| MemoryNode::new()).collect();
    let (first, second) = (replica(&nodes, "a").await, replica(&nodes, "b").await);
    for jobs in [&first, &second] {
        jobs.add(yearly(|_| async { Ok(()) })).await.unwrap();
    }
    first.pause("job").await.unwrap();
    let status = second.status("job").await.unwrap();
    assert_eq!(status.is_paused(), Some(true));
    let report = second.trigger_now("job").await.unwrap();
    assert_eq!(report.outcome(), Outcome::Ok, "{report:?}");
    second.resume("job").await.unwrap();
    let status = first.status("job").await.unwrap();
    assert_eq!(status.is_paused(), Some(false));
    let last = status.last_run().unwrap();
    assert_eq!((last.replica(), last.outcome()), ("b", Some("ok")));
    for error in [
        first.pause("other").await.err(),
        first.resume("other").await.err(),
        first.trigger_now("other").await.err(),
        first.status("other").await.err(),
    ] {
        let error = error.unwrap();
        assert_eq!(error.kind(), ControlErrorKind::UnknownJob);
        assert_eq!(error.job(), "other");
    }
}

#[tokio::test]
async fn a_job_is_paused_and_resumed_from_outside_of_its_service() {
    let nodes: Vec<_> = (0..3).map(|_| MemoryNode::new()).collect();
    let jobs = replica(&nodes, "a").await;
    jobs.add(yearly(|_| async { Ok(()) })).await.unwrap();
    let outside = Redlock::builder().nodes(nodes.iter().cloned());
    let outside = outside.build().await.unwrap();
    let paused = async || jobs.status("job").await.unwrap().is_paused();
    assert_eq!(paused().await, Some(false));
    for is_paused in [true, false, true] {
        if is_paused {
            redlock_cron::pause(&outside, "tests", "job").await
        } else {
            redlock_cron::resume(&outside, "tests", "job").await
        }
        .unwrap();
        assert_eq!(paused().await, Some(is_paused));
    }
    jobs.resume("job").await.unwrap();
    assert_eq!(paused().await, Some(false));

    let error = redlock_cron::pause(&outside, "a/b", "job")
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ControlErrorKind::InvalidName, "{error}");
    nodes[..2].iter().for_each(MemoryNode::stop);
    let error = redlock_cron::pause(&outside, "tests", "job")
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ControlErrorKind::Unconfirmed, "{error}");
}

#[tokio::test]
async fn a_job_of_another_configuration_is_refused_where_that_was_asked_for() {
    const DAY: Duration = Duration::from_secs(86_400);
    let nodes: Vec<_> = (0..3).map(|_| MemoryNode::new()).collect();
    let jobs = async |name: &str, within: Option<Duration>| {
        let redlock = Redlock::builder().nodes(nodes.iter().cloned());
        let redlock = redlock.build().await.unwrap();
        let scheduler = JobScheduler::new().await.unwrap();
        let builder = SingletonScheduler::builder(redlock, scheduler).replica(name);
        let builder = builder.namespace("shared");
        match within {
            Some(within) => builder.refuse_disagreement(within),
            None => builder,
        }
        .build()
        .unwrap()
    };
    let job = |every: u64| {
        let every = Duration::from_secs(every);
        SingletonJob::every("cleanup", every, |_| async { Ok::<_, Infallible>(()) })
    };
    let first = jobs("billing-1", Some(DAY)).await;
    let (tell, mut told) = unbounded_channel();
    let tells = SingletonJob::every("cleanup", Duration::from_secs(1), move |_| {
        tell.send(()).unwrap();
        async { Ok::<_, Infallible>(()) }
    });
    first.add(tells).await.unwrap();
    first.start().await.unwrap();
    timeout(Duration::from_secs(30), told.recv())
        .await
        .unwrap()
        .unwrap();
    jobs("billing-2", Some(DAY))
        .await
        .add(job(1))
        .await
        .unwrap();
    let error = jobs("stock-1", Some(DAY))
        .await
        .add(job(60))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), SetupErrorKind::Disagreement, "{error}");
    assert_eq!((error.field(), error.job()), ("namespace", Some("cleanup")));
    assert!(
        error.to_string().contains("billing-1 ran the tick of "),
        "{error}"
    );
    jobs("stock-1", None).await.add(job(60)).await.unwrap();
    // No other replica has run it lately.
    assert!(first.shutdown(Duration::from_secs(10)).await.is_clean());
    tokio::time::sleep(Duration::from_millis(2_100)).await;
    let lately = Some(Duration::from_secs(1));
    jobs("stock-1", lately).await.add(job(60)).await.unwrap();
    let unsure = jobs("stock-1", Some(DAY)).await;
    nodes[..2].iter().for_each(MemoryNode::stop);
    // Too few nodes answer to tell of a disagreement.
    unsure.add(job(60)).await.unwrap();
}

#[tokio::test]
async fn a_run_that_was_asked_for_goes_on_if_nobody_waits_for_it() {
    let nodes: Vec<_> = (0..3).map(|_| MemoryNode::new()).collect();
    let jobs = replica(&nodes, "a").await;
    let (tell, mut told) = unbounded_channel();
    let job = yearly(move |_| {
        let tell = tell.clone();
        async move {
            tell.send("started").unwrap();
            tokio::time::sleep(Duration::from_millis(200)).await;
            tell.send("ended").unwrap();
            Ok(())
        }
    });
    jobs.add(job).await.unwrap();
    tokio::select! {
        _ = jobs.trigger_now("job") => panic!("it takes longer than that"),
        word = told.recv() => assert_eq!(word, Some("started")),
    }
    assert_eq!(told.recv().await, Some("ended"));
    assert!(jobs.shutdown(Duration::from_secs(10)).await.is_clean());
}

#[tokio::test]
async fn what_operators_did_is_in_one_log_with_names_and_reasons() {
    let nodes: Vec<_> = (0..3).map(|_| MemoryNode::new()).collect();
    let redlock = Redlock::builder().nodes(nodes.iter().cloned());
    let redlock = redlock.build().await.unwrap();
    assert_eq!(actions(&redlock).await.unwrap(), []);
    let alice = Action::by("alice").reason("the ledger: it moves");
    pause_with(&redlock, "billing", "close-day", &alice)
        .await
        .unwrap();
    resume(&redlock, "billing", "close-day").await.unwrap();
    stop(&redlock, "billing", "close-day", &Action::by("bob"))
        .await
        .unwrap();
    let long = "ä".repeat(150);
    log_action(&redlock, "release", &long, &alice)
        .await
        .unwrap();
    log_action(&redlock, "release", "a\u{85}b", &alice)
        .await
        .unwrap();
    let logged = actions(&redlock).await.unwrap();
    let told: Vec<_> = logged
        .iter()
        .map(|it| (it.verb(), it.subject(), it.by(), it.reason()))
        .collect();
    let job = "billing/close-day";
    let reason = Some("the ledger: it moves");
    assert_eq!(
        told,
        [
            ("release", "a b", Some("alice"), reason),
            ("release", &*"ä".repeat(100), None, None),
            ("stop", job, Some("bob"), None),
            ("resume", job, None, None),
            ("pause", job, Some("alice"), reason),
        ]
    );
    assert!(logged.is_sorted_by(|newer, older| newer.at() > older.at()));
    // A job's own line says it too.
    let paused = logged[4].to_string();
    assert!(paused.ends_with("pause billing/close-day by alice: the ledger: it moves"));
    nodes[..2].iter().for_each(MemoryNode::stop);
    assert_eq!(actions(&redlock).await, None);
    let refused = log_action(&redlock, "release", "a", &alice).await;
    let refused = refused.unwrap_err();
    assert_eq!(refused.kind(), ControlErrorKind::Unconfirmed, "{refused}");
}
