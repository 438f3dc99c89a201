//! A scheduler's jobs, as a person sees and handles them.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use chrono::{DateTime, Utc};
use futures_util::{FutureExt, future::BoxFuture};
use redlock_core::{
    ClaimOptions, MemoryNode, NodeConfig, Redlock, ResourceKey, Tick, Word,
    node::{CallResult, Keyspace, Node, Request, Session},
};
use redlock_cron::{
    ControlErrorKind, Missed, Outcome, Run, SetupErrorKind, SingletonJob, SingletonScheduler,
    tokio_cron_scheduler::JobScheduler,
};
use tokio::{
    sync::mpsc::unbounded_channel,
    time::{Instant, timeout},
};

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

/// A node that answers all, nothing, the first request of each call only, or all but the last.
#[derive(Clone, Debug, Default)]
struct OddNode {
    node: MemoryNode,
    is_deaf: Arc<AtomicBool>,
    is_brief: Arc<AtomicBool>,
    is_short: Arc<AtomicBool>,
}

struct OddSession {
    inner: Box<dyn Session>,
    node: OddNode,
}

impl Node for OddNode {
    fn name(&self) -> Arc<str> {
        self.node.name()
    }

    fn connect(&self) -> BoxFuture<'static, Result<Box<dyn Session>, Arc<str>>> {
        let (node, inner) = (self.clone(), self.node.connect());
        async {
            let inner = inner.await?;
            Ok(Box::new(OddSession { inner, node }) as Box<dyn Session>)
        }
        .boxed()
    }
}

impl Session for OddSession {
    fn call(
        &mut self,
        keyspace: &Arc<Keyspace>,
        requests: &[Request],
    ) -> BoxFuture<'static, CallResult> {
        let answer = self.inner.call(keyspace, requests);
        let is_brief = self.node.is_brief.load(Ordering::SeqCst);
        let is_short = self.node.is_short.load(Ordering::SeqCst);
        let is_deaf = self.node.is_deaf.load(Ordering::SeqCst);
        async move {
            if is_deaf {
                std::future::pending::<()>().await;
            }
            let mut answer = answer.await?;
            if is_brief {
                for reply in answer.replies.iter_mut().skip(1) {
                    *reply = Err("OOM its memory is full".into());
                }
            }
            if is_short && let [_, .., last] = &mut *answer.replies {
                *last = Err("OOM its memory is full".into());
            }
            Ok(answer)
        }
        .boxed()
    }
}

#[tokio::test(start_paused = true)]
async fn a_look_at_a_job_costs_one_time_limit_and_is_whole_or_says_so() {
    let nodes: Vec<_> = (0..3).map(|_| OddNode::default()).collect();
    let configs = nodes.iter().cloned().map(NodeConfig::other);
    let redlock = Redlock::builder().nodes(configs).virtual_time();
    let redlock = redlock.build().await.unwrap();
    let inspect = || redlock_cron::inspect(&redlock, "tests", "job");
    assert!(inspect().await.unwrap().is_known());

    nodes
        .iter()
        .for_each(|node| node.is_brief.store(true, Ordering::SeqCst));
    let memory = inspect().await.unwrap();
    assert!(!memory.is_known(), "{memory:?}");
    nodes
        .iter()
        .for_each(|node| node.is_brief.store(false, Ordering::SeqCst));

    nodes
        .iter()
        .for_each(|node| node.is_deaf.store(true, Ordering::SeqCst));
    let start = Instant::now();
    let key = ResourceKey::new("job", "other").unwrap();
    assert!(redlock.job_status(key).await.unwrap().state().is_none());
    let one = start.elapsed();
    let start = Instant::now();
    assert!(!inspect().await.unwrap().is_known());
    assert!(
        start.elapsed() <= 2 * one,
        "{:?} for {one:?}",
        start.elapsed()
    );
}

/// The last request of a look is that for the job's pauses.
#[tokio::test]
async fn what_is_known_of_a_job_is_told_though_a_part_is_missing() {
    let nodes: Vec<_> = (0..3).map(|_| OddNode::default()).collect();
    let configs = nodes.iter().cloned().map(NodeConfig::other);
    let redlock = Redlock::builder().nodes(configs).build().await.unwrap();
    let scheduler = JobScheduler::new().await.unwrap();
    let builder = SingletonScheduler::builder(redlock.clone(), scheduler);
    let jobs = builder.namespace("tests").build().unwrap();
    jobs.add(yearly(|_| async { Ok(()) })).await.unwrap();
    let report = jobs.trigger_now("job").await.unwrap();
    assert_eq!(report.outcome(), Outcome::Ok, "{report:?}");
    for node in &nodes {
        node.is_short.store(true, Ordering::SeqCst);
    }
    let status = jobs.status("job").await.unwrap();
    assert!(!status.is_known() && status.is_paused().is_none());
    let said = status.to_string();
    for words in ["idle, and a part is missing\n", ": ok after", "OOM"] {
        assert!(said.contains(words), "{words:?} is not in {said}");
    }
    let memory = redlock_cron::inspect(&redlock, "tests", "job")
        .await
        .unwrap();
    assert!(!memory.is_known() && memory.is_paused().is_none());
    assert_eq!(memory.runs()[0].outcome(), Some("ok"));
    let refused = memory.nodes().iter();
    assert!(
        refused.clone().all(|node| node.to_string().contains("OOM")),
        "{memory:?}"
    );
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
    // Nobody else has run it lately.
    assert!(first.shutdown(Duration::from_secs(10)).await.is_clean());
    tokio::time::sleep(Duration::from_millis(2_100)).await;
    let lately = Some(Duration::from_secs(1));
    jobs("stock-1", lately).await.add(job(60)).await.unwrap();
    let unsure = jobs("stock-1", Some(DAY)).await;
    nodes[..2].iter().for_each(MemoryNode::stop);
    // Nobody can tell.
    unsure.add(job(60)).await.unwrap();
}

#[tokio::test]
async fn a_status_is_a_page_that_says_how_things_stand() {
    let nodes: Vec<_> = (0..3).map(|_| MemoryNode::new()).collect();
    let jobs = replica(&nodes, "pod-7").await;
    let (go_on, waits) = tokio::sync::watch::channel(false);
    let job = yearly(move |_| {
        let mut waits = waits.clone();
        async move {
            waits
                .wait_for(|end| *end)
                .await
                .map(drop)
                .map_err(|_| unreachable!())
        }
    });
    jobs.add(job).await.unwrap();
    assert_eq!(jobs.jobs().await, ["job"]);
    let page = async || jobs.status("job").await.unwrap().to_string();
    let idle = page().await;
    for line in [
        "idle\n",
        "next tick",
        "none is remembered",
        "this clock",
        ": reachable\n",
    ] {
        assert!(idle.contains(line), "{idle}");
    }
    let run = jobs.trigger_now("job");
    let seen = async {
        let mut seen = page().await;
        while !seen.starts_with("running on pod-7, its lease ends in ") {
            tokio::time::sleep(Duration::from_millis(10)).await;
            seen = page().await;
        }
        go_on.send_replace(true);
        seen
    };
    let limit = Duration::from_secs(20);
    let (run, running) = timeout(limit, async { tokio::join!(run, seen) })
        .await
        .unwrap();
    assert_eq!(run.unwrap().outcome(), Outcome::Ok);
    assert!(
        running.contains("on pod-7, by hand: no end is known"),
        "{running}"
    );
    jobs.pause("job").await.unwrap();
    let paused = page().await;
    assert!(paused.starts_with("paused"), "{paused}");
    assert!(paused.contains("last success  2"), "{paused}");
    nodes[..2].iter().for_each(MemoryNode::stop);
    let unknown = page().await;
    assert!(
        unknown.starts_with("unknown: too few nodes answered\n"),
        "{unknown}"
    );
    assert_eq!(unknown.matches("\n  node ").count(), 3, "{unknown}");
}

/// A day's tick was missed: the one before it was claimed, and nothing since.
#[tokio::test]
async fn a_scheduler_makes_up_for_missed_ticks_of_jobs_added_before_its_start_and_after() {
    const DAY: Duration = Duration::from_secs(86_400);
    let nodes: Vec<_> = (0..3).map(|_| MemoryNode::new()).collect();
    let redlock = Redlock::builder().nodes(nodes.iter().cloned());
    let redlock = redlock.build().await.unwrap();
    let days = Utc::now().timestamp() / 86_400;
    let midnight = |day: i64| DateTime::from_timestamp(day * 86_400, 0).unwrap();
    let (tell, mut told) = unbounded_channel();
    let job = |name: &str| {
        let tell = tell.clone();
        let job = SingletonJob::every(name, DAY, move |run: Run| {
            tell.send((run.name().to_owned(), run.tick())).unwrap();
            async { Ok::<_, Infallible>(()) }
        });
        job.missed(Missed::Latest).catch_up_window(2 * DAY)
    };
    // What the job's schedule is remembered as.
    let yesterday = replica(&nodes, "b").await;
    yesterday.add(job("model")).await.unwrap();
    yesterday.trigger_now("model").await.unwrap();
    told.recv().await.unwrap();
    let model = redlock.job_status("redlock-cron-manual:tests/model").await;
    let fingerprint = model.unwrap().state().unwrap().runs[0].fingerprint;
    let jobs = replica(&nodes, "a").await;
    for name in ["before", "after"] {
        let key = format!("redlock-cron-job:tests/{name}");
        let millis = midnight(days - 1).timestamp_millis().unsigned_abs();
        let options = ClaimOptions::new("b").start_within(3 * DAY);
        let options = options.fingerprint(fingerprint);
        let claim = redlock.claim(key, Tick::from_millis(millis).unwrap(), options);
        let claim = claim.await.unwrap().won().unwrap();
        claim
            .finish(Word::new("ok").unwrap(), Duration::ZERO)
            .await
            .unwrap();
        if name == "after" {
            jobs.start().await.unwrap();
        }
        jobs.add(job(name)).await.unwrap();
    }
    let mut ran = Vec::new();
    while ran.len() < 2 {
        let start = timeout(Duration::from_secs(30), told.recv());
        ran.push(start.await.expect("nothing was made up for").unwrap());
    }
    ran.sort_unstable();
    let names: Vec<_> = ran.iter().map(|(name, _)| &**name).collect();
    assert_eq!(names, ["after", "before"]);
    // Midnight may have passed meanwhile.
    assert!(
        ran.iter().all(|(_, tick)| *tick >= midnight(days)),
        "{ran:?}"
    );
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
