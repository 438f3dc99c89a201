//! The files of `docker/` agree with each other, and with how long a master does not vote.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::fs;

const FILES: [&str; 2] = ["compose.yaml", "compose.delayed.yaml"];

#[test]
fn a_health_check_asks_whether_a_master_votes_where_the_demo_locks() {
    let compose = read("compose.yaml");
    let namespace = &values(&compose, "REDLOCK_NAMESPACE")[0];
    let asked = format!("[\"CMD\", \"sh\", \"/usr/local/bin/votes.sh\", \"{namespace}\"]");
    assert_eq!(values(&compose, "test"), [asked]);
    assert!(!compose.to_lowercase().contains("redis-cli ping"));
}

#[test]
fn a_health_check_is_patient_for_longer_than_a_master_does_not_vote() {
    let compose = read("compose.yaml");
    let ttl = seconds(&values(&compose, "REDLOCK_MAX_TTL"));
    // 2 % for clocks, and two steps of a second, and what a client needs to see it.
    let quarantine = ttl * 1_020 + 2_000 + 2_000;
    assert!(seconds(&values(&compose, "start_period")) * 1_000 > quarantine);

    let delayed = read("compose.delayed.yaml");
    assert_eq!(seconds(&values(&delayed, "REDLOCK_MAX_TTL")), ttl);
    let delay = ttl * 1_010 + 2 + 2_000;
    assert!(seconds(&values(&delayed, "start_period")) * 1_000 > delay + quarantine);
}

#[test]
fn one_guard_is_enough_where_all_clients_are_ours() {
    let compose = read("compose.yaml");
    let lines = compose.lines().filter(|line| !line.trim().starts_with('#'));
    let delays =
        lines.filter(|line| line.contains("delayed-restart") || line.contains("entrypoint"));
    assert_eq!(delays.count(), 0);
    // Nothing waits for masters that vote only once it looks at them.
    assert!(!compose.contains("service_healthy"));
}

#[test]
fn the_demo_addresses_each_of_five_masters_by_its_own_name() {
    let compose = read("compose.yaml");
    let masters = services(&compose);
    assert_eq!(masters.len(), 5);
    let expected: Vec<_> = masters
        .iter()
        .map(|name| format!("redis://{name}:6379"))
        .collect();
    assert_eq!(values(&compose, "REDLOCK_NODES"), [expected.join(",")]);
    for name in masters {
        assert!(values(&compose, &name).contains(&"{ condition: service_started }".to_owned()));
        let delayed = values(&read("compose.delayed.yaml"), &name);
        assert_eq!(delayed, ["*delayed"], "{name}");
    }
}

#[test]
fn every_file_they_mount_is_in_the_repository() {
    let mut mounted = Vec::new();
    for file in FILES {
        let compose = read(file);
        let names = compose
            .lines()
            .filter_map(|line| line.trim().strip_prefix("- ./")?.split(':').next());
        mounted.extend(names.map(str::to_owned));
    }
    assert_eq!(mounted, ["votes.sh", "redis.conf", "delayed-restart.sh"]);
    for file in mounted {
        fs::metadata(path(&file)).unwrap();
    }
}

/// The masters by name.
fn services(compose: &str) -> Vec<String> {
    let names = compose
        .lines()
        .filter_map(|line| line.strip_prefix("  ")?.strip_suffix(':'));
    let masters = names.filter(|name| name.starts_with("redis-"));
    masters.map(str::to_owned).collect()
}

/// The values of a key, wherever it stands, without quotes.
fn values(compose: &str, key: &str) -> Vec<String> {
    compose
        .lines()
        .filter_map(|line| line.trim().strip_prefix(key)?.strip_prefix(": "))
        .map(|value| {
            if value.starts_with('"') {
                value.trim_matches('"').to_owned()
            } else {
                value.to_owned()
            }
        })
        .collect()
}

/// The one value there is, such as `30s`, as a number.
fn seconds(values: &[String]) -> u64 {
    assert_eq!(values.len(), 1, "{values:?}");
    values[0].strip_suffix('s').unwrap().parse().unwrap()
}

fn read(file: &str) -> String {
    fs::read_to_string(path(file)).unwrap()
}

fn path(file: &str) -> String {
    format!("{}/../../docker/{file}", env!("CARGO_MANIFEST_DIR"))
}
