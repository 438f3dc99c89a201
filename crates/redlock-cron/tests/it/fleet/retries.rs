//! Ticks whose run did not end by itself: what uses up their attempts, what is said when none is left, and replicas that
//! deal with a tick which they have neither started nor asked for.

use redlock_core::ClaimOptions;

use super::{
    attempts::{job, job_at},
    *,
};
use redlock_cron::{Delivery, Missed};

/// Returns how often a tick was given up, in all reports of these replicas.
fn given_up<'a>(members: impl IntoIterator<Item = &'a mut Member>) -> usize {
    let members = members.into_iter();
    members.map(|m| m.ticks(Outcome::GivenUp).len()).sum()
}

#[tokio::test(start_paused = true)]
async fn a_run_that_a_shutdown_ends_uses_up_no_attempt() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let mut running = fleet.member(0, job(&starts, 4, 2)).await;
    running.wake_at(3_000).await;
    for second in [10, 20, 30, 40] {
        fleet.sleep_until(second * 1_000).await;
        let report = running.shut_down(Duration::from_secs(1)).await;
        assert!(!report.is_clean(), "{second}");
        running = fleet.member(0, job(&starts, 4, 2)).await;
        running.begin().await;
    }
    fleet.until(60).await;
    assert_eq!(starts.list(), [3, 3, 3, 3, 3].map(tick));
    let report = running.report().await;
    assert_eq!((report.attempt(), report.outcome()), (5, Outcome::Ok));
    let status = running.status().await;
    assert_eq!(status.last_run().unwrap().attempt(), 5);
}

#[tokio::test(start_paused = true)]
async fn a_tick_whose_run_the_nodes_have_forgotten_is_reported_as_that_and_gets_no_attempt() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let mut members = [
        fleet.member(0, job_at("5 0 * * * *", &starts, 9, 2)).await,
        fleet.member(0, job_at("5 0 * * * *", &starts, 9, 2)).await,
        fleet.member(0, job_at("5 0 * * * *", &starts, 9, 2)).await,
    ];
    for (member, late) in members.iter().zip([0, 200, 300]) {
        member.wake_at(3_000 + late).await;
    }
    fleet.until(5).await;
    fleet.nodes.iter().for_each(MemoryNode::clear);
    fleet.until(200).await;
    assert_eq!(starts.list(), [tick(3)]);
    let mut reports = members.iter_mut().map(|member| {
        let reports = member.reports().into_iter();
        let reports = reports.map(|report| (report.tick(), report.outcome()));
        reports.collect::<Vec<_>>()
    });
    assert_eq!(reports.next(), Some(vec![(tick(3), Outcome::Lost)]));
    let forgotten = vec![(tick(3), Outcome::Forgotten)];
    assert!(reports.all(|reports| reports == forgotten));
}

#[tokio::test(start_paused = true)]
async fn a_tick_that_has_had_all_its_attempts_is_given_up_by_one_replica_and_for_good() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let mut members = Vec::new();
    for late in [0, 200, 300] {
        let member = fleet.member(0, job(&starts, 9, 2)).await;
        member.wake_at(3_000 + late).await;
        members.push(member);
    }
    for second in [5, 15, 25] {
        fleet.sleep_until(second * 1_000).await;
        fleet.nodes.iter().for_each(MemoryNode::drop_locks);
    }
    fleet.until(50).await;
    assert_eq!(starts.list(), [3, 3].map(tick));
    assert_eq!(given_up(&mut members), 1);
    let status = members[0].status().await;
    assert_eq!(status.last_run().unwrap().outcome(), Some("given_up"));
    let mut later = fleet.member(0, job(&starts, 9, 2)).await;
    later.begin().await;
    fleet.until(60).await;
    assert_eq!(given_up([&mut later]), 0, "it was said");
}

#[tokio::test(start_paused = true)]
async fn a_tick_whose_last_run_was_cut_short_too_long_ago_is_given_up() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let job = || {
        let job = job(&starts, 1, 3).missed(Missed::All { max: 9 });
        // It may be started again for a hundred seconds.
        job.catch_up_window(Duration::from_secs(60))
            .max_runtime(Duration::from_secs(10))
    };
    let first = fleet.member(0, job()).await;
    first.begin().await;
    first.wake_at(3_000).await;
    fleet.until(5).await;
    first.crash().await;
    fleet.until(110).await;
    let mut again = fleet.member(0, job()).await;
    again.begin().await;
    fleet.until(130).await;
    assert_eq!(given_up([&mut again]), 1);
    assert_eq!(starts.list().first(), Some(&tick(3)));
}

#[tokio::test(start_paused = true)]
async fn a_tick_that_kills_its_process_is_started_again_later_each_time() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let begun = Arc::new(Mutex::new(Vec::new()));
    let (told, origin) = (Arc::clone(&begun), fleet.origin);
    let work = move |_: Run| {
        told.lock().unwrap().push(origin.elapsed().as_secs());
        std::future::pending()
    };
    let job = || {
        let job = starts.job("5 0 * * * *", work.clone());
        job.delivery(Delivery::AtLeastOnce { max_attempts: 9 })
    };
    let mut running = fleet.member(0, job()).await;
    running.wake_at(3_000).await;
    for run in 1..=4 {
        while begun.lock().unwrap().len() < run {
            sleep(Duration::from_millis(100)).await;
        }
        let next = fleet.member(0, job()).await;
        next.begin().await;
        running.crash().await;
        running = next;
    }
    fleet.until(400).await;
    let begun = begun.lock().unwrap().clone();
    let pauses: Vec<_> = begun.windows(2).map(|two| two[1] - two[0]).collect();
    // A lease ends first, of ten seconds.
    let least = [10, 20, 40, 80];
    assert_eq!(pauses.len(), least.len(), "{begun:?}");
    for (pause, least) in pauses.iter().zip(least) {
        assert!((least..least + 35).contains(pause), "{begun:?}");
    }
}

/// The only other replica was not ready when the tick was due, or could not reach the nodes.
#[tokio::test(start_paused = true)]
async fn a_run_whose_replica_crashed_is_started_again_by_one_that_had_not_asked_for_the_tick() {
    for is_cut_off in [false, true] {
        let (fleet, starts) = (Fleet::new(), Starts::default());
        let first = fleet.member(0, job(&starts, 1, 3)).await;
        let is_ready = Arc::new(AtomicBool::new(is_cut_off));
        let other = job(&starts, 1, 3)
            .start_within(Duration::from_secs(5))
            .only_if({
                let is_ready = Arc::clone(&is_ready);
                move |_| is_ready.load(Ordering::SeqCst)
            });
        let mut other = fleet.member(0, other).await;
        first.wake_at(3_000).await;
        fleet.sleep_until(3_200).await;
        if is_cut_off {
            other.nodes.iter().for_each(MemoryNode::stop);
        }
        other.wake_at(3_200).await;
        let report = other.report().await;
        let expected = match is_cut_off {
            true => Outcome::NoQuorum,
            false => Outcome::Declined,
        };
        assert_eq!(report.outcome(), expected);
        other.nodes.iter().for_each(MemoryNode::start);
        is_ready.store(true, Ordering::SeqCst);
        first.crash().await;
        fleet.until(55).await;
        assert_eq!(starts.list(), [3, 3].map(tick), "{expected}");
        let report = other.report().await;
        assert_eq!((report.outcome(), report.attempt()), (Outcome::Ok, 2));
    }
}

/// Returns the outcomes that were reported of the tick at second 3 by a replica that comes up 200 seconds after two nodes have
/// lost their data, in the run of the tick.
async fn told_after_a_loss(job: impl Fn(&Starts) -> SingletonJob) -> Vec<Outcome> {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let first = fleet.member(0, job(&starts)).await;
    // Its client lets the nodes vote again.
    let _idle = fleet.member(0, job(&starts)).await;
    first.wake_at(3_000).await;
    fleet.until(5).await;
    first.crash().await;
    fleet.nodes[1..].iter().for_each(MemoryNode::clear);
    fleet.until(200).await;
    let mut later = fleet.member(0, job(&starts)).await;
    later.begin().await;
    later.wake_at(243_000).await;
    fleet.until(250).await;
    assert_eq!(starts.list(), [3, 243].map(tick));
    let reports = later.reports().into_iter();
    let of_tick = reports.filter(|report| report.tick() == tick(3));
    of_tick.map(|report| report.outcome()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_replica_that_comes_up_tells_of_a_run_cut_short_that_the_nodes_have_forgotten() {
    let told = told_after_a_loss(|starts| job(starts, 1, 3)).await;
    assert!(told.contains(&Outcome::Forgotten), "{told:?}");
}

/// Each replica would say that it has given the tick up, since none can claim that.
#[tokio::test(start_paused = true)]
async fn a_tick_that_is_too_old_for_another_run_is_not_given_up_by_nodes_that_have_forgotten_it() {
    let brief = |starts: &Starts| job(starts, 1, 3).max_runtime(Duration::from_secs(5));
    let told = told_after_a_loss(brief).await;
    assert!(told.contains(&Outcome::Forgotten), "{told:?}");
    assert!(!told.contains(&Outcome::GivenUp), "{told:?}");
}

impl Fleet {
    /// Claims the tick on the first node only, like a client that dies before the other nodes have heard of the claim.
    async fn claim_on_one_node(&self, due: DateTime<Utc>) {
        let dies = Redlock::builder()
            .nodes([self.nodes[0].clone()])
            .virtual_time()
            .build();
        let dies = dies.await.unwrap();
        let (key, options) = (
            redlock_cron::remembered_under("tests", "job").unwrap(),
            ClaimOptions::new("dies"),
        );
        let claimed = dies
            .claim(
                key,
                Tick::from_millis(u64::try_from(due.timestamp_millis()).unwrap()).unwrap(),
                options,
            )
            .await;
        drop(claimed.unwrap());
        dies.close().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_tick_that_nobody_has_any_more_is_started_once() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let (node, asked) = (fleet.nodes[0].clone(), AtomicUsize::new(0));
    let one = job(&starts, 0, 3).only_if(move |_| {
        // Between the look at the first run and the claim of the second.
        if asked.fetch_add(1, Ordering::SeqCst) == 1 {
            node.stop();
        }
        true
    });
    let mut one = fleet.member(0, one).await;
    let mut two = fleet.member(0, job(&starts, 0, 3)).await;
    fleet.until(3).await;
    fleet.claim_on_one_node(tick(3)).await;
    one.wake_at(3_500).await;
    two.wake_at(10_000).await;
    fleet.until(50).await;
    assert_eq!(starts.list(), [tick(3)]);
    let report = one.report().await;
    // No replica can claim its first run any more, of which the node had heard.
    assert_eq!((report.outcome(), report.attempt()), (Outcome::Ok, 2));
    assert_eq!(two.outcome().await, Outcome::NotWinner);
}

#[tokio::test(start_paused = true)]
async fn a_tick_is_not_started_a_first_time_after_a_second() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let mut one = fleet.member(0, job(&starts, 0, 3)).await;
    let mut two = fleet.member(0, job(&starts, 0, 3)).await;
    fleet.until(3).await;
    fleet.claim_on_one_node(tick(3)).await;
    one.wake_at(3_500).await;
    fleet.until(8).await;
    let report = one.report().await;
    assert_eq!((report.outcome(), report.attempt()), (Outcome::Ok, 2));
    // Of the two others, none remembers that the tick was claimed.
    fleet.nodes[0].stop();
    two.wake_at(10_000).await;
    fleet.until(50).await;
    assert_eq!(starts.list(), [tick(3)]);
    assert_eq!(two.outcome().await, Outcome::NotWinner);
}

/// The only replica that asks hears of a claim that was never confirmed, and later no longer hears of it.
#[tokio::test(start_paused = true)]
async fn a_tick_that_was_taken_for_claimed_is_asked_for_again_when_it_is_nobodys() {
    for missed in [Missed::Skip, Missed::Latest, Missed::All { max: 9 }] {
        let (fleet, starts) = (Fleet::new(), Starts::default());
        let mut one = fleet.member(0, job(&starts, 0, 3).missed(missed)).await;
        one.begin().await;
        fleet.until(3).await;
        fleet.claim_on_one_node(tick(3)).await;
        one.wake_at(3_500).await;
        fleet.until(4).await;
        fleet.nodes[0].stop();
        fleet.until(50).await;
        assert_eq!(starts.list(), [tick(3)], "{missed:?}");
        let report = one.report().await;
        let told = (report.outcome(), report.attempt());
        assert_eq!(told, (Outcome::Ok, 1), "{missed:?}");
        assert!(one.reports.try_recv().is_err());
    }
}
