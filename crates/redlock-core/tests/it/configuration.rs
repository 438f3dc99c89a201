//! Settings from a file, and nodes that are named in one.

use std::time::Duration;

use redlock_core::{Config, MemoryNode, NodeConfig};

#[test]
fn a_bad_setting_in_a_file_is_named() {
    let error = toml::from_str::<Config>("tll = '3s'")
        .unwrap_err()
        .to_string();
    assert!(error.contains("tll") && error.contains("ttl"), "{error}");
    let error = toml::from_str::<Config>("[expert]\ntrust_persistence = true")
        .unwrap_err()
        .to_string();
    let meant = "dangerous_trust_persistence";
    assert!(
        error.contains("`trust_persistence`") && error.contains(meant),
        "{error}"
    );
    let error = toml::from_str::<Config>("verbatim_keys = true")
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("`verbatim_keys`") && error.contains("`expert`"),
        "{error}"
    );
    let error = toml::from_str::<Config>("nodes = [3]")
        .unwrap_err()
        .to_string();
    assert!(error.contains("a URL such as"), "{error}");
    let error = toml::from_str::<Config>("ttl = 'soon'")
        .unwrap_err()
        .to_string();
    assert!(error.contains("ttl"), "{error}");
}

/// A password in the wrong place would be no password.
#[test]
fn a_bad_setting_of_a_node_is_named() {
    let error = toml::from_str::<Config>("nodes = [{ url = 'redis://a', password = 'hunter2' }]")
        .unwrap_err()
        .to_string();
    assert!(error.contains("unknown field `password`"), "{error}");
    let table = "nodes = [{ url = 'redis://a', pool = { max_size = 2, timeouts = {} } }]";
    let config = toml::from_str::<Config>(table).unwrap();
    assert_eq!(config.nodes[0].name().as_deref(), Some("a:6379"));
}

#[tokio::test]
async fn a_node_is_named_without_its_password_and_connected_to_with_it() {
    let node = NodeConfig::from("redis://me:hunter2@Example.com:7000/1");
    assert_eq!(node.name().as_deref(), Some("example.com:7000"));
    let info = node.locate("redlock", Duration::ZERO).await.unwrap();
    assert_eq!(info.redis_settings().password(), Some("hunter2"));
    assert!(!format!("{info:?}").contains("hunter2"));
    let malformed = NodeConfig::from("me:hunter2@host");
    let why = malformed
        .locate("redlock", Duration::ZERO)
        .await
        .unwrap_err();
    assert!(
        !why.contains("hunter2") && malformed.name().is_none(),
        "{why}"
    );
    assert!(NodeConfig::from(MemoryNode::new()).name().is_some());
}

#[test]
fn debug_shows_no_password() {
    let url = "redis://me:hunter2@localhost";
    let mut config = Config::default();
    config.nodes = vec![url.into(), deadpool_redis::Config::from_url(url).into()];
    assert!(!format!("{config:?}").contains("hunter2"));
}
