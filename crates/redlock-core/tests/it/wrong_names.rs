//! Nodes that Sentinels or a Cluster name, with one thing wrong: the line of each says what to do.
//!
//! All of it is real: servers and Sentinels in that state.

use std::time::Duration;

use redlock_core::{NodeAnswer, Redlock, RedlockBuilder, node::RedisNode};
use redlock_sandbox::{Server, ServerBinary, ServerOptions};

const SOON: Duration = Duration::from_secs(20);

fn start(options: ServerOptions) -> Server {
    let binary = ServerBinary::find().unwrap_or_else(|error| panic!("{error}"));
    Server::start(&binary, options).unwrap()
}

/// A Sentinel that watches a master at this port under two names.
fn sentinel(master: u16, options: ServerOptions) -> Server {
    let sentinel = start(options.sentinel());
    for name in ["orders", "payments"] {
        let port = master.to_string();
        let watch = ["SENTINEL", "MONITOR", name, "127.0.0.1", &port, "1"];
        sentinel.command(&watch).unwrap();
    }
    sentinel
}

fn url(sentinel: &Server, rest: &str) -> String {
    format!("redis+sentinel://{}/{rest}", sentinel.address())
}

/// Returns what a client says of its one node, until it says all of these words.
async fn says(builder: RedlockBuilder, words: &[&str]) -> String {
    let redlock = builder.connect_lazily().build().await.unwrap();
    let mut last = String::new();
    let said = async {
        loop {
            let report = redlock.node_reports().await.swap_remove(0);
            last = report.to_string();
            if words.iter().all(|word| last.contains(word)) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let said = tokio::time::timeout(SOON, said).await;
    assert!(said.is_ok(), "{words:?} are not all in {last:?}");
    redlock.close().await;
    assert!(!last.contains(['\n', '"']), "{last}");
    last
}

async fn line(url: &str, words: &[&str]) -> String {
    says(Redlock::builder().node(url), words).await
}

#[tokio::test]
async fn a_sentinel_that_wants_a_password_is_told_of_with_its_place_in_the_url() {
    let master = start(ServerOptions::default());
    let sentinel = sentinel(master.port(), ServerOptions::default());
    let words = ["behind the hosts of the URL", "but orders, payments"];
    line(&url(&sentinel, "order"), &words).await;
    sentinel
        .command(&["ACL", "SETUSER", "default", "resetpass", ">hunter2"])
        .unwrap();
    let words = ["it wants a password; write ?sentinel_password="];
    line(&url(&sentinel, "orders"), &words).await;
    let before = url(&sentinel, "orders").replace("://", "://:hunter2@");
    let words = ["the one before the @ is the master's; write ?sentinel_password="];
    let said = line(&before, &words).await;
    assert!(!said.contains("hunter2"), "{said}");
    let wrong = url(&sentinel, "orders?sentinel_password=hunter3");
    let said = line(
        &wrong,
        &["it refuses ?sentinel_user= or ?sentinel_password="],
    )
    .await;
    assert!(!said.contains("hunter3"), "{said}");
}

#[tokio::test]
async fn the_rights_at_a_sentinel_are_enough_and_named_where_one_is_missing() {
    let master = start(ServerOptions::default());
    let sentinel = sentinel(master.port(), ServerOptions::default());
    let rights: Vec<&str> = RedisNode::RIGHTS_FOR_SENTINELS.split(' ').collect();
    let user = |name: &str, rights: &[&str]| {
        let rule = ["ACL", "SETUSER", name, "on", ">pw", "-@all"];
        sentinel.command(&[&rule, rights].concat()).unwrap();
        url(
            &sentinel,
            &format!("orders?sentinel_user={name}&sentinel_password=pw"),
        )
    };
    let enough = Redlock::builder().node(user("enough", &rights));
    // Quarantined as new, and so connected.
    let address = master.address().to_string();
    let said = says(enough, &["may have forgotten leases", &address]).await;
    assert!(said.starts_with("orders@"), "{said}");
    let old = user("old", &["+ping", "+sentinel|get-master-addr-by-name"]);
    let words = ["its user may not ask it", RedisNode::RIGHTS_FOR_SENTINELS];
    line(&old, &words).await;
    let unnamed = user("unnamed", &rights).replace("/orders?", "/order?");
    let words = [
        "it knows no such master; write the name",
        "SENTINEL MASTERS",
    ];
    line(&unnamed, &words).await;
}

#[tokio::test]
async fn an_address_at_which_nothing_answers_is_told_of_with_what_announces_another() {
    // Port 1 on loopback: no server listens there.
    let sentinel = sentinel(1, ServerOptions::default());
    let words = [
        "its server is 127.0.0.1:1: ",
        "refused",
        "; if it runs",
        "replica-announce-ip",
    ];
    line(&url(&sentinel, "orders"), &words).await;
}

/// A firewall drops what is sent: the system would wait for minutes.
#[tokio::test]
async fn an_address_that_swallows_everything_is_told_of_by_name() {
    let silent = start(ServerOptions::default());
    silent.freeze().unwrap();
    let sentinel = sentinel(silent.port(), ServerOptions::default());
    let address = silent.address().to_string();
    let words = [
        "its server is",
        &address,
        "it does not answer",
        "replica-announce-ip",
    ];
    line(&url(&sentinel, "orders"), &words).await;
    silent.thaw().unwrap();
}

#[tokio::test]
async fn a_server_without_wait_is_told_of() {
    let rename = ["--rename-command", "WAIT", ""];
    let server = start(
        rename
            .into_iter()
            .fold(ServerOptions::default(), ServerOptions::argument),
    );
    let builder = Redlock::builder()
        .best_effort(server.url())
        .wait_for_replicas(1);
    says(
        builder,
        &[
            "it does not know WAIT",
            "; give the command its name back",
            "rename-command",
        ],
    )
    .await;
}

#[cfg(feature = "tls-rustls")]
#[tokio::test]
async fn tls_at_one_end_only_is_told_of_in_the_words_of_the_url() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let master = start(ServerOptions::default());
    let plain = sentinel(master.port(), ServerOptions::default());
    let both = url(&plain, "orders").replace("redis+", "rediss+");
    line(&both, &["it does not speak TLS; write ?sentinel_tls=no"]).await;
    let folder = tempfile::tempdir().unwrap();
    let certified = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let files = ["cert.pem", "key.pem"].map(|name| folder.path().join(name));
    std::fs::write(&files[0], certified.cert.pem()).unwrap();
    std::fs::write(&files[1], certified.signing_key.serialize_pem()).unwrap();
    let [certificate, key] = files.each_ref().map(|file| file.to_str().unwrap());
    let free = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = free.local_addr().unwrap().port().to_string();
    drop(free);
    let mut arguments = vec!["--tls-port", &port, "--tls-cert-file", certificate];
    arguments.extend(["--tls-key-file", key, "--tls-ca-cert-file", certificate]);
    let options = arguments
        .into_iter()
        .fold(ServerOptions::default(), ServerOptions::argument);
    let _sentinel = sentinel(master.port(), options);
    let at_tls = format!("redis+sentinel://127.0.0.1:{port}/orders");
    line(&at_tls, &["TLS", "; write ?sentinel_tls=yes"]).await;
}

/// The server of the moment is beside the name, and has no credentials in it.
#[tokio::test]
async fn a_report_names_the_server_that_others_name() {
    let master = start(ServerOptions::default().password("hunter2"));
    let sentinel = sentinel(master.port(), ServerOptions::default());
    let url = url(&sentinel, "orders").replace("://", "://:hunter2@");
    let redlock = Redlock::builder().node(&*url).build().await.unwrap();
    redlock.dangerous_bless().await;
    let report = redlock.node_reports().await.swap_remove(0);
    assert_eq!(report.answer, NodeAnswer::Reachable);
    let address = master.address().to_string();
    assert_eq!(report.server(), Some(&*address));
    let name = format!("orders@{}", sentinel.address());
    assert_eq!(report.to_string(), format!("{name} ({address}): reachable"));
    let plain = Redlock::builder()
        .node("redis://127.0.0.1:1")
        .connect_lazily();
    let plain = plain.build().await.unwrap().node_reports().await;
    assert_eq!(plain[0].server(), None);
}
