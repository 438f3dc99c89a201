//! Users of the server with just enough rights, and with one right less.

use std::sync::Arc;

use futures_util::StreamExt;
use redlock_core::{
    Redlock,
    node::{CallError, NodeTime, RedisNode, Reply, Request, Session},
};
use redlock_proto::{InLine, LinePlace, Lock, LockMode, MarkState, NodeVerb, OwnerId, Verb};
use redlock_sandbox::ServerOptions;

use super::fixtures::{
    Fixture, RELEASE, TOMBSTONE, TTL, acquire, claim, commit, connect, extend, heal, job, keyspace,
    open, read, record, request, request_of, taken,
};

fn rights() -> Vec<&'static str> {
    RedisNode::RIGHTS.split(' ').collect()
}

const PASSWORD: &str = "sesame";

/// Resets the user to these rights and no others; returns the URL of the server for that user.
fn user(fixture: &Fixture, name: &str, rights: &[&str]) -> String {
    let password = format!(">{PASSWORD}");
    let mut command = vec!["ACL", "SETUSER", name, "reset", "on", &password];
    command.extend(["~{odd}:*", "resetchannels", "-@all"]);
    command.extend(rights);
    fixture.command(&command);
    format!("redis://{name}:{PASSWORD}@{}", fixture.server.address())
}

/// Asks a node for everything that a client asks for; returns the errors.
async fn everything(url: &str) -> Vec<Arc<str>> {
    let mut session = match connect(url).await {
        Ok(session) => session,
        Err(reason) => return vec![reason],
    };
    let mut errors = Vec::new();
    let since = match standing(&mut *session).await {
        Ok(MarkState::Quarantined { since, .. }) => since,
        Ok(state) => panic!("it is in no quarantine: {state:?}"),
        Err(reason) => {
            errors.push(reason);
            Default::default()
        }
    };
    let node = [NodeVerb::Look, NodeVerb::Inspect, NodeVerb::Survey].map(Request::Node);
    let calls: [&[Request]; 18] = [
        &node,
        &[open(since, 5)],
        &[request(acquire(), "a", 1), request(acquire(), "b", 1)],
        &[request(acquire(), "a", 2)],
        &[request(extend(None), "a", 1)],
        &[request(extend(Some(9_000_000_000_000_000)), "a", 1)],
        &[request(heal(), "a", 1)],
        &[request(heal(), "lost", 3)],
        &[request(RELEASE, "a", 1)],
        &[request(RELEASE, "b", 2)],
        &[request(TOMBSTONE, "b", 1)],
        &[request_of(acquire(), &["d", "e"], 1)],
        &[request_of(
            extend(Some(9_000_000_000_000_000)),
            &["d", "e"],
            1,
        )],
        &[request_of(RELEASE, &["d", "e"], 1)],
        &[job(claim(1, 1))],
        &[job(claim(2, 2))],
        &[job(commit(1, 1))],
        &[job(record(1)), job(read())],
    ];
    for requests in calls {
        match session.call(&keyspace(), requests).await {
            Ok(answer) => errors.extend(answer.replies.into_iter().filter_map(Result::err)),
            Err(CallError { reason, .. }) => errors.push(reason),
        }
    }
    errors
}

async fn standing(session: &mut dyn Session) -> Result<MarkState, Arc<str>> {
    let tick = [Request::Node(NodeVerb::Look)];
    let answer = session.call(&keyspace(), &tick).await;
    let answer = answer.map_err(|error| error.reason)?;
    match (answer.standing, answer.replies.into_iter().next()) {
        (Some(standing), _) => Ok(standing.state),
        (None, Some(Err(reason))) => Err(reason),
        (None, other) => panic!("it does not say where it stands: {other:?}"),
    }
}

#[tokio::test]
async fn the_documented_rights_are_enough() {
    let fixture = Fixture::new().await;
    let url = user(&fixture, "lock", &rights());
    let errors = everything(&url).await;
    assert!(errors.is_empty(), "{errors:?}");

    fixture.command(&["FLUSHALL"]);
    let builder = Redlock::builder().nodes([url]).namespace("odd");
    let redlock = builder.build().await.unwrap();
    redlock.dangerous_bless().await;
    let guard = redlock.acquire("resource").await.unwrap();
    guard.extend().await.unwrap();
    guard.release().await.unwrap();
    redlock.close().await;
}

#[tokio::test]
async fn each_right_is_needed_and_named_when_it_is_missing() {
    let fixture = Fixture::new().await;
    for missing in rights() {
        fixture.command(&["FLUSHALL"]);
        let others = rights().into_iter().filter(|right| *right != missing);
        // Open connections keep the rights that a changed user had; so each set of rights has its own user.
        let name = missing.trim_start_matches('+');
        let url = user(&fixture, name, &others.collect::<Vec<_>>());
        let errors = everything(&url).await;
        let spelling = format!("({})", name.to_uppercase());
        let named = |reason: &Arc<str>| reason.contains(&spelling);
        assert!(errors.iter().any(named), "without {missing}: {errors:?}");
        let others: Vec<_> = errors.iter().filter(|reason| !named(reason)).collect();
        assert!(others.is_empty(), "without {missing}: {others:?}");
    }
}

#[tokio::test]
async fn letting_go_takes_no_right_to_look_at_others() {
    let fixture = Fixture::new().await;
    let others = rights().into_iter().filter(|right| *right != "+pttl");
    let url = user(&fixture, "blind", &others.collect::<Vec<_>>());
    let mut session = connect(&url).await.unwrap();
    for keys in [&["a"][..], &["a", "b"], &["a", "b", "c"]] {
        for verb in [RELEASE, TOMBSTONE] {
            let name = |key: &str| format!("{{odd}}:lock:{key}");
            // The last is another's where there are three.
            for (place, key) in keys.iter().enumerate() {
                let owner = if place == 2 { "02" } else { "01" }.repeat(16);
                fixture.command(&["SET", &name(key), &owner]);
            }
            let requests = [request_of(verb, keys, 1)];
            let answer = session.call(&keyspace(), &requests).await.unwrap();
            assert_eq!(answer.replies, [Ok(Reply::Done)], "{verb:?} {keys:?}");
            assert!(!fixture.exists(&name("a")), "{verb:?} {keys:?}");
        }
    }
    // Nothing is its own: it cannot say how long others stay, and is refused from now on all the same.
    fixture.command(&["SET", "{odd}:lock:a", &"02".repeat(16)]);
    let requests = [request_of(TOMBSTONE, &["a", "b"], 3)];
    let answer = session.call(&keyspace(), &requests).await.unwrap();
    let unknown = answer.replies[0].as_ref().unwrap_err();
    assert!(unknown.contains("(PTTL)"), "{unknown}");
    let tombstone = keyspace().tombstone(OwnerId::from_random([3; 16]));
    assert!(fixture.exists(tombstone.as_str()));
}

#[tokio::test]
async fn a_database_number_takes_one_more() {
    let fixture = Fixture::new().await;
    let without = user(&fixture, "without", &rights()) + "/3";
    let errors = everything(&without).await;
    let [reason] = &errors[..] else {
        panic!("{errors:?}");
    };
    assert!(reason.contains("(SELECT)"), "{reason}");
    let with = user(&fixture, "with", &[&rights()[..], &["+select"]].concat()) + "/3";
    let errors = everything(&with).await;
    assert!(errors.is_empty(), "{errors:?}");
}

#[tokio::test]
async fn verbatim_keys_take_their_patterns() {
    let fixture = Fixture::new().await;
    let mut rights = rights();
    rights.extend(["~resource:*", "~{redlock:verbatim}:*"]);
    let builder = Redlock::builder().nodes([user(&fixture, "lock", &rights)]);
    let redlock = builder
        .expert(|expert| expert.verbatim_keys = true)
        .build()
        .await
        .unwrap();
    redlock.dangerous_bless().await;
    let guard = redlock.acquire("resource:7").await.unwrap();
    assert!(fixture.exists("resource:7"));
    guard.release().await.unwrap();
    redlock.close().await;
}

// Shows: G4.
#[tokio::test]
async fn other_keys_are_out_of_reach() {
    let fixture = Fixture::new().await;
    let url = user(&fixture, "lock", &rights());
    let mut session = connect(&url).await.unwrap();
    let elsewhere = Request::Lock {
        verb: acquire(),
        lock: Lock {
            mode: LockMode::Exclusive,
            keys: "{even}:lock:a".into(),
            owner: OwnerId::from_random([1; 16]),
        }
        .into(),
    };
    let error = session.call(&keyspace(), &[elsewhere]).await.unwrap_err();
    assert!(error.reason.starts_with("NOPERM "), "{error:?}");
    assert!(!error.may_have_run && !error.session_lost, "{error:?}");
}

/// Its caller would not hear of a key that it is given by a message.
// Shows: R9.1.
#[tokio::test]
async fn a_release_by_a_user_that_may_not_publish_leaves_the_key_free_and_the_next_caller_in_line()
{
    let mut fixture = Fixture::voting().await;
    let waits = |owner: u8| {
        let line = InLine {
            place: LinePlace {
                came: NodeTime::from_micros(owner.into()),
                client: owner.into(),
            },
            round: owner.into(),
            grant: TTL,
            stay: TTL,
            at_once: true,
            signs: true,
        };
        let verb = Verb::Acquire {
            ttl: TTL,
            proposal: 1,
            block: 1,
            wish: None,
            line: Some(line),
        };
        request(verb, "a", owner)
    };
    let mut heard = connect(&fixture.server.url()).await.unwrap();
    let mut heard = heard.listen(&keyspace(), 2).await.unwrap();
    assert!(taken(&fixture.ask(request(acquire(), "a", 1)).await));
    let sign = Request::Node(NodeVerb::Sign { client: 2 });
    let replies = fixture.call_by_script(&[sign, waits(2)]).await.replies;
    assert!(
        matches!(replies[1], Ok(Reply::InLine { .. })),
        "{replies:?}"
    );

    let barred = user(&fixture, "barred", &rights());
    let mut barred = connect(&barred).await.unwrap();
    let release = [request(RELEASE, "a", 1)];
    let answer = barred.call(&keyspace(), &release).await.unwrap();
    assert_eq!(answer.replies, [Ok(Reply::Done)]);
    assert!(!fixture.exists("{odd}:lock:a"), "it is given to no caller");
    assert!(fixture.exists("{odd}:line:{odd}:lock:a"));

    // The next question of a user with the right does what the release could not.
    let replies = fixture.call_by_script(&[waits(3)]).await.replies;
    assert!(
        matches!(replies[0], Ok(Reply::InLine { .. })),
        "{replies:?}"
    );
    let gift = tokio::time::timeout(TTL, heard.next()).await.unwrap();
    assert_eq!(gift.unwrap().round, 2);
}

#[test]
fn the_guide_names_them() {
    let rights = format!("resetchannels -@all {}", RedisNode::RIGHTS);
    let guide = include_str!("../../docs/guide/servers.md");
    assert!(guide.contains(&rights), "the guide does not say: {rights}");
}

/// Such a server would carry the commands of a transaction out one by one.
// Shows: R2.1.
#[tokio::test]
async fn a_server_without_transactions_is_called_by_the_script() {
    for unknown in ["MULTI", "EXEC"] {
        let options = ServerOptions::default().argument("--rename-command");
        let options = options.argument(unknown).argument("");
        let mut fixture = Fixture::with(options).await;
        fixture.bless().await;
        let taken = fixture.ask(request(acquire(), "a", 1)).await;
        assert!(matches!(taken, Ok(Reply::Taken { .. })), "{taken:?}");
        let stats = fixture.command(&["INFO", "commandstats"]);
        let stats = stats.as_text().unwrap();
        // By no command of a transaction's alone.
        assert!(
            !stats.contains("cmdstat_time:"),
            "without {unknown}: {stats}"
        );
        assert_eq!(fixture.ask(request(RELEASE, "a", 1)).await, Ok(Reply::Done));
    }
}
