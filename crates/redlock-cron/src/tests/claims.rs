use redlock_core::LossReason;
use tokio::sync::Semaphore;

use super::*;
use crate::{
    job::{JobId, JobNamespace},
    replica::{After, ClaimRequest, Claims},
};

async fn claims(fleet: &Fleet) -> Claims {
    Claims {
        redlock: fleet.client().await,
        replica: "pod-7".into(),
        places: None,
        asking: Semaphore::new(1),
        clock: Arc::new(fleet.clock(0)),
    }
}

fn id(namespace: &str) -> JobId {
    JobId::new(JobNamespace::new(namespace).unwrap(), "job").unwrap()
}

fn ask(namespace: &str, tick: DateTime<Utc>) -> ClaimRequest {
    let key = id(namespace).job_key();
    ClaimRequest {
        slots: None,
        place_within: None,
        job: key.clone(),
        series: Series::TICKS,
        attempt: 1,
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
async fn instants_that_are_no_ticks_are_refused() {
    let fleet = Fleet::new();
    let claims = claims(&fleet).await;
    for instant in [tick(-1_900_000_000), DateTime::<Utc>::MAX_UTC] {
        let outcome = refused(&claims, ask("tests", instant)).await;
        assert_eq!(outcome, Outcome::Refused, "{instant}");
    }
}

/// Returns what asks for a moment, on nodes for which five milliseconds pass until each claim comes.
fn ask_moments<'a>(
    fleet: &'a Fleet,
    asked: &'a AtomicUsize,
) -> impl Fn(DateTime<Utc>) -> ClaimRequest + 'a {
    move |now| {
        let asked = asked.fetch_add(1, Ordering::Relaxed) + 1;
        let passed = fleet.origin.elapsed() + Duration::from_millis(5) * asked as u32;
        let shown = tick(0) + TimeDelta::from_std(passed).unwrap();
        fleet
            .nodes
            .iter()
            .for_each(|node| node.set_clock(shown.into()));
        ClaimRequest {
            start_within: Duration::from_secs(60),
            ..ask("tests", now)
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_present_is_claimed_whatever_the_replica_s_clock_shows_while_time_passes() {
    for skew in [-7_200_000, -120_000, -61_000, 0, 120_000, 7_200_000] {
        let (fleet, asked) = (Fleet::new(), AtomicUsize::new(0));
        let claims = Claims {
            clock: Arc::new(fleet.clock(skew)),
            ..claims(&fleet).await
        };
        let (_, now) = claims
            .claim_now(None, TimeDelta::zero(), ask_moments(&fleet, &asked))
            .await
            .unwrap_or_else(|refusal| panic!("{skew}: {refusal:?}"));
        assert!((now - tick(0)).abs() <= TimeDelta::seconds(61), "{now}");
        assert!(asked.load(Ordering::Relaxed) <= 2, "{asked:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn claims_in_flight_are_bounded_and_a_tick_that_waits_for_too_long_is_late() {
    let fleet = Fleet::new();
    let claims = claims(&fleet).await;
    let within = |seconds| ClaimRequest {
        place_within: Some(Duration::from_secs(seconds)),
        ..ask("tests", tick(0))
    };
    let turn = claims.asking.try_acquire().unwrap();
    // It may still be started.
    assert_eq!(refused(&claims, within(1)).await, Outcome::NoPlace);
    assert_eq!(refused(&claims, within(10)).await, Outcome::TooLate);
    drop(turn);
    let later = ClaimRequest {
        tick: tick(20),
        ..within(10)
    };
    fleet.sleep_until(20_000).await;
    let won = claims.claim(later).await.unwrap();
    assert_eq!(claims.asking.available_permits(), 1, "a run needs none");
    drop(won);
}

#[tokio::test(start_paused = true)]
async fn the_present_is_what_it_is_after_the_wait_for_a_place() {
    let (fleet, asked) = (Fleet::new(), AtomicUsize::new(0));
    let places = Arc::new(Semaphore::new(1));
    let claims = Claims {
        places: Some(Arc::clone(&places)),
        ..claims(&fleet).await
    };
    let taken = places.try_acquire_owned().unwrap();
    let patient = Some(Duration::from_secs(600));
    let claimed = claims.claim_now(patient, TimeDelta::zero(), ask_moments(&fleet, &asked));
    let freed = async {
        fleet.sleep_until(100_000).await;
        drop(taken);
    };
    let (claimed, ()) = tokio::join!(claimed, freed);
    let (won, now) = claimed.unwrap();
    assert_eq!((now, asked.load(Ordering::Relaxed)), (tick(100), 1));
    assert!(claims.places.as_ref().unwrap().try_acquire().is_err());
    drop(won);
    assert!(claims.places.as_ref().unwrap().try_acquire().is_ok());
}

// Shows: R5.3.
#[tokio::test(start_paused = true)]
async fn a_run_whose_slot_is_lost_may_not_go_on_though_its_lease_is_held() {
    let (fleet, elsewhere) = (Fleet::new(), Fleet::new());
    let claims = claims(&fleet).await;
    // On other nodes, so that it is lost alone.
    let slots = elsewhere.client().await.slots("slots", 2).unwrap();
    let ask = ClaimRequest {
        slots: Some(slots),
        ..ask("tests", tick(0))
    };
    let won = claims.claim(ask).await.unwrap();
    elsewhere.nodes.iter().for_each(MemoryNode::drop_locks);
    let lost = tokio::time::timeout(Duration::from_secs(10), won.lost()).await;
    assert_eq!(lost.ok(), Some(LossReason::Revoked));
    assert!(won.claim.lease().is_held());
}
