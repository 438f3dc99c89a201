//! The snapshot: its tag, its filters, and what becomes of nodes and keys.

use std::time::Duration;

use axum::{Router, http::StatusCode};
use redlock_console::{
    Access, Console, Snapshot, router,
    snapshot::{KeyKind, VerdictState},
};
use redlock_core::{AcquireOptions, Wait};
use redlock_cron::{BoxError, SingletonJob, SingletonScheduler, chrono::NaiveDate};
use redlock_sandbox::ServerOptions;
use tokio::{
    task::JoinSet,
    time::{Instant, sleep},
};

use crate::kit::{answer, get, post, request, servers};

/// Looks again and again until the snapshot is as it should be.
async fn until(routes: &Router, path: &str, is_so: impl Fn(&Snapshot) -> bool) -> Snapshot {
    let end = Instant::now() + Duration::from_secs(30);
    loop {
        let snapshot = get(routes, path).await.snapshot();
        if is_so(&snapshot) {
            return snapshot;
        }
        assert!(Instant::now() < end, "{snapshot:#?}");
        sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn a_snapshot_keeps_its_tag_while_only_times_pass() {
    let (_servers, client) = servers(3, &ServerOptions::default()).await;
    let patient = AcquireOptions::new().ttl(Duration::from_secs(30));
    let _guard = client.acquire_with("order:7", patient).await.unwrap();
    let routes = router(Console::builder(client.clone()).build().unwrap());
    // Findings and memory are there after a while, and what moves a little is new every ten seconds.
    let bucket = |snapshot: &Snapshot| snapshot.at_ms / 5_000;
    let end = Instant::now() + Duration::from_secs(60);
    let tag = loop {
        assert!(Instant::now() < end, "the tag moves");
        let before = until(&routes, "/snapshot", |it| it.findings_at_ms.is_some()).await;
        let tag = get(&routes, "/snapshot").await.header("etag").to_owned();
        let after = until(&routes, "/snapshot", |it| it.at_ms > before.at_ms).await;
        let later = get(&routes, "/snapshot").await.header("etag").to_owned();
        let of_key = |snapshot: &Snapshot| {
            snapshot
                .keys
                .iter()
                .map(|key| key.remaining_ms)
                .collect::<Vec<_>>()
        };
        if bucket(&before) == bucket(&after) && tag == later {
            assert_ne!(of_key(&before), of_key(&after));
            break tag;
        }
        assert!(before.at_ms > 0);
    };
    let mut again = request("GET", "/snapshot");
    again
        .headers_mut()
        .insert("if-none-match", tag.parse().unwrap());
    let known = answer(&routes, again).await;
    assert_eq!((known.status, &*known.text), (StatusCode::NOT_MODIFIED, ""));
    assert_eq!(known.header("etag"), tag);
    // Another filter is another answer.
    let mut other = request("GET", "/snapshot?q=order");
    other
        .headers_mut()
        .insert("if-none-match", tag.parse().unwrap());
    assert_eq!(answer(&routes, other).await.status, StatusCode::OK);
    let _other = client.acquire("order:8").await.unwrap();
    until(&routes, "/snapshot", |it| it.keys.len() == 2).await;
    assert_ne!(get(&routes, "/snapshot").await.header("etag"), tag);
}

#[tokio::test]
async fn keys_are_filtered_by_text_and_kind_and_a_bad_filter_is_named() {
    let (_servers, client) = servers(3, &ServerOptions::default()).await;
    let _exclusive = client.acquire("Order:7").await.unwrap();
    let _shared = client
        .acquire_with("report", AcquireOptions::new().shared())
        .await
        .unwrap();
    let slots = client.slots("importer", 2).unwrap();
    let _slot = slots.acquire().await.unwrap();
    let routes = router(Console::builder(client).build().unwrap());
    let all = until(&routes, "/snapshot", |it| it.keys.len() == 3).await;
    let kinds: Vec<_> = all.keys.iter().map(|key| (&*key.key, key.kind)).collect();
    for (key, kind) in [("Order:7", KeyKind::Exclusive), ("report", KeyKind::Shared)] {
        assert!(kinds.contains(&(key, kind)), "{kinds:?}");
    }
    assert!(
        kinds
            .iter()
            .any(|(key, kind)| key.starts_with("importer#") && *kind == KeyKind::Slot),
        "{kinds:?}"
    );
    for (path, key) in [
        ("/snapshot?q=order", "Order:7"),
        ("/snapshot?kind=shared", "report"),
        ("/snapshot?q=import&kind=slot", "importer#"),
    ] {
        let found = get(&routes, path).await.snapshot();
        assert_eq!((found.keys.len(), found.keys_total), (1, 1), "{path}");
        assert!(found.keys[0].key.starts_with(key), "{path}: {found:?}");
    }
    // By the label of the holder.
    let held = get(&routes, "/snapshot?q=CONSOLE").await.snapshot();
    assert_eq!(held.keys.len(), 3);
    for (path, words) in [
        ("/snapshot?kind=mutex", "exclusive, shared, slot, job"),
        ("/events?kind=mutex", "exclusive, shared, slot, job"),
        (&*format!("/overview?q={}", "a".repeat(513)), "512 bytes"),
        ("/key?name=", "name is not that of a key"),
        ("/key?name=a%0Ab", "name is not that of a key"),
        ("/job?name=day", "billing/close-day"),
    ] {
        let refused = get(&routes, path).await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{path}");
        assert!(refused.text.contains(words), "{refused:?}");
    }
}

#[tokio::test]
async fn a_node_that_dies_is_in_the_verdict_the_margin_and_the_findings() {
    let (mut servers, client) = servers(3, &ServerOptions::default()).await;
    let routes = router(Console::builder(client).build().unwrap());
    let before = until(&routes, "/snapshot", |it| it.findings_at_ms.is_some()).await;
    assert_eq!(before.verdict.state, VerdictState::Ok);
    assert_eq!(before.verdict.sentence, "3 of 3 nodes vote; 2 are needed.");
    servers[2].kill().unwrap();
    let is_down = |it: &Snapshot| it.verdict.state == VerdictState::Critical;
    let after = until(&routes, "/snapshot", is_down).await;
    assert_eq!((after.verdict.votes, after.verdict.majority), (2, 2));
    let node = servers[2].address().to_string();
    assert!(after.verdict.advice.unwrap().starts_with(&node));
    let votes: Vec<_> = after.margin.iter().map(|step| step.votes).collect();
    assert_eq!(votes, [Some(3), Some(2)]);
    let after = until(&routes, "/snapshot", |it| {
        it.nodes[2].round_trip_ms.is_none()
    })
    .await;
    assert!(
        after.nodes[2].keys_unknown.is_some() && after.nodes[2].why.is_some(),
        "{after:?}"
    );
    servers[1].kill().unwrap();
    let is_over = |it: &Snapshot| it.verdict.state == VerdictState::NoQuorum;
    let over = until(&routes, "/snapshot", is_over).await;
    assert!(
        over.verdict.sentence.contains("nothing can be locked"),
        "{over:?}"
    );
    let page = get(&routes, "/overview").await;
    assert!(page.text.contains("nothing can be locked"), "{}", page.text);
}

#[tokio::test]
async fn clocks_that_disagree_are_told_and_stop_nothing() {
    let (servers, client) = servers(3, &ServerOptions::default().own_clock()).await;
    let _guard = client.acquire("order:7").await.unwrap();
    let ahead = Duration::from_secs(3_600);
    servers[1].clock().unwrap().advance(ahead).unwrap();
    let routes = router(Console::builder(client).build().unwrap());
    let is_off =
        |it: &Snapshot| it.nodes[1].clock_ahead_ms > Some(3_599_000.0) && !it.nodes[1].votes;
    let seen = until(&routes, "/snapshot", is_off).await;
    assert!(
        seen.nodes[0].clock_ahead_ms.unwrap().abs() < 1_000.0,
        "{seen:?}"
    );
    assert_eq!(seen.verdict.state, VerdictState::Critical);
    until(&routes, "/snapshot", |it| {
        it.findings.iter().any(|finding| finding.check == "clock")
    })
    .await;
    assert_eq!(get(&routes, "/overview").await.status, StatusCode::OK);
}

#[tokio::test]
async fn no_credentials_of_a_node_are_in_any_answer() {
    let options = ServerOptions::default().password("hunter2-of-the-nodes");
    let (_servers, client) = servers(3, &options).await;
    let _guard = client.acquire("order:7").await.unwrap();
    let console = Console::builder(client)
        .access(|_| Access::Operate)
        .build()
        .unwrap();
    assert!(!format!("{console:?}").contains("hunter2"));
    let routes = router(console);
    until(&routes, "/snapshot", |it| {
        it.findings_at_ms.is_some() && it.keys.len() == 1
    })
    .await;
    for path in [
        "/",
        "/snapshot",
        "/key?name=order:7",
        "/job?name=billing/day",
    ] {
        let looked = get(&routes, path).await;
        assert!(!looked.text.contains("hunter2"), "{path}");
    }
}

#[tokio::test]
async fn a_user_that_may_not_scan_is_told_which_right_is_missing() {
    let (servers, client) = servers(1, &ServerOptions::default()).await;
    let routes = router(Console::builder(client).build().unwrap());
    until(&routes, "/snapshot", |it| {
        it.nodes[0].keys_unknown.is_none()
    })
    .await;
    let denied = ["ACL", "SETUSER", "default", "-scan"];
    servers[0].command(&denied).unwrap();
    let seen = until(&routes, "/snapshot", |it| {
        it.nodes[0].keys_unknown.is_some()
    })
    .await;
    let why = seen.nodes[0].keys_unknown.clone().unwrap();
    assert!(why.contains("+scan"), "{why}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_page_of_a_key_tells_its_life_from_the_moment_it_is_opened() {
    let (servers, client) = servers(3, &ServerOptions::default()).await;
    let other = redlock_core::Redlock::builder()
        .nodes(servers.urls())
        .label("web-2");
    let other = other.build().await.unwrap();
    let routes = router(Console::builder(client.clone()).build().unwrap());
    let page = get(&routes, "/key?name=order:7").await;
    assert!(page.text.contains("free"), "{}", page.text);
    let guard = client.acquire("order:7").await.unwrap();
    let told = async |words: &str| {
        let end = Instant::now() + Duration::from_secs(30);
        loop {
            let page = get(&routes, "/key?name=order:7").await;
            if page.text.contains(words) {
                return page.text;
            }
            assert!(Instant::now() < end, "{words} is not in {}", page.text);
            sleep(Duration::from_millis(100)).await;
        }
    };
    let page = told("console has got it").await;
    // The verdict says it once.
    let verdict = page.split_once("</section>").unwrap().0;
    assert_eq!(verdict.matches("3 of 3 nodes").count(), 1, "{verdict}");
    let mut waiting = JoinSet::new();
    waiting.spawn(async move {
        let patient = AcquireOptions::new().wait(Wait::UpTo(Duration::from_secs(30)));
        other.acquire_with("order:7", patient).await
    });
    told("web-2 waits in line").await;
    told("has extended it").await;
    guard.release().await.unwrap();
    let got = waiting.join_next().await.unwrap().unwrap().unwrap();
    told("web-2 has got it from the line").await;
    got.release().await.unwrap();
    told("web-2 has released it").await;
}

#[tokio::test]
async fn an_election_that_is_named_shows_its_leader_and_its_terms() {
    let (_servers, client) = servers(3, &ServerOptions::default()).await;
    let election =
        |name: &'static str| client.election("importer").candidate(name).build().unwrap();
    let console = Console::builder(client.clone()).elections(["importer"]);
    let routes = router(console.build().unwrap());
    let free = get(&routes, "/snapshot").await.snapshot();
    assert_eq!(free.elections[0].leader, None);
    let term = election("pod-3").lead_with(Wait::Never).await.unwrap();
    let led = until(&routes, "/snapshot", |it| it.elections[0].leader.is_some()).await;
    assert_eq!(led.elections[0].leader.as_deref(), Some("pod-3"));
    assert!(led.elections[0].since_ms.is_some());
    drop(term.resign().await);
    until(&routes, "/snapshot", |it| it.elections[0].leader.is_none()).await;
    let _term = election("pod-4")
        .lead_with(Wait::UpTo(Duration::from_secs(20)))
        .await
        .unwrap();
    let led = until(&routes, "/snapshot", |it| it.elections[0].leader.is_some()).await;
    let terms = &led.elections[0].terms;
    let leaders: Vec<_> = terms.iter().map(|term| term.leader.as_deref()).collect();
    assert_eq!(leaders, [Some("pod-4"), Some("pod-3")]);
    assert!(
        terms[0].until_ms.is_none() && terms[1].until_ms.is_some(),
        "{terms:?}"
    );
}

#[tokio::test]
async fn a_scheduler_of_this_process_tells_the_next_tick_when_the_nodes_no_longer_know_it() {
    let (_servers, client) = servers(3, &ServerOptions::default()).await;
    let jobs = SingletonScheduler::standalone(client.clone()).namespace("billing");
    let jobs = jobs.replica("pod-7").build().unwrap();
    let often = Duration::from_secs(2);
    let job = SingletonJob::every("often", often, async |_run| Ok::<(), BoxError>(()));
    // With 28 of them, the nodes have no room for the schedule, and know only the tick after the registration.
    let days = (1..=28).filter_map(|day| NaiveDate::from_ymd_opt(2099, 12, day));
    jobs.add(job.except(days)).await.unwrap();
    jobs.start().await.unwrap();
    let with = Console::builder(client.clone()).jobs(jobs.clone());
    let with = router(with.build().unwrap());
    let without = router(Console::builder(client).build().unwrap());
    let of = |snapshot: &Snapshot| snapshot.jobs.first().map(|job| job.next_tick.is_some());
    until(&without, "/snapshot", |it| of(it) == Some(false)).await;
    let seen = until(&with, "/snapshot", |it| of(it).is_some()).await;
    assert_eq!(of(&seen), Some(true), "{seen:?}");
    drop(jobs.shutdown(Duration::from_secs(5)).await);
}

#[tokio::test]
async fn a_job_whose_record_is_damaged_says_nothing_of_its_nodes() {
    let (servers, client) = servers(3, &ServerOptions::default()).await;
    let record = redlock_cron::remembered_under("billing", "day").unwrap();
    for server in servers.iter() {
        let key = format!("{{redlock}}:job:{}", record.as_str());
        server
            .command(&["SET", &key, "of another program"])
            .unwrap();
    }
    let console = Console::builder(client).access(|_| Access::Operate);
    let routes = router(console.build().unwrap());
    let all_vote = |snapshot: &Snapshot| {
        assert_eq!(snapshot.verdict.votes, 3, "{:?}", snapshot.verdict);
    };
    all_vote(&get(&routes, "/snapshot").await.snapshot());
    let refused = post(&routes, "/actions/pause", "job=billing/day&reason=r").await;
    assert_eq!(
        refused.status,
        StatusCode::SERVICE_UNAVAILABLE,
        "{refused:?}"
    );
    assert!(
        refused.text.contains("is damaged: delete the key"),
        "{refused:?}"
    );
    // The jobs are looked at again meanwhile.
    let end = Instant::now() + Duration::from_secs(7);
    while Instant::now() < end {
        all_vote(&get(&routes, "/snapshot").await.snapshot());
        sleep(Duration::from_millis(300)).await;
    }
}

#[tokio::test]
async fn what_no_node_knows_has_no_buttons_and_says_what_to_do() {
    let (_servers, client) = servers(3, &ServerOptions::default()).await;
    let console = Console::builder(client).access(|_| Access::Operate);
    let routes = router(console.build().unwrap());
    for (path, words) in [
        ("/job?name=billing/dya", "No node knows a job billing/dya."),
        ("/job?name=billing/dya", "its scheduler makes the job known"),
        (
            "/key?name=order:7",
            "It is free: there is nothing to release.",
        ),
    ] {
        let page = get(&routes, path).await.text;
        assert!(page.contains(words), "{words} is not in {page}");
        assert!(!page.contains("data-do"), "{page}");
        // The way back to the parts of the page.
        assert!(page.contains("href=\"overview#jobs\">Jobs<"), "{page}");
    }
}
