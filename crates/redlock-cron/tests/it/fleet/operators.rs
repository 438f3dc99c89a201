//! Actions of an operator on a job, and the nodes' memory of them.

use super::*;
use redlock_cron::{Action, ControlErrorKind, Overlap};

fn alice(reason: &str) -> Action {
    Action::by("alice: ops").reason(reason)
}

#[tokio::test(start_paused = true)]
async fn a_pause_ends_by_itself_at_its_time_and_says_who_made_it_and_why() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let _hosts = fleet.hosts(|| starts.quick_job(MINUTE)).await;
    pass(10).await;
    let client = fleet.client().await;
    let over = alice("late").until(tick(5));
    let refused = redlock_cron::pause_with(&client, "tests", "job", &over).await;
    assert_eq!(refused.unwrap_err().kind(), ControlErrorKind::InvalidRange);
    let action = alice("the ledger\nmoves").until(tick(130));
    redlock_cron::pause_with(&client, "tests", "job", &action)
        .await
        .unwrap();
    pass(100).await;
    assert_eq!(starts.list(), [tick(3)]);
    let memory = fleet.memory().await;
    let pause = memory.pause().unwrap();
    assert_eq!(
        (pause.by(), pause.reason(), pause.until()),
        (Some("alice ops"), Some("the ledger moves"), Some(tick(130)))
    );
    let line = pause.to_string();
    assert!(
        line.ends_with("by alice ops, until 2027-01-15T08:02:12Z: the ledger moves"),
        "{line}"
    );
    pass(90).await;
    assert_eq!(starts.list(), [tick(3), tick(183)]);
    assert_eq!(fleet.memory().await.is_paused(), Some(false));
    client.close().await;
}

#[tokio::test(start_paused = true)]
async fn an_operator_stops_the_runs_that_go_on_and_no_later_one() {
    for overlap in [Overlap::Skip, Overlap::CancelOther, Overlap::Allow] {
        let (fleet, starts) = (Fleet::new(), Starts::default());
        let job = || {
            let job = starts.job(MINUTE, |_| async {
                sleep(Duration::from_secs(40)).await;
                Ok(())
            });
            job.overlap(overlap)
        };
        let mut hosts = fleet.hosts(job).await;
        pass(10).await;
        let client = fleet.client().await;
        let action = alice("it reads the wrong ledger");
        redlock_cron::stop(&client, "tests", "job", &action)
            .await
            .unwrap();
        client.close().await;
        pass(6).await;
        let memory = fleet.memory().await;
        let run = memory.last_run().unwrap();
        assert_eq!(run.outcome(), Some("cancelled"), "{overlap:?}");
        assert_eq!(
            run.note(),
            Some("stopped by alice ops: it reads the wrong ledger")
        );
        pass(100).await;
        let seen: Vec<_> = hosts.iter_mut().flat_map(Member::seen).collect();
        assert!(
            seen.contains(&(tick(63), Outcome::Ok)),
            "{overlap:?}: {seen:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_backfill_that_is_cancelled_starts_no_further_tick_and_another_one_can_begin() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let job = || {
        starts.job("0 0 * * * *", |_| async {
            sleep(Duration::from_secs(10)).await;
            Ok(())
        })
    };
    let _hosts = fleet.hosts(job).await;
    let hour = |hours: i64| tick(-2 - 3_600 * hours);
    let client = fleet.client().await;
    let backfill = async |from, to| {
        let asked = redlock_cron::request_backfill(&client, "tests", "job", from, to).await;
        asked.unwrap()
    };
    backfill(hour(9), hour(0)).await;
    pass(8).await;
    redlock_cron::cancel_backfill(&client, "tests", "job", &alice("wrong range"))
        .await
        .unwrap();
    pass(60).await;
    assert_eq!(starts.list(), [hour(9)]);
    let memory = fleet.memory().await;
    let cancelled = memory.backfill().unwrap();
    assert!(cancelled.is_cancelled());
    assert_eq!((cancelled.ticks(), cancelled.runs().len()), (10, 1));
    backfill(hour(1), hour(0)).await;
    pass(60).await;
    assert_eq!(starts.list(), [hour(9), hour(1), hour(0)]);
    assert!(!fleet.memory().await.backfill().unwrap().is_cancelled());
    client.close().await;
}

#[tokio::test(start_paused = true)]
async fn the_text_of_an_error_is_remembered_only_if_the_job_asks_for_that() {
    for remembers in [true, false] {
        let (fleet, starts) = (Fleet::new(), Starts::default());
        let job = starts.job(MINUTE, |_| async { Err("no ledger\n of <b>".into()) });
        let job = if remembers {
            job.remember_errors()
        } else {
            job
        };
        let mut member = fleet.member(0, job).await;
        member.wake_at(3_000).await;
        assert_eq!(member.outcome().await, Outcome::Failed);
        let note = remembers.then_some("no ledger  of <b>");
        assert_eq!(fleet.memory().await.last_run().unwrap().note(), note);
    }
}
