use super::*;

/// With a lock on the job's name alone, this makes a run on each replica.
#[tokio::test(start_paused = true)]
async fn a_quick_job_runs_once_a_tick_over_skewed_clocks() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let mut members = Vec::new();
    for skew in [0, 700, -1_300] {
        let job = starts.quick_job(EVERY_FIVE_SECONDS);
        members.push(fleet.member(skew, job).await);
        members.last().unwrap().begin().await;
    }
    fleet.until(55).await;
    let every: Vec<_> = (0..11).map(|index| tick(3 + 5 * index)).collect();
    assert_eq!(starts.list(), every);
    let seen: Vec<_> = members.iter_mut().flat_map(Member::seen).collect();
    for (outcome, count) in [(Outcome::Ok, 11), (Outcome::NotWinner, 22)] {
        let such = seen.iter().filter(|(_, of)| *of == outcome);
        assert_eq!(such.count(), count, "{seen:?}");
    }
}

/// A replica that is an hour ahead would use up the ticks of an hour, if its own clock judged.
#[tokio::test(start_paused = true)]
async fn replicas_whose_clocks_are_an_hour_off_start_each_tick_once_and_on_time() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let mut members = Vec::new();
    for skew in [3_600_000, -3_600_000, 0] {
        let member = fleet.member(skew, starts.quick_job(MINUTE)).await;
        members.push(member);
    }
    for minute in 0..3 {
        let due = 3_000 + 60_000 * minute;
        let mut outcomes = Vec::new();
        for (member, late) in members.iter_mut().zip([0, 100, 200]) {
            let own = member.skew + due + late;
            member.wake_at(own).await;
            outcomes.push(member.outcome().await);
        }
        outcomes.sort_by_key(|outcome| *outcome != Outcome::Ok);
        let one = [Outcome::Ok, Outcome::NotWinner, Outcome::NotWinner];
        assert_eq!(outcomes, one);
    }
    let expected: Vec<_> = (0..3).map(|minute| tick(3 + 60 * minute)).collect();
    assert_eq!(starts.list(), expected);
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_is_a_little_ahead_waits_for_the_nodes_clocks() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let mut fast = fleet.member(20_000, starts.quick_job("25 * * * * *")).await;
    let mut others = fleet.member(0, starts.quick_job("25 * * * * *")).await;
    fast.wake_at(23_000).await;
    assert_eq!(fast.outcome().await, Outcome::Ok);
    let started = fleet.origin.elapsed().as_secs_f64();
    assert!((23.0..23.2).contains(&started), "{started}");
    others.wake_at(23_100).await;
    assert_eq!(others.outcome().await, Outcome::NotWinner);
}

#[tokio::test(start_paused = true)]
async fn a_report_and_a_status_say_how_far_off_the_clock_is_and_how_long_the_claim_took() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let every_minute = MINUTE;
    for (minute, skew) in (0..).zip([0, 700, -1_300, 3_600_000]) {
        let mut member = fleet.member(skew, starts.quick_job(every_minute)).await;
        member.wake_at(skew + 3_000 + 60_000 * minute).await;
        let report = member.report().await;
        let status = member.status().await;
        for offset in [report.clock_offset(), status.clock_offset()] {
            let off_by = offset.unwrap().num_milliseconds() - skew;
            assert!(off_by.abs() <= 2, "{skew}: {report:?}");
        }
        assert!(report.claim_took().unwrap() < Duration::from_millis(100));
    }
    // A second in which a run of another replica goes on, and no node in another.
    let long = || starts.job(every_minute, |_| std::future::pending());
    let (first, mut second) = (fleet.member(0, long()).await, fleet.member(0, long()).await);
    first.wake_at(243_000).await;
    second.wake_at(303_000).await;
    let report = second.report().await;
    assert_eq!(report.outcome(), Outcome::Overlapping);
    let took = report.claim_took().unwrap().as_millis();
    assert!((1_000..1_200).contains(&took), "{report:?}");
    let mut third = fleet.member(0, long().only_if(|_| false)).await;
    third.wake_at(363_000).await;
    let report = third.report().await;
    assert_eq!(report.outcome(), Outcome::Declined);
    assert_eq!((report.claim_took(), report.clock_offset()), (None, None));
}

#[tokio::test(start_paused = true)]
async fn a_tick_that_nobody_claimed_in_time_is_too_late_by_the_nodes_clocks() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let mut slow = fleet.member(-31_000, starts.quick_job(MINUTE)).await;
    slow.wake_at(3_000).await;
    let report = slow.report().await;
    assert_eq!(report.outcome(), Outcome::TooLate, "{report:?}");
    assert!(report.lag() < Duration::from_secs(1));
    assert!(starts.list().is_empty());
}

/// The replicas wake up by the nodes' clocks, as with tokio-cron-scheduler; some later, and some too late for the tick.
#[tokio::test(start_paused = true)]
async fn replicas_have_like_shares_whatever_their_clocks_show() {
    const TICKS: i64 = 48;
    for skews in [[0, 700, 1_400], [0, 0, 0], [-1_300, 20_000, 0]] {
        let (fleet, starts) = (Fleet::new(), Starts::default());
        let mut members = Vec::new();
        for skew in skews {
            let job = starts.quick_job(EVERY_FIVE_SECONDS);
            let member = fleet
                .member(skew, job.spread(Duration::from_millis(500)))
                .await;
            members.push(member);
        }
        for index in 0..TICKS {
            for (member, late) in members.iter().zip([0, 100, 200]) {
                let before = 2_000 + 5_000 * index + late;
                member.wake_at(before + member.skew).await;
            }
        }
        fleet.sleep_until(5_000 * TICKS as u64 + 3_000).await;
        assert_eq!(starts.list().len(), TICKS as usize);
        let shares = members.iter_mut().map(|m| m.ticks(Outcome::Ok).len());
        let shares: Vec<_> = shares.collect();
        let (least, most) = (shares.iter().min().unwrap(), shares.iter().max().unwrap());
        assert!(*most <= 2 * *least, "{skews:?}: {shares:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_is_ahead_at_the_start_does_not_cost_the_ticks_up_to_what_it_shows() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let member = fleet
        .member(20_000, starts.quick_job(EVERY_FIVE_SECONDS))
        .await;
    // It was added before the nodes were heard, and is woken up when they are.
    for second in [3, 8, 13, 18, 23] {
        member.wake_at(20_000 + 1_000 * second).await;
    }
    fleet.until(24).await;
    assert_eq!(starts.list(), [3, 8, 13, 18, 23].map(tick));
}
