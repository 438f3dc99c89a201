//! The registration of jobs on the nodes.

use super::*;
use redlock_cron::JobRegistration;

const HOUR: u64 = 3_600;

impl Fleet {
    async fn registration(&self) -> Option<JobRegistration> {
        self.memory().await.registration().cloned()
    }
}

/// Lets hours pass in steps of a few minutes, in which timers do not fire.
async fn hours(hours: u64) {
    for _ in 0..12 * hours {
        sleep(Duration::from_secs(5)).await;
        tokio::time::advance(Duration::from_secs(295)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_job_that_never_ran_is_known_by_its_schedule_and_is_registered_again_each_day() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let _hosts = fleet.hosts(|| starts.quick_job(IN_JULY)).await;
    pass(5).await;
    let known = fleet.registration().await.unwrap();
    assert_eq!((known.pattern(), known.zone()), (IN_JULY, Some("UTC")));
    let july = "2027-07-01T00:00:00Z".parse().unwrap();
    assert_eq!(known.next_tick(), Some(july));
    assert_eq!(
        known.policies(),
        Some("overlap skip, missed skip, at most once")
    );
    hours(20).await;
    let later = fleet.registration().await.unwrap();
    assert_eq!(later.registered_at(), known.registered_at());
    hours(6).await;
    let again = fleet.registration().await.unwrap();
    assert!(again.registered_at() > known.registered_at() + TimeDelta::hours(23));
    assert!(starts.list().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_job_with_other_settings_is_registered_again() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let host = fleet.host().await;
    host.put(starts.quick_job(IN_JULY)).await;
    pass(3).await;
    host.put(starts.quick_job("0 0 0 1 8 *")).await;
    pass(3).await;
    let known = fleet.registration().await.unwrap();
    assert_eq!(known.pattern(), "0 0 0 1 8 *");
}

#[tokio::test(start_paused = true)]
async fn a_job_that_no_replica_has_registered_for_a_week_is_gone() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let host = fleet.host().await;
    host.put(starts.quick_job(IN_JULY)).await;
    hours(9 * 24).await;
    assert!(!fleet.registration().await.unwrap().is_gone());
    host.remove(0).await;
    hours(6 * 24).await;
    assert!(!fleet.registration().await.unwrap().is_gone());
    hours(2 * 24).await;
    assert!(fleet.registration().await.unwrap().is_gone());
}

#[tokio::test(start_paused = true)]
async fn a_registration_that_fails_or_is_lost_is_made_later() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let host = fleet.host().await;
    fleet.nodes[..2].iter().for_each(MemoryNode::stop);
    host.put(starts.quick_job(IN_JULY)).await;
    pass(20).await;
    fleet.nodes[..2].iter().for_each(MemoryNode::start);
    pass(90).await;
    assert!(fleet.registration().await.is_some());
    fleet.nodes.iter().for_each(MemoryNode::clear);
    pass(200).await;
    assert!(fleet.registration().await.is_none());
    hours(2).await;
    assert!(fleet.registration().await.is_some());
}

#[tokio::test(start_paused = true)]
async fn of_a_schedule_that_is_too_long_for_the_nodes_the_next_tick_is_known() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let host = fleet.host().await;
    let first = chrono::NaiveDate::from_ymd_opt(2027, 1, 16).unwrap();
    let job = starts.quick_job("0 0 9 * * *");
    host.put(job.except(first.iter_days().take(40))).await;
    pass(3).await;
    let known = fleet.registration().await.unwrap();
    assert!(known.schedule().is_none());
    let next = "2027-01-15T09:00:00Z".parse().unwrap();
    assert_eq!(known.next_tick(), Some(next));
    fleet.sleep_until(2 * HOUR * 1_000).await;
    assert_eq!(fleet.registration().await.unwrap().next_tick(), None);
}

/// Their registrations are spread, and none waits for those of all others.
#[tokio::test(start_paused = true)]
async fn many_jobs_are_registered_one_after_another() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let hosts = [fleet.host().await, fleet.host().await];
    for host in &hosts {
        for number in 0..300 {
            let name = format!("job-{number}");
            host.put(starts.named(&name, IN_JULY, |_| async { Ok(()) }))
                .await;
        }
    }
    pass(4).await;
    let client = fleet.client().await;
    for number in 0..300 {
        let name = format!("job-{number}");
        let memory = redlock_cron::inspect(&client, "tests", &name)
            .await
            .unwrap();
        assert!(memory.registration().is_some(), "{name}");
    }
    client.close().await;
}

#[tokio::test(start_paused = true)]
async fn ticks_that_no_replica_claimed_are_known_with_what_was_in_their_way() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let job = || {
        starts.job(EVERY_FIVE_SECONDS, |run: Run| async move {
            if run.tick() == tick(63) {
                sleep(Duration::from_secs(17)).await;
            }
            Ok(())
        })
    };
    let unclaimed = async || {
        let unclaimed = fleet.memory().await.unclaimed().await;
        let told = unclaimed.iter().map(ToString::to_string);
        told.collect::<Vec<_>>()
    };
    let first = fleet.host().await;
    first.put(job()).await;
    fleet.until(10).await;
    assert!(unclaimed().await.is_empty());
    first.remove(0).await;
    fleet.until(29).await;
    let [to_18, to_58] = ["08:00:20Z", "08:01:00Z"].map(|last| format!("2027-01-15T{last}"));
    let from = "ticks from 2027-01-15T08:00:15Z to";
    let why = "not started, no replica claimed it";
    assert_eq!(unclaimed().await, [format!("2 {from} {to_18}: {why}")]);

    let second = fleet.host().await;
    fleet.until(60).await;
    second.put(job()).await;
    fleet.until(76).await;
    let one = "tick 2027-01-15T08:01:10Z: not started, another run went on";
    let before = format!("10 {from} {to_58}: {why}");
    // The tick of second 68 is not among the last ten seconds any more at 79.
    fleet.until(79).await;
    assert_eq!(unclaimed().await, [one, &before]);
    fleet.until(90).await;
    let three = "3 ticks from 2027-01-15T08:01:10Z to 2027-01-15T08:01:20Z: not started, another run went on";
    assert_eq!(unclaimed().await, [three, &before]);
    // Of another schedule, nothing is known before its first run.
    second.put(starts.quick_job("4 * * * * *")).await;
    fleet.until(95).await;
    assert!(unclaimed().await.is_empty());
}
