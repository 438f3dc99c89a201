use super::*;
use crate::{
    claim::{Claims, Terms},
    identity::{JobId, Namespace},
};
use redlock_core::{RunState, Word};

const TERMS: Terms = Terms {
    start_within: Duration::from_secs(10),
    ttl: Duration::from_secs(10),
    fingerprint: 7,
};

fn id() -> JobId {
    JobId::new(Namespace::new("tests").unwrap(), "job").unwrap()
}

fn word(text: &str) -> Word {
    Word::new(text).unwrap()
}

async fn claims(fleet: &Fleet, replica: &str) -> Claims {
    Claims::new(fleet.client().await, word(replica))
}

/// Waits until what was given back is gone, which takes a turn of the client.
async fn keys_after_clean_up(fleet: &Fleet) -> usize {
    tokio::time::sleep(Duration::from_millis(100)).await;
    fleet.keys()
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_is_not_started_gives_the_lease_back_and_keeps_the_tick() {
    let fleet = Fleet::new();
    let (one, other) = (claims(&fleet, "one").await, claims(&fleet, "other").await);
    drop(one.claim(&id(), tick(0), TERMS).await.ok().unwrap());
    assert_eq!(keys_after_clean_up(&fleet).await, 0);
    let refusal = other.claim(&id(), tick(0), TERMS).await.err().unwrap();
    assert_eq!(refusal.outcome, Outcome::NotWinner);
    assert_eq!(refusal.detail.as_deref(), Some("claimed by one"));
    assert!(other.claim(&id(), tick(1), TERMS).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_busy_job_does_not_burn_the_tick() {
    let fleet = Fleet::new();
    let (one, other) = (claims(&fleet, "one").await, claims(&fleet, "other").await);
    let run = one.claim(&id(), tick(0), TERMS).await.ok().unwrap();
    let refusal = other.claim(&id(), tick(1), TERMS).await.err().unwrap();
    assert_eq!(refusal.outcome, Outcome::Busy);
    run.finish(word("ok"), Duration::ZERO).await.unwrap();
    assert!(other.claim(&id(), tick(1), TERMS).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn jobs_of_two_namespaces_do_not_take_each_other_s_ticks() {
    let fleet = Fleet::new();
    let claims = claims(&fleet, "one").await;
    let other = JobId::new(Namespace::new("others").unwrap(), "job").unwrap();
    let _claim = claims.claim(&id(), tick(0), TERMS).await.ok().unwrap();
    assert!(claims.claim(&other, tick(0), TERMS).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_closed_client_refuses() {
    let fleet = Fleet::new();
    let client = fleet.client().await;
    let claims = Claims::new(client.clone(), word("one"));
    client.close().await;
    let refusal = claims.claim(&id(), tick(0), TERMS).await.err().unwrap();
    assert_eq!(refusal.outcome, Outcome::Refused);
    assert!(refusal.detail.unwrap().contains("closed"));
}

#[tokio::test(start_paused = true)]
async fn nodes_remember_who_ran_a_tick_and_how_it_ended() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let failing = starts.job(EVERY_FIVE_SECONDS, |_| async {
        tokio::time::sleep(Duration::from_millis(1_500)).await;
        Err("no such ledger".into())
    });
    let mut member = fleet.member(0, failing).await;
    member.wake_at(3_000).await;
    assert_eq!(member.outcome().await, Outcome::Failed);
    tokio::time::sleep(Duration::from_millis(100)).await;
    let status = fleet.client().await.job_status(id().lease_key()).await;
    let status = status.unwrap();
    let run = &status.state().unwrap().runs[0];
    let due = run.tick.as_millis();
    assert_eq!(i64::try_from(due).unwrap(), tick(3).timestamp_millis());
    assert_eq!(run.replica, word("member"));
    let RunState::Ended { outcome, took } = &run.state else {
        panic!("{run:?}")
    };
    assert_eq!(*outcome, word("failed"));
    assert_eq!(took.as_millis(), 1_500);
}

#[tokio::test(start_paused = true)]
async fn replicas_that_disagree_on_a_job_are_noticed() {
    let fleet = Fleet::new();
    let (one, other) = (claims(&fleet, "one").await, claims(&fleet, "other").await);
    drop(one.claim(&id(), tick(0), TERMS).await.ok().unwrap());
    let terms = Terms {
        fingerprint: 8,
        ..TERMS
    };
    let refusal = other.claim(&id(), tick(0), terms).await.err().unwrap();
    let detail = refusal.detail.unwrap();
    assert_eq!(detail, "claimed by one, which has another configuration");
}

/// What a job's fingerprint must tell apart, and what it must not.
#[tokio::test(start_paused = true)]
async fn a_jobs_fingerprint_is_its_pattern_its_zone_and_its_limit() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let mut seen = Vec::new();
    for job in [
        starts.quick_job(EVERY_FIVE_SECONDS),
        starts
            .quick_job(EVERY_FIVE_SECONDS)
            .ttl(Duration::from_secs(9)),
        starts.quick_job("*/6 * * * * *"),
        starts
            .quick_job(EVERY_FIVE_SECONDS)
            .start_within(Duration::from_secs(9)),
        SingletonJob::cron("job", EVERY_FIVE_SECONDS, Tz::CET, |_| async {
            Ok::<(), BoxError>(())
        }),
    ] {
        seen.push(fleet.member(0, job).await.runner.terms.fingerprint);
    }
    assert_eq!(seen[0], seen[1]);
    seen.remove(1);
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), 4);
}
