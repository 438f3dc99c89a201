//! Election: terms that never overlap, and what ends them.

use std::{
    env,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_util::future::join_all;
use redlock_core::{
    AcquireOptions, BuildErrorKind, Election, Leadership, Lease, Redlock, Term, Wait,
};
use tokio::time::Instant;

use crate::paused_time::fixtures::{Faults, SECOND, client, faulty, keys, settle, soon};

const TTL: Duration = SECOND.saturating_mul(3);
/// A bit more than a look takes whose nodes do not answer, which is 1.5 s.
const LOOK: Duration = Duration::from_millis(1_600);

fn election(redlock: &Redlock, candidate: &str) -> Election {
    let election = redlock.election("importer").candidate(candidate).ttl(TTL);
    election.build().expect("the settings are valid")
}

fn name(leader: Option<Leadership>) -> Option<String> {
    match leader {
        Some(Leadership::Leader { candidate, .. }) => candidate.map(|name| name.to_string()),
        _ => None,
    }
}

#[tokio::test(start_paused = true)]
async fn terms_of_several_candidates_do_not_overlap_and_their_numbers_grow() {
    let nodes = faulty(5);
    let mut candidates = Vec::new();
    for name in ["a", "b", "c"] {
        candidates.push(election(&client(&nodes).await, name));
    }
    let leaders = AtomicUsize::new(0);
    let numbers = std::sync::Mutex::new(Vec::new());
    let (leaders, numbers) = (&leaders, &numbers);
    let lead = candidates.iter().map(|candidate| {
        candidate.lead(|term: Term| async move {
            assert_eq!(leaders.fetch_add(1, Ordering::SeqCst), 0, "two lead");
            numbers.lock().unwrap().push(term.token());
            tokio::time::sleep(SECOND).await;
            leaders.fetch_sub(1, Ordering::SeqCst);
        })
    });
    let all = join_all(lead);
    assert!(
        tokio::time::timeout(60 * SECOND, all).await.is_err(),
        "they go on"
    );
    let numbers = numbers.lock().unwrap();
    assert!(numbers.len() > 10, "{numbers:?}");
    assert!(numbers.is_sorted_by(|one, next| one < next), "{numbers:?}");
}

#[tokio::test(start_paused = true)]
async fn a_term_that_is_lost_drops_the_work_and_the_next_begins_no_earlier() {
    let nodes = faulty(3);
    let one = election(&client(&nodes).await, "one");
    let first = one.lead_with(Wait::Never).await.unwrap();
    let number = first.token();
    let begun = Instant::now();
    for node in &nodes {
        node.set(Faults::BLACK_HOLE);
    }
    assert!(soon(first.run(std::future::pending::<()>())).await.is_err());
    assert!(begun.elapsed() <= TTL);
    assert!(!one.is_leader());
    nodes.iter().for_each(|node| node.heal());
    let two = election(&client(&nodes).await, "two");
    let second = soon(two.lead_with(Wait::UpTo(60 * SECOND))).await.unwrap();
    assert!(second.token() > number);
    assert!(two.is_leader() && !one.is_leader());
}

#[tokio::test(start_paused = true)]
async fn work_that_returns_resigns_and_leaves_the_role_to_others_for_a_third_of_the_ttl() {
    let nodes = faulty(3);
    let election = election(&client(&nodes).await, "one");
    let begun = Instant::now();
    let terms = std::sync::Mutex::new(Vec::new());
    let lead = election.lead(|term: Term| {
        terms.lock().unwrap().push(begun.elapsed());
        async move { drop(term) }
    });
    assert!(tokio::time::timeout(TTL - SECOND / 2, lead).await.is_err());
    assert_eq!(*terms.lock().unwrap(), [Duration::ZERO, SECOND, 2 * SECOND]);
}

#[tokio::test(start_paused = true)]
async fn closing_the_client_ends_the_work_and_resigns() {
    let nodes = faulty(3);
    let redlock = client(&nodes).await;
    let election = election(&redlock, "one");
    let alive = Arc::new(());
    let lead = election.lead(|term: Term| {
        let alive = Arc::clone(&alive);
        async move {
            // Also a term that another task holds ends.
            #[expect(clippy::disallowed_methods, reason = "it outlives the work")]
            let _term = tokio::spawn(async move { term.lost().await });
            std::future::pending::<()>().await;
            drop(alive);
        }
    });
    let close = async {
        tokio::time::sleep(10 * SECOND).await;
        assert!(election.is_leader());
        assert_eq!(Arc::strong_count(&alive), 2);
        redlock.close().await;
    };
    let (led, ()) = tokio::join!(lead, close);
    led.unwrap();
    settle().await;
    assert!(!election.is_leader());
    assert_eq!(Arc::strong_count(&alive), 1, "the work was dropped");
    assert_eq!(keys(&nodes), [0; 3]);
}

#[tokio::test(start_paused = true)]
async fn a_campaign_that_is_dropped_resigns_also_a_term_in_another_task() {
    let nodes = faulty(3);
    let election = election(&client(&nodes).await, "one");
    let lead = election.lead(|term: Term| async move {
        #[expect(clippy::disallowed_methods, reason = "it outlives the work")]
        tokio::spawn(async move {
            let _term = term;
            std::future::pending::<()>().await;
        });
        std::future::pending::<()>().await;
    });
    assert!(tokio::time::timeout(SECOND, lead).await.is_err());
    settle().await;
    assert!(!election.is_leader());
    assert_eq!(keys(&nodes), [0; 3]);
}

#[tokio::test(start_paused = true)]
async fn a_campaign_outlasts_an_outage() {
    let nodes = faulty(3);
    let election = election(&client(&nodes).await, "one");
    nodes.iter().for_each(|node| node.set(Faults::BLACK_HOLE));
    let heal = async {
        tokio::time::sleep(30 * SECOND).await;
        nodes.iter().for_each(|node| node.heal());
    };
    let led = AtomicUsize::new(0);
    let lead = election.lead(|_term: Term| {
        led.fetch_add(1, Ordering::SeqCst);
        std::future::pending::<()>()
    });
    let both = async { tokio::join!(lead, heal) };
    assert!(tokio::time::timeout(60 * SECOND, both).await.is_err());
    assert!(led.load(Ordering::SeqCst) >= 1);
}

#[tokio::test(start_paused = true)]
async fn an_observer_of_another_process_learns_of_each_leader_within_a_third_of_the_ttl() {
    let nodes = faulty(3);
    let one = election(&client(&nodes).await, "one");
    let two = election(&client(&nodes).await, "two");
    let watcher = election(&client(&nodes).await, "watcher");
    let mut observer = watcher.observe();
    assert_eq!(observer.changed().await, Some(Leadership::None));
    for candidate in [&one, &two] {
        let term = candidate.lead_with(Wait::Never).await.unwrap();
        let begun = Instant::now();
        assert_eq!(
            name(soon(observer.changed()).await),
            Some(candidate.candidate().to_string())
        );
        assert!(begun.elapsed() <= TTL / 3);
        term.resign().await.unwrap();
        let begun = Instant::now();
        assert_eq!(soon(observer.changed()).await, Some(Leadership::None));
        assert!(begun.elapsed() <= TTL / 3);
    }
    nodes[..2]
        .iter()
        .for_each(|node| node.set(Faults::BLACK_HOLE));
    assert_eq!(soon(observer.changed()).await, Some(Leadership::Unknown));
}

#[tokio::test(start_paused = true)]
async fn an_observer_learns_of_a_term_of_its_own_process_at_once() {
    let nodes = faulty(3);
    let redlock = client(&nodes).await;
    let election = election(&redlock, "one");
    let mut observer = election.observe();
    assert_eq!(observer.changed().await, Some(Leadership::None));
    let begun = Instant::now();
    let term = election.lead_with(Wait::Never).await.unwrap();
    assert_eq!(name(observer.changed().await).as_deref(), Some("one"));
    let resigned = async { term.resign().await };
    let (leader, resigned) = tokio::join!(observer.changed(), resigned);
    resigned.unwrap();
    assert_eq!(leader, Some(Leadership::None));
    assert_eq!(begun.elapsed(), Duration::ZERO);
    redlock.close().await;
    assert_eq!(observer.changed().await, None);
}

#[tokio::test(start_paused = true)]
async fn an_observer_whose_candidate_waits_in_line_learns_of_the_next_leader_within_a_second() {
    let nodes = faulty(3);
    let ttl = 30 * SECOND;
    let mut candidates = Vec::new();
    for name in ["one", "two", "three"] {
        let redlock = client(&nodes).await;
        // Nodes have said the time once a client has asked them for a key.
        drop(redlock.acquire("other").await.unwrap());
        let election = redlock.election("importer").candidate(name).ttl(ttl);
        candidates.push(election.build().unwrap());
    }
    let [one, two, three] = &candidates[..] else {
        panic!("there are three");
    };
    let term = one.lead_with(Wait::Never).await.unwrap();
    let patient = Wait::UpTo(600 * SECOND);
    let next = async {
        let term = two.lead_with(patient).await.unwrap();
        let begun = Instant::now();
        tokio::time::sleep(60 * SECOND).await;
        drop(term);
        begun
    };
    let last = async {
        tokio::time::sleep(SECOND).await;
        three.lead_with(patient).await.unwrap()
    };
    let look = async {
        let mut observer = three.observe();
        assert_eq!(name(observer.changed().await).as_deref(), Some("one"));
        // To a moment between two looks, of which the next is seven seconds later.
        let quiet = tokio::time::timeout(ttl + 3 * SECOND, observer.changed());
        assert!(quiet.await.is_err());
        term.resign().await.unwrap();
        assert_eq!(name(observer.changed().await).as_deref(), Some("two"));
        Instant::now()
    };
    let (begun, _last, seen) = tokio::join!(next, last, look);
    let late = seen.saturating_duration_since(begun);
    assert!(late <= SECOND, "{late:?}");
}

fn preferred(redlock: &Redlock, candidate: &str) -> Election {
    let election = redlock.election("importer").candidate(candidate).ttl(TTL);
    let election = election.preferred(true).build();
    election.expect("the settings are valid")
}

#[tokio::test(start_paused = true)]
async fn a_preferred_candidate_leads_once_the_others_have_done_as_they_are_asked() {
    let nodes = faulty(3);
    let one = election(&client(&nodes).await, "one");
    let two = election(&client(&nodes).await, "two");
    let three = preferred(&client(&nodes).await, "three");
    let leaders = AtomicUsize::new(0);
    let work = |term: Term| {
        let leaders = &leaders;
        async move {
            assert_eq!(leaders.fetch_add(1, Ordering::SeqCst), 0, "two lead");
            term.asked_to_resign().await;
            leaders.fetch_sub(1, Ordering::SeqCst);
        }
    };
    let preference = async {
        tokio::time::sleep(20 * SECOND).await;
        assert!(one.is_leader() || two.is_leader(), "no one was asked");
        assert_eq!(keys(&nodes), [1; 3]);
        let begun = Instant::now();
        let term = soon(three.lead_with(Wait::UpTo(60 * SECOND)))
            .await
            .unwrap();
        assert!(begun.elapsed() < 5 * TTL, "{:?}", begun.elapsed());
        tokio::time::sleep(SECOND).await;
        assert_eq!(keys(&nodes), [1; 3], "it asks no longer");
        // Not even by another one that is preferred.
        let four = preferred(&client(&nodes).await, "four");
        let refused = tokio::join!(
            tokio::time::timeout(20 * SECOND, term.asked_to_resign()),
            four.lead_with(Wait::UpTo(15 * SECOND)),
        );
        assert!(refused.0.is_err() && refused.1.is_err());
        assert!(three.is_leader());
    };
    tokio::select! {
        led = one.lead(work) => led.unwrap(),
        led = two.lead(work) => led.unwrap(),
        () = preference => {}
    }
}

#[tokio::test(start_paused = true)]
async fn a_leader_is_asked_only_while_a_preferred_candidate_campaigns_and_a_majority_says_so() {
    let nodes = faulty(3);
    // It keeps its term while nodes are silent for a while.
    let one = client(&nodes).await.election("importer").ttl(3 * TTL);
    let term = one.build().unwrap().lead_with(Wait::Never).await.unwrap();
    let asked = async || {
        let asked = tokio::time::timeout(2 * TTL, term.asked_to_resign());
        asked.await.is_ok()
    };
    let other = election(&client(&nodes).await, "two");
    let refused = other.lead_with(Wait::UpTo(TTL));
    let (asked_meanwhile, refused) = tokio::join!(asked(), refused);
    assert!(!asked_meanwhile && refused.is_err(), "it is not preferred");
    let other = preferred(&client(&nodes).await, "three");
    let campaign = other.lead_with(Wait::UpTo(60 * SECOND));
    tokio::select! {
        _ = campaign => panic!("the leader goes on"),
        () = async {
            assert!(soon(asked()).await);
            assert!(term.is_held());
            nodes[..2].iter().for_each(|node| node.set(Faults::SILENT));
            let of_one_node = tokio::time::timeout(LOOK, term.asked_to_resign());
            assert!(of_one_node.await.is_err(), "a minority decides nothing");
            nodes.iter().for_each(|node| node.heal());
            assert!(soon(asked()).await);
        } => {}
    }
    // The request is released in the background.
    tokio::time::sleep(SECOND).await;
    assert!(
        !asked().await,
        "a campaign that was given up leaves nothing"
    );
    assert_eq!(keys(&nodes), [1; 3]);
}

#[tokio::test(start_paused = true)]
async fn what_is_not_valid_is_refused() {
    let redlock = client(&faulty(3)).await;
    let long = "x".repeat(65);
    for candidate in ["", "two\nlines", &long] {
        let built = redlock.election("importer").candidate(candidate).build();
        assert_eq!(built.unwrap_err().kind(), BuildErrorKind::Misuse);
    }
    assert!(redlock.election("").build().is_err());
    assert!(redlock.election("x".repeat(505)).build().is_err());
    assert!(
        redlock
            .election("importer")
            .ttl(SECOND / 100)
            .build()
            .is_err()
    );
}

/// Has a client hold as many leases as it has names, each for a few renewals; returns the requests to its nodes.
async fn requests<H>(names: &[String], hold: impl AsyncFn(&Redlock, &str) -> H) -> usize
where
    H: std::ops::Deref<Target = Lease>,
{
    let nodes = faulty(3);
    let redlock = client(&nodes).await;
    let held = join_all(names.iter().map(|name| hold(&redlock, name))).await;
    tokio::time::sleep(2 * TTL).await;
    assert!(held.iter().all(|lease| lease.is_held()));
    drop(held);
    redlock.close().await;
    assert_eq!(keys(&nodes), [0; 3]);
    nodes.iter().map(|node| node.requests()).sum()
}

/// `REDLOCK_ELECTIONS=10000` has as many.
#[tokio::test(start_paused = true)]
async fn elections_with_one_candidate_each_cost_no_more_than_as_many_leases() {
    let elections = env::var("REDLOCK_ELECTIONS").map_or(200, |number| number.parse().unwrap());
    let names: Vec<String> = (0..elections).map(|n| format!("importer-{n}")).collect();
    let of_leases = requests(&names, async |redlock, name| {
        let options = AcquireOptions::new().ttl(TTL);
        redlock.acquire_with(name, options).await.unwrap()
    });
    let of_elections = requests(&names, async |redlock, name| {
        let election = redlock.election(name).ttl(TTL).build().unwrap();
        election.lead_with(Wait::UpTo(TTL)).await.unwrap()
    });
    let (of_leases, of_elections) = (of_leases.await, of_elections.await);
    println!("{of_elections} requests of {elections} elections, {of_leases} of as many leases");
    assert!(
        of_leases > 3 * elections,
        "each is acquired, renewed and released"
    );
    assert!(of_elections <= of_leases + of_leases / 100);
}
