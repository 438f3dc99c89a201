use super::*;
use crate::{
    job::{JobId, Namespace},
    replica::{After, ClaimRequest, Claims},
};

async fn claims(fleet: &Fleet) -> Claims {
    Claims {
        redlock: fleet.client().await,
        replica: "pod-7".into(),
        places: None,
        clock: Arc::new(fleet.clock(0)),
    }
}

fn id(namespace: &str) -> JobId {
    JobId::new(Namespace::new(namespace).unwrap(), "job").unwrap()
}

fn ask(namespace: &str, tick: DateTime<Utc>) -> ClaimRequest {
    let key = id(namespace).job_key();
    ClaimRequest {
        place_within: None,
        job: key.clone(),
        lock: key,
        tick,
        early: Duration::from_secs(2),
        start_within: Duration::from_secs(10),
        ttl: Duration::from_secs(10),
        wait: Duration::from_secs(1),
        fingerprint: 0,
        after: After::Whatever,
    }
}

async fn refused(claims: &Claims, ask: ClaimRequest) -> Outcome {
    claims.claim(ask).await.unwrap_err().outcome
}

#[tokio::test(start_paused = true)]
async fn a_tick_that_was_claimed_is_never_claimed_again() {
    let fleet = Fleet::new();
    let (claims, others) = (claims(&fleet).await, claims(&fleet).await);
    drop(claims.claim(ask("tests", tick(0))).await.unwrap());
    let refusal = others.claim(ask("tests", tick(0))).await.unwrap_err();
    assert_eq!(refusal.outcome, Outcome::NotWinner);
    assert_eq!(refusal.run.unwrap().replica.as_str(), "pod-7");
    assert_eq!(fleet.keys().await, 0);
    assert!(others.claim(ask("tests", tick(1))).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_run_that_goes_on_does_not_use_up_the_tick() {
    let fleet = Fleet::new();
    let (claims, others) = (claims(&fleet).await, claims(&fleet).await);
    let run = claims.claim(ask("tests", tick(0))).await.unwrap();
    let outcome = refused(&others, ask("tests", tick(1))).await;
    assert_eq!(outcome, Outcome::Overlapping);
    drop(run);
    assert!(others.claim(ask("tests", tick(1))).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn jobs_of_two_namespaces_do_not_take_each_other_s_ticks() {
    let fleet = Fleet::new();
    let claims = claims(&fleet).await;
    let _claim = claims.claim(ask("tests", tick(0))).await.unwrap();
    assert!(claims.claim(ask("others", tick(0))).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_closed_client_refuses() {
    let fleet = Fleet::new();
    let claims = claims(&fleet).await;
    claims.redlock.clone().close().await;
    let refusal = claims.claim(ask("tests", tick(0))).await.unwrap_err();
    assert_eq!(refusal.outcome, Outcome::Refused);
    assert!(refusal.detail.unwrap().contains("closed"));
}

#[tokio::test(start_paused = true)]
async fn instants_that_are_no_ticks_are_refused() {
    let fleet = Fleet::new();
    let claims = claims(&fleet).await;
    for instant in [tick(-1_900_000_000), DateTime::<Utc>::MAX_UTC] {
        let outcome = refused(&claims, ask("tests", instant)).await;
        assert_eq!(outcome, Outcome::Refused, "{instant}");
    }
}
