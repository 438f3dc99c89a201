//! Nodes that refuse us say why, and nothing that we print has a password in it.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::{fmt::Debug, time::Duration};

use redlock_core::{AcquireErrorKind, BuildErrorKind, NodeConfig, Redlock};
use redlock_sandbox::{Server, ServerOptions};
use redlock_tests::{Logs, Nodes, builder, eventually};

const TTL: Duration = Duration::from_secs(10);
const RIGHT: &str = "r1ght-0pen-sesame";
const WRONG: &str = "wr0ng-open-barley";

/// What was printed, by anyone, to look for passwords in.
struct Printed(Logs, String);

impl Printed {
    fn add(&mut self, what: &(impl Debug + ?Sized)) {
        self.1 += &format!("{what:?}\n{what:#?}\n");
    }

    fn has_no_password(&self) {
        let all = format!("{}{}", self.1, self.0.text());
        for secret in [RIGHT, WRONG] {
            let found = all.lines().find(|line| line.contains(secret));
            assert!(found.is_none(), "a password is printed: {found:?}");
        }
    }
}

/// The error of building a client of these URLs, and of acquiring with one that connects lazily.
async fn refused(urls: Vec<String>, printed: &mut Printed) -> [String; 2] {
    let configs: Vec<NodeConfig> = urls.iter().map(NodeConfig::from).collect();
    printed.add(&configs);
    let described = builder(urls.clone(), TTL);
    printed.add(&described);
    let error = described.build().await.unwrap_err();
    assert_eq!(error.kind(), BuildErrorKind::NoQuorum, "{error}");
    printed.add(&error);

    let lazy = builder(urls, TTL).connect_lazily().build().await.unwrap();
    printed.add(&lazy);
    let limit = Duration::from_secs(5);
    let failed = last_failure(&lazy, limit).await;
    printed.add(&failed);
    lazy.close().await;
    [error.to_string(), failed]
}

/// The error of an acquire, once all nodes have refused to be connected to.
async fn last_failure(redlock: &Redlock, limit: Duration) -> String {
    let until = redlock_tests::now() + limit;
    loop {
        let error = redlock.try_acquire("a").await.unwrap_err();
        assert_eq!(error.kind(), AcquireErrorKind::NoQuorum, "{error}");
        let text = format!("{error}\n{error:?}");
        if !text.contains("not connected yet") || redlock_tests::now() > until {
            return text;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_refuses_us_is_named_with_its_reason_and_no_password() {
    let mut printed = Printed(Logs::capture(), String::new());
    let nodes = Nodes::start_with(3, &ServerOptions::default().password(RIGHT));
    let url = |node: usize, user: &str| format!("redis://{user}{}", nodes[node].address());
    let urls = |user: &str| (0..3).map(|node| url(node, user)).collect::<Vec<_>>();
    nodes.ask_all(&[
        "ACL",
        "SETUSER",
        "no-scripts",
        "on",
        &format!(">{RIGHT}"),
        "~*",
        "+@all",
        "-@scripting",
    ]);
    nodes.ask_all(&[
        "ACL",
        "SETUSER",
        "no-keys",
        "on",
        &format!(">{RIGHT}"),
        "~other:*",
        "+@all",
    ]);

    for (user, reason) in [
        (format!(":{WRONG}@"), "WRONGPASS"),
        (format!("nobody:{RIGHT}@"), "WRONGPASS"),
        (String::new(), "NOAUTH"),
        (format!("no-scripts:{RIGHT}@"), "NOPERM"),
    ] {
        for error in refused(urls(&user), &mut printed).await {
            // An acquire fails when a majority has; what the last one says is not awaited.
            let named = |node: &&Server| {
                let address = node.address().to_string();
                let line = error.lines().find(|line| line.contains(&address));
                let line = line.unwrap_or_else(|| panic!("{address} is not named: {error}"));
                // The client library has words of its own for some of the server's codes.
                line.contains(reason) || line.contains("authentication failed")
            };
            assert!(nodes.iter().filter(named).count() >= 2, "{reason}: {error}");
        }
    }

    // This user may connect and run scripts, but not touch our keys.
    let error = builder(urls(&format!("no-keys:{RIGHT}@")), TTL)
        .build()
        .await
        .unwrap_err();
    assert_eq!(error.kind(), BuildErrorKind::NoQuorum, "{error}");
    assert_eq!(error.to_string().matches("NOPERM").count(), 3, "{error}");
    printed.add(&error);

    // One node that refuses us is a minority: the others go on, and the log says which and why.
    let mixed = [
        url(0, &format!(":{WRONG}@")),
        nodes[1].url(),
        nodes[2].url(),
    ];
    let redlock = builder(mixed, TTL).build().await.unwrap();
    redlock.dangerous_bless().await; // the nodes are new
    let guard = redlock.try_acquire("a").await.unwrap();
    printed.add(&guard);
    guard.release().await.unwrap();
    let address = nodes[0].address().to_string();
    let logged = |text: &String| {
        text.lines()
            .any(|line| line.contains("WARN") && line.contains(&address))
    };
    eventually("it is logged", TTL / 2, || printed.0.text(), logged).await;

    // A URL that cannot be read is not repeated.
    for bad in [
        format!("redis://:{RIGHT}@[::1"),
        format!("http://me:{RIGHT}@localhost"),
    ] {
        let error = builder([bad], TTL).build().await.unwrap_err();
        assert_eq!(error.kind(), BuildErrorKind::Misuse, "{error}");
        assert_eq!(error.field(), "nodes[0]");
        printed.add(&error);
        printed.add(error.to_string().as_str());
    }
    printed.has_no_password();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_without_a_password_needs_none_in_the_url() {
    let nodes = Nodes::start_with(3, &ServerOptions::default().password(RIGHT));
    nodes.ask_all(&["ACL", "SETUSER", "app", "on", "nopass", "~*", "+@all"]);
    let urls = (0..3).map(|node| format!("redis://app@{}", nodes[node].address()));
    let redlock = builder(urls, TTL).build().await.unwrap();
    redlock.dangerous_bless().await;
    let guard = redlock.try_acquire("a").await.unwrap();
    assert!(nodes.ask(0, &["CLIENT", "LIST"]).contains(" user=app "));
    guard.release().await.unwrap();
}
