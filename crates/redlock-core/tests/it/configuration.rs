//! Settings from a file, and nodes that are named in one.

use std::time::Duration;

use redlock_core::{Config, MemoryNode, NodeConfig};

/// Returns the error of a file with this text, in which `hunter2` or 731731 is a password.
fn refused(text: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("redlock.toml");
    std::fs::write(&path, text).unwrap();
    let error = Config::from_file(&path).unwrap_err().to_string();
    assert!(
        !error.contains("hunter2") && !error.contains("731731"),
        "{error}"
    );
    let place = format!("{}:", path.display());
    error
        .strip_prefix(&place)
        .expect("it names the file")
        .to_owned()
}

#[test]
fn the_error_of_a_file_names_the_line_and_the_setting_and_never_repeats_a_value() {
    let url = "redis://me:hunter2@a";
    let deep =
        "[{ url = 'redis://a' },\n{ connection = { addr = { Tcp = ['a', 1] }, db = 0, password = ";
    for (text, expected) in [
        (
            format!("nodes = ['{url}']\nttl = 'soon'"),
            "2: ttl: invalid value: string, expected a time such as 30s",
        ),
        (
            format!("nodes = ['{url}']\nttl = 731731"),
            "2: ttl: invalid type: integer, expected a time such as 30s",
        ),
        (
            format!("node = ['{url}']"),
            "1: node: unknown field `node`, expected one of `nodes`",
        ),
        (
            format!("[expert]\n'{url}' = 3"),
            "2: expert: unknown field, expected one of `verbatim_keys`",
        ),
        (
            "[expert]\ndangerous_trust_delayed_restarts = true".to_owned(),
            "2: expert.dangerous_trust_delayed_restarts: was removed; leave it out: ",
        ),
        (
            "[expert]\naccept_replicas = false".to_owned(),
            "2: expert.accept_replicas: was removed; leave it out, and name the Sentinels",
        ),
        (
            format!("ttl = '{url}'"),
            "1: ttl: invalid value: string, expected a time",
        ),
        (
            "guarantee = 'hunter2'".to_owned(),
            "1: guarantee: unknown word, expected `quorum` or `best_effort`",
        ),
        (
            "nodes = [\n'redis://a',\n{ url = 'redis://b', password = 'hunter2' }]".to_owned(),
            "3: nodes[1].password: unknown field `password`, expected one of `url`",
        ),
        (
            format!("nodes = {deep}731731 }} }}]"),
            "2: nodes[1].connection: invalid type: integer, expected a string",
        ),
        (format!("nodes = [\n'{url}'\n'{url}']"), "3: "),
        (format!("nodes = ['{url}\nttl = '3s'"), "2: ttl: "),
        ("label = \"\"\"\nhunter2=\\q\n\"\"\"".to_owned(), "2: "),
        ("ttl = 5s".to_owned(), "1: ttl: "),
    ] {
        let error = refused(&text);
        assert!(error.starts_with(expected), "{text}: {error}");
    }
    let missing = Config::from_file("/nowhere/redlock.toml").unwrap_err();
    let missing = missing.to_string();
    assert!(
        missing.starts_with("/nowhere/redlock.toml: cannot be read: "),
        "{missing}"
    );
}

/// Returns the error of a text without a file.
fn wrong(text: &str) -> String {
    let error = toml::from_str::<Config>(text).unwrap_err();
    error.to_string()
}

#[test]
fn a_bad_setting_in_a_file_is_named() {
    for (text, named) in [
        ("tll = '3s'", &["tll", "ttl"][..]),
        (
            "[expert]\ntrust_persistence = true",
            &["`trust_persistence`", "dangerous_trust_persistence"],
        ),
        ("verbatim_keys = true", &["`verbatim_keys`", "`expert`"]),
        ("nodes = [3]", &["a URL such as"]),
        ("ttl = 'soon'", &["ttl"]),
    ] {
        let error = wrong(text);
        assert!(named.iter().all(|name| error.contains(name)), "{error}");
    }
}

/// A password in the wrong place would be no password.
#[test]
fn a_bad_setting_of_a_node_is_named() {
    let error = wrong("nodes = [{ url = 'redis://a', password = 'hunter2' }]");
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
