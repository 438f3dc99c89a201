use redlock_proto::{Fairness, LeaseTerms, Timing};

use super::*;
use crate::{clock::Clock, meter::LockMeter};

impl LeaseRequest {
    /// Returns the request of a renewed lease of `ttl` on one key.
    pub(crate) fn for_tests(ttl: Duration, clock: Clock) -> Self {
        let key: ResourceKey = "key".parse().unwrap();
        let site = CallSite {
            client: 0,
            clock,
            guarantee: Guarantee::Quorum,
            class: None,
            label: None,
            terms: LeaseTerms {
                is_shared: false,
                timing: Timing::new(ttl, 0.01, Duration::from_millis(1)).unwrap(),
                renew: true,
                max_hold: None,
                slots: None,
                fairness: Fairness::Cohort,
            },
            meter: LockMeter::none(),
        };
        Self {
            mode: Mode::Exclusive,
            keys: key.into(),
            place: None,
            site: Arc::new(site),
        }
    }
}

const TTL: Duration = Duration::from_secs(6);

fn lease(valid_for: Duration) -> (Lease, Clock) {
    let clock = Clock::Tokio {
        origin: tokio::time::Instant::now(),
    };
    let token = FencingToken::new(1).unwrap();
    let subject = LeaseRequest::for_tests(TTL, clock);
    let deadline = clock.now() + valid_for;
    (Lease::new(subject, deadline, None, token), clock)
}

// Shows: T2.2.
#[tokio::test(start_paused = true)]
async fn the_loss_is_told_at_the_deadline() {
    let (lease, clock) = lease(Duration::from_secs(5));
    let start = clock.now();
    assert_eq!(lease.lost().await, LossReason::Expired);
    assert_eq!(clock.now().saturating_since(start), Duration::from_secs(5));
    assert_eq!(lease.remaining(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn an_extension_moves_the_loss() {
    let (lease, clock) = lease(Duration::from_secs(5));
    let start = clock.now();
    let mut lost = pin!(lease.lost());
    assert!(futures_util::poll!(lost.as_mut()).is_pending());
    assert!(lease.extend_to(start + Duration::from_secs(8)));
    assert!(lease.extend_to(start + Duration::from_secs(2)));
    assert_eq!(lost.await, LossReason::Expired);
    assert_eq!(clock.now().saturating_since(start), Duration::from_secs(8));
}

#[test]
fn the_class_is_what_was_asked_for_or_that_of_the_key() {
    let class = |key: ResourceKey, asked| class_of(asked, &key.into()).map(str::to_owned);
    let order = || ResourceKey::new("order", "7:8").unwrap();
    assert_eq!(class(order(), None).as_deref(), Some("order"));
    assert_eq!(class(order(), Some("o")).as_deref(), Some("o"));
    assert_eq!(class("order:7".parse().unwrap(), None), None);
}

#[tokio::test(start_paused = true)]
async fn leases_of_one_call_site_share_what_they_have_in_common_and_others_do_not() {
    let (_, clock) = lease(Duration::ZERO);
    let sites = CallSites::default();
    let get = |class: Option<&str>, ttl| {
        let LeaseRequest { site, .. } = LeaseRequest::for_tests(ttl, clock);
        let CallSite { terms, .. } = *site;
        let new = || CallSite {
            class: class.map(Arc::from),
            ..Arc::into_inner(site).unwrap()
        };
        sites.get(class, &terms, new)
    };
    let first = get(None, TTL);
    assert!(Arc::ptr_eq(&first, &get(None, TTL)));
    for (class, ttl) in [(Some("order"), TTL), (None, 2 * TTL)] {
        let other = get(class, ttl);
        assert_eq!(other.class.as_deref(), class);
        assert_eq!(other.terms.timing.ttl(), ttl);
    }
    // However many there are, few are remembered.
    for number in 1..100 {
        get(None, number * TTL);
    }
    assert!(!Arc::ptr_eq(&first, &get(None, TTL)));
}

#[tokio::test(start_paused = true)]
async fn danger_is_told_with_a_third_of_the_time_to_live_left_and_a_thirtieth() {
    let (lease, clock) = lease(Duration::from_secs(5));
    let start = clock.now();
    let mut endangered = pin!(lease.endangered());
    assert!(futures_util::poll!(endangered.as_mut()).is_pending());
    assert!(!lease.is_endangered());
    // A renewal that comes in time.
    tokio::time::advance(Duration::from_secs(2)).await;
    assert!(lease.extend_to(start + Duration::from_secs(8)));
    endangered.await;
    let told = Duration::from_millis(5_800);
    assert_eq!(clock.now().saturating_since(start), told);
    assert!(lease.is_endangered() && lease.is_held());
    // And one that comes late.
    assert!(lease.extend_to(start + Duration::from_secs(12)));
    assert!(!lease.is_endangered());
    lease.end(LossReason::Revoked);
    lease.endangered().await;
    assert_eq!(clock.now().saturating_since(start), told);
}

// Shows: T1.8, T2.4.
#[tokio::test(start_paused = true)]
async fn a_lease_that_was_seen_to_expire_never_comes_back() {
    let (lease, clock) = lease(Duration::from_secs(5));
    tokio::time::advance(Duration::from_secs(5)).await;
    assert!(!lease.is_held());
    assert!(!lease.extend_to(clock.now() + Duration::from_secs(5)));
    assert!(!lease.is_held());
}

// Shows: T1.11.
#[tokio::test(start_paused = true)]
async fn a_loss_is_that_of_the_next_holder_whichever_holder_is_told_of_it() {
    let (lease, _) = lease(Duration::from_secs(5));
    let (subject, token) = (lease.subject().clone(), lease.token());
    let next = |before: &Lease| {
        let next = before.handed_over(subject.clone(), before.valid_until(), token);
        before.end(LossReason::Released);
        next
    };
    let second = next(&lease);
    let third = next(&second);
    assert!(!third.was_lost() && third.loss().is_none());
    lease.end(LossReason::Revoked);
    assert!(second.was_lost() && third.was_lost());
    third.end(LossReason::Expired);
    assert_eq!(third.loss(), Some(LossReason::Revoked));
    assert_eq!(second.loss(), Some(LossReason::Released));
}

#[tokio::test(start_paused = true)]
async fn a_revocation_is_told_at_once() {
    let (lease, clock) = lease(Duration::from_secs(5));
    let start = clock.now();
    let view = lease.clone();
    let told = async { (view.lost().await, clock.now()) };
    let ends = async { lease.end(LossReason::Revoked) };
    let (told, ()) = tokio::join!(told, ends);
    assert_eq!(told, (LossReason::Revoked, start));
}
