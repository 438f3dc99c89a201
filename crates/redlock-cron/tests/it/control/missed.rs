//! Ticks that no replica started.

use redlock_core::Series;
use std::{convert::Infallible, time::Duration};

use chrono::{DateTime, Utc};
use redlock_core::{ClaimOptions, MemoryNode, Redlock, Tick, Word};
use redlock_cron::{Missed, Run, SingletonJob};
use tokio::{sync::mpsc::unbounded_channel, time::timeout};

use super::replica;

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
    // A run of a model job shows the number that nodes record for the schedule.
    let yesterday = replica(&nodes, "b").await;
    yesterday.add(job("model")).await.unwrap();
    yesterday.trigger_now("model").await.unwrap();
    told.recv().await.unwrap();
    let model = redlock.job_status("redlock-cron-job:tests/model").await;
    let model = model.unwrap();
    let by_hand = model.record().unwrap().of(Series::new('m'));
    let fingerprint = by_hand.runs[0].fingerprint;
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
