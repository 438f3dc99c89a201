use super::*;
use crate::{
    claim::{Claims, Terms},
    identity::{JobId, Namespace},
};

/// A clock that shows one instant after the other.
struct Shows(Mutex<Vec<DateTime<Utc>>>);

impl Clock for Shows {
    fn now(&self) -> DateTime<Utc> {
        self.0.lock().unwrap().pop().unwrap()
    }
}

const TERMS: Terms = Terms {
    start_within: Duration::from_secs(10),
    ttl: Duration::from_secs(10),
};

fn id() -> JobId {
    JobId::new(Namespace::new("tests").unwrap(), "job").unwrap()
}

/// Waits until what was given back is gone, which takes a turn of the client.
async fn keys_after_clean_up(fleet: &Fleet) -> usize {
    tokio::time::sleep(Duration::from_millis(100)).await;
    fleet.keys()
}

/// The argument against a second start rests on this look at the clock.
#[tokio::test(start_paused = true)]
async fn a_claim_that_took_too_long_is_given_up_after_it_was_granted() {
    let fleet = Fleet::new();
    // Read from the end.
    let shows = Shows(Mutex::new(vec![tick(11), tick(1), tick(1)]));
    let claims = Claims::new(fleet.client().await, Arc::new(shows));
    let refusal = claims.claim(&id(), tick(0), TERMS).await.err().unwrap();
    assert_eq!(refusal.outcome, Outcome::TooLate);
    assert_eq!(keys_after_clean_up(&fleet).await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_is_not_started_gives_the_tick_back() {
    let fleet = Fleet::new();
    let claims = Claims::new(fleet.client().await, Arc::new(fleet.clock(0)));
    let others = Claims::new(fleet.client().await, Arc::new(fleet.clock(0)));
    drop(claims.claim(&id(), tick(0), TERMS).await.ok().unwrap());
    let claim = others.claim(&id(), tick(0), TERMS).await.ok().unwrap();
    claim.start().release().await.unwrap();
    let refusal = claims.claim(&id(), tick(0), TERMS).await.err().unwrap();
    assert_eq!(refusal.outcome, Outcome::NotWinner);
    assert_eq!(keys_after_clean_up(&fleet).await, 1, "the mark stays");
}

#[tokio::test(start_paused = true)]
async fn a_busy_job_does_not_burn_the_tick() {
    let fleet = Fleet::new();
    let claims = Claims::new(fleet.client().await, Arc::new(fleet.clock(0)));
    let others = Claims::new(fleet.client().await, Arc::new(fleet.clock(0)));
    let lease = claims
        .claim(&id(), tick(0), TERMS)
        .await
        .ok()
        .unwrap()
        .start();
    let refusal = others.claim(&id(), tick(1), TERMS).await.err().unwrap();
    assert_eq!(refusal.outcome, Outcome::Busy);
    lease.release().await.unwrap();
    assert!(others.claim(&id(), tick(1), TERMS).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn jobs_of_two_namespaces_do_not_take_each_other_s_ticks() {
    let fleet = Fleet::new();
    let claims = Claims::new(fleet.client().await, Arc::new(fleet.clock(0)));
    let other = JobId::new(Namespace::new("others").unwrap(), "job").unwrap();
    let _claim = claims.claim(&id(), tick(0), TERMS).await.ok().unwrap();
    assert!(claims.claim(&other, tick(0), TERMS).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_closed_client_refuses() {
    let fleet = Fleet::new();
    let client = fleet.client().await;
    let claims = Claims::new(client.clone(), Arc::new(fleet.clock(0)));
    client.close().await;
    let refusal = claims.claim(&id(), tick(0), TERMS).await.err().unwrap();
    assert_eq!(refusal.outcome, Outcome::Refused);
    assert!(refusal.detail.unwrap().contains("closed"));
}
