//! Settings and keys that are not valid: a typed error that names the field and what would be right.

use std::{convert::Infallible, time::Duration};

use redlock_core::{
    AcquireErrorKind, AcquireOptions, BuildError, BuildErrorKind, Config, Credentials, Expert,
    MemoryNode, NodeConfig, Redlock, RedlockBuilder,
};

const MS: Duration = Duration::from_millis(1);

fn three() -> RedlockBuilder {
    Redlock::builder().in_memory_nodes(3)
}

async fn refused(builder: RedlockBuilder) -> BuildError {
    let error = builder.build().await.expect_err("this is not valid");
    assert_eq!(error.kind(), BuildErrorKind::Misuse, "{error}");
    error
}

#[tokio::test]
async fn no_node_is_refused() {
    let error = refused(Redlock::builder()).await;
    assert_eq!(error.field(), "nodes");
    assert!(error.to_string().contains("give one"), "{error}");
}

/// The client's thread keeps real time, and tokio's jumps ahead of it whenever the test waits.
#[tokio::test(start_paused = true)]
async fn paused_time_without_virtual_time_is_refused_by_its_name() {
    for _ in 0..20 {
        let error = refused(three()).await;
        assert_eq!(error.field(), "virtual_time");
        assert!(error.to_string().contains("paused"), "{error}");
        let lazily = refused(three().connect_lazily()).await;
        assert_eq!(lazily.field(), "virtual_time");
    }
    three().virtual_time().build().await.expect("it is called");
}

#[tokio::test]
async fn real_time_is_not_taken_for_paused() {
    for _ in 0..200 {
        three().build().await.expect("time goes on");
        let lazily = three().connect_lazily().build().await;
        lazily.expect("time goes on");
    }
}

#[tokio::test]
async fn a_malformed_url_is_named_and_not_shown() {
    for url in [
        "",
        "127.0.0.1",
        "http://me:hunter2@host",
        "redis://me:hunter2@host:port",
    ] {
        let error = refused(Redlock::builder().node("redis://127.0.0.1:1").node(url)).await;
        assert_eq!(error.field(), "nodes[1]", "{url}");
        assert!(
            error.to_string().contains("redis://[user:password@]host"),
            "{error}"
        );
        assert!(
            !format!("{error} {error:?}").contains("hunter2"),
            "{error:?}"
        );
    }
}

/// A parser takes what is before the `#` for the address, which is the node's name in every log.
#[tokio::test]
async fn a_url_whose_password_is_not_escaped_is_refused_and_not_shown() {
    for url in [
        "redis://app:4711#x@10.0.0.1",
        "redis://app:4711?x@10.0.0.1",
        "redis://:4711#hunter2@host:6379/0",
    ] {
        let error = refused(Redlock::builder().node(url).node("redis://127.0.0.1:1")).await;
        let text = format!("{error} {error:?}");
        assert!(text.contains("write %23 or %3F"), "{text}");
        assert!(
            !text.contains("4711") && !text.contains("hunter2"),
            "{text}"
        );
        assert_eq!(NodeConfig::from(url).name(), None);
    }
    assert!(
        NodeConfig::from("redis://:a%23b@host?protocol=resp3")
            .name()
            .is_some()
    );
}

/// redis-rs passes over them, and would lock in database 0, or without TLS.
#[tokio::test]
async fn parts_of_a_url_that_mean_nothing_are_refused_with_the_form_for_them() {
    for (url, form) in [
        ("redis://me:hunter2@10.0.0.1?db=2", "redis://host/2"),
        ("redis://me:hunter2@10.0.0.1?ssl=true", "rediss://"),
        ("redis://me:hunter2@10.0.0.1?sslmode=require", "rediss://"),
        ("redis://me:hunter2@10.0.0.1/0?tls=true", "rediss://"),
        ("redis://me:hunter2@10.0.0.1/0#tls", "SSL_CERT_FILE"),
        ("redis://me:hunter2@10.0.0.1/0/1", "redis://host/2"),
        ("unix:///run/redis.sock?database=2", "?db=2"),
    ] {
        let error = refused(Redlock::builder().node(url)).await;
        let text = format!("{error} {error:?}");
        assert_eq!(error.field(), "nodes[0]", "{url}");
        assert!(text.contains(form), "{url}: {text}");
        assert!(!text.contains("hunter2"), "{text}");
        assert_eq!(NodeConfig::from(url).name(), None);
    }
    let socket = NodeConfig::from("unix:///run/redis.sock?db=2&user=app&pass=p");
    let info = socket
        .locate("redlock", Duration::ZERO)
        .await
        .expect("it is a URL");
    assert_eq!(info.redis_settings().db(), 2);
}

#[tokio::test]
async fn a_url_with_a_password_is_refused_beside_a_provider_of_credentials() {
    for url in [
        "redis://:hunter2@host",
        "redis://lock@host",
        "redis+sentinel://lock:hunter2@s1,s2/orders",
        "redis+cluster://:hunter2@c1?votes=3",
    ] {
        let provider = async || Ok::<_, Infallible>(Credentials::password("hunter2"));
        let node = NodeConfig::with_credentials(url, provider);
        let error = refused(three().node(node)).await;
        let text = format!("{error} {error:?}");
        assert_eq!(error.field(), "nodes[3]", "{url}");
        assert!(
            text.contains("a provider of credentials; give one"),
            "{url}: {text}"
        );
        assert!(!text.contains("hunter2"), "{text}");
    }
}

#[tokio::test]
async fn replicas_are_waited_for_by_best_effort_on_a_server_only() {
    let error = refused(three().wait_for_replicas(1)).await;
    assert_eq!(error.field(), "wait_for_replicas");
    assert!(error.to_string().contains("without best_effort"), "{error}");
    let builder = Redlock::builder().best_effort(MemoryNode::new());
    let error = refused(builder.wait_for_replicas(1)).await;
    assert_eq!(error.field(), "wait_for_replicas");
    assert!(error.to_string().contains("no replicas"), "{error}");
}

// Shows: R7.7.
#[tokio::test]
async fn what_trusts_a_restart_is_refused_where_sentinels_promote_replicas() {
    let set = |expert: &mut Expert| expert.dangerous_trust_persistence = true;
    let builder = Redlock::builder().node("redis+sentinel://s1,s2,s3/orders");
    let error = refused(builder.expert(set)).await;
    assert_eq!(error.field(), "expert");
    assert!(error.to_string().contains("Sentinels"), "{error}");
    let plain = Redlock::builder().node("redis://10.0.0.1").expert(set);
    assert!(plain.check().is_ok());
    let cluster = Redlock::builder().node("redis+cluster://c1,c2");
    let error = refused(cluster.expert(set)).await;
    assert!(error.to_string().contains("a Cluster"), "{error}");
}

#[tokio::test]
async fn a_cluster_is_refused_where_it_cannot_be_meant() {
    let url = "redis+cluster://c1,c2?votes=3";
    let verbatim = Redlock::builder().node(url);
    let verbatim = verbatim.expert(|expert| expert.verbatim_keys = true);
    let error = refused(verbatim).await;
    assert!(error.to_string().contains("verbatim_keys"), "{error}");
    let error = refused(Redlock::builder().best_effort(url)).await;
    assert_eq!(error.field(), "best_effort");
    let twice = Redlock::builder().nodes([url, "redis+cluster://c2,c1?vote=2of3"]);
    let error = refused(twice).await;
    assert_eq!(error.field(), "nodes[3]");
    let alone = redlock_core::node::RedisNode::at(url).unwrap_err();
    assert!(alone.to_string().contains("namespace"), "{alone}");
    let two = Redlock::builder().node("redis+cluster://c1?votes=2");
    assert!(refused(two).await.to_string().contains("?votes=3"));
}

#[tokio::test]
async fn best_effort_is_for_one_server() {
    let three = ["redis://10.0.0.1", "redis://10.0.0.2"];
    let builder = Redlock::builder().nodes(three);
    let error = refused(builder.best_effort("redis://10.0.0.3")).await;
    assert_eq!(error.field(), "best_effort");
    assert!(error.to_string().contains("several nodes"), "{error}");
}

#[tokio::test]
async fn s11_one_server_has_one_vote() {
    let twice = [
        "redis://127.0.0.1:7001",
        "redis://127.0.0.1:7002",
        "redis://:pw@localhost:7001/2",
    ];
    let error = refused(Redlock::builder().nodes(twice)).await;
    assert_eq!(error.field(), "nodes[2]");
    assert!(
        error
            .to_string()
            .contains("the same server as nodes[0], 127.0.0.1:7001"),
        "{error}"
    );
    assert!(!error.to_string().contains("pw"), "{error}");

    let node = MemoryNode::new();
    let error = refused(Redlock::builder().nodes([node.clone(), node])).await;
    assert_eq!(error.field(), "nodes[1]");
    let other = || NodeConfig::other(MemoryNode::new());
    assert!(
        Redlock::builder()
            .nodes([other(), other()])
            .build()
            .await
            .is_ok()
    );
}

#[tokio::test]
async fn an_unreachable_majority_is_told_with_a_line_per_node() {
    // Port 1 on loopback: no server listens there.
    let url = "redis://me:hunter2@127.0.0.1:1";
    let error = Redlock::builder()
        .node(url)
        .build()
        .await
        .expect_err("nobody listens");
    assert_eq!(
        (error.kind(), error.field()),
        (BuildErrorKind::NoQuorum, "nodes")
    );
    let text = error.to_string();
    assert!(text.contains("\n  127.0.0.1:1: "), "{text}");
    assert!(text.to_lowercase().contains("refused"), "{text}");
    assert!(
        !format!("{text} {error:?}").contains("hunter2"),
        "{error:?}"
    );
}

#[tokio::test]
async fn times_out_of_range_are_named_with_the_range() {
    let cases = [
        ("ttl", three().ttl(99 * MS)),
        ("ttl", three().ttl(30_001 * MS)),
        ("max_ttl", three().max_ttl(99 * MS)),
        ("max_ttl", three().max_ttl(Duration::from_secs(86_401))),
        ("node_timeout", three().node_timeout(Duration::ZERO)),
        (
            "connect_timeout",
            three().connect_timeout(Duration::from_secs(61)),
        ),
        ("clock_rate_error", three().clock_rate_error(0.5)),
        ("clock_rate_error", three().clock_rate_error(f64::NAN)),
    ];
    for (field, builder) in cases {
        let error = refused(builder).await;
        assert_eq!(error.field(), field, "{error}");
        assert!(error.to_string().contains("between"), "{error}");
    }
    for (builder, words) in [
        (three().max_ttl(5_000 * MS), "10s, the default, is not"),
        (
            three().max_ttl(5_000 * MS).ttl(6_000 * MS),
            "6s is not between",
        ),
    ] {
        let checked = builder.check().unwrap_err().to_string();
        let error = refused(builder).await.to_string();
        assert_eq!(checked, error);
        for words in [words, "max_ttl, which is 5s"] {
            assert!(error.contains(words), "{error}");
        }
    }
    let narrow = three().ttl(100 * MS).clock_rate_error(0.25);
    assert!(narrow.build().await.is_ok());
}

#[tokio::test]
async fn namespaces_are_checked() {
    for namespace in ["", "a:b", "{a}", "a b"] {
        let error = refused(three().namespace(namespace)).await;
        assert_eq!(error.field(), "namespace");
    }
    let error = refused(
        three()
            .namespace("billing")
            .expert(|expert| expert.verbatim_keys = true),
    )
    .await;
    assert_eq!(error.field(), "namespace");
    for part in [
        "\"billing\"",
        "REDLOCK_NAMESPACE",
        "config.namespace = None",
    ] {
        assert!(error.to_string().contains(part), "{error}");
    }
}

#[tokio::test]
async fn a_configuration_is_checked_like_the_builder() {
    let config: Config = toml::from_str("ttl = '1ms'\nnodes = ['redis://localhost']").unwrap();
    assert_eq!(
        refused(Redlock::builder().config(config)).await.field(),
        "ttl"
    );
    let both = r#"nodes = [{ url = "redis://a", connection = { addr = { Tcp = ["b", 1] }, db = 0, protocol = "RESP2" } }]"#;
    let config: Config = toml::from_str(both).unwrap();
    let error = refused(Redlock::builder().config(config)).await;
    assert_eq!(error.field(), "nodes[0]");
    assert!(error.to_string().contains("both"), "{error}");
}

#[tokio::test]
async fn keys_and_options_are_checked_before_anything_is_asked() {
    let redlock = three().build().await.unwrap();
    for key in ["".to_owned(), "x".repeat(513), "a\0b".to_owned()] {
        let error = redlock.acquire(&key).await.unwrap_err();
        assert_eq!(error.kind(), AcquireErrorKind::Misuse);
        let said = error.to_string();
        assert!(said.contains(": resource key"), "{said}");
    }
    for ttl in [99 * MS, 30_001 * MS, Duration::MAX] {
        let error = redlock
            .acquire_with("key", AcquireOptions::new().ttl(ttl))
            .await
            .unwrap_err();
        assert_eq!(error.kind(), AcquireErrorKind::Misuse);
        assert!(error.to_string().contains("max_ttl of 30s"), "{error}");
    }
}

#[tokio::test]
async fn debug_shows_no_password_and_no_key() {
    let builder = Redlock::builder()
        .node("redis://me:hunter2@127.0.0.1:1")
        .connect_lazily();
    assert!(!format!("{builder:?}").contains("hunter2"));
    let redlock = builder.build().await.unwrap();
    assert!(!format!("{redlock:?}").contains("hunter2"));
    let memory = three().build().await.unwrap();
    let guard = memory.acquire("a secret name").await.unwrap();
    assert!(!format!("{guard:?} {:?}", guard.lease()).contains("secret"));
}

#[tokio::test]
async fn an_error_that_main_returns_is_printed_in_its_words() {
    let error = refused(three().ttl(MS)).await;
    assert_eq!(format!("{error:?}"), error.to_string());
    let redlock = three().build().await.unwrap();
    let _guard = redlock.acquire("a").await.unwrap();
    let error = redlock.try_acquire("a").await.unwrap_err();
    assert_eq!(format!("{error:?}"), error.to_string());
}
