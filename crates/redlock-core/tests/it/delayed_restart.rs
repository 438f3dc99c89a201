//! `docker/delayed-restart.sh` reads the longest lease as the client does.

use std::{
    io::{BufRead, BufReader},
    process::Stdio,
    time::Duration,
};

use redlock_core::{Config, Redlock};
use redlock_sandbox::Process;

/// Returns the longest lease of a client with this setting; `None` if it is refused.
async fn client(text: &str) -> Option<Duration> {
    let mut setting = toml::Table::new();
    setting.insert("max_ttl".to_owned(), text.into());
    setting.insert("ttl".to_owned(), "100ms".into());
    let config: Config = setting.try_into().ok()?;
    let builder = Redlock::builder().config(config).in_memory_nodes(1);
    let redlock = builder.build().await.ok()?;
    Some(redlock.max_ttl())
}

/// Returns the longest lease that the script waits for, in milliseconds rounded up; `None` if it is refused.
fn script(text: &str) -> Option<Duration> {
    let mut command = Process::command("sh");
    command
        .arg(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../docker/delayed-restart.sh"
        ))
        .arg("true")
        .env_remove("REDLOCK_FIRST_START")
        .env("REDLOCK_MAX_TTL", text)
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut process = Process::spawn(command).unwrap();
    let mut line = String::new();
    let output = process.take_stdout().unwrap();
    BufReader::new(output).read_line(&mut line).unwrap();
    let (_, rest) = line.split_once("leases of up to ")?;
    let (ms, _) = rest.split_once(" ms that")?;
    Some(Duration::from_millis(ms.parse().unwrap()))
}

#[tokio::test]
async fn the_script_reads_a_duration_as_the_client_does() {
    let durations = [
        "30s",
        "30 s",
        "1m",
        "1m 30s",
        "1m30s",
        " 1h ",
        "1day",
        "24h",
        "500ms",
        "100ms",
        "1.5m",
        "0.25 s",
        "08s",
        "2min 1sec 1millis",
        "1hr",
        "90secs",
    ];
    for text in durations {
        let read = client(text).await;
        assert!(read.is_some(), "{text:?}");
        assert_eq!(script(text), read, "{text:?}");
    }
    let others = [
        "",
        "30",
        "0s",
        "99ms",
        "s",
        "30s s",
        "30S",
        "-30s",
        "1.s",
        ".5s",
        "1.5.5s",
        "25h",
        "1d 1ms",
        "30s;",
        "$(echo 30s)",
        "99999999999999999999s",
        "0x1es",
        "30 s s",
    ];
    for text in others {
        assert_eq!(client(text).await, None, "{text:?}");
        assert_eq!(script(text), None, "{text:?}");
    }
}
