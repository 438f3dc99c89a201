//! `docker/compose.yaml` agrees with itself and with the delay of its masters.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::fs;

#[test]
fn a_health_check_is_patient_for_longer_than_the_delay() {
    let compose = compose();
    let ttl = seconds(&values(&compose, "REDLOCK_MAX_TTL"));
    let start_period = seconds(&values(&compose, "start_period"));
    let delay_in_ms = ttl * 1_010 + 2 + 1_000;
    assert!(start_period * 1_000 > delay_in_ms);
}

#[test]
fn the_demo_addresses_each_of_five_masters_by_its_own_name() {
    let compose = compose();
    let masters: Vec<_> = compose
        .lines()
        .filter_map(|line| line.strip_prefix("  ")?.strip_suffix(':'))
        .filter(|name| name.starts_with("redis-"))
        .collect();
    assert_eq!(masters.len(), 5);
    let expected: Vec<_> = masters
        .iter()
        .map(|name| format!("redis://{name}:6379"))
        .collect();
    assert_eq!(values(&compose, "REDLOCK_NODES"), [expected.join(",")]);
    for name in masters {
        assert!(values(&compose, name).contains(&"{ condition: service_healthy }".to_owned()));
    }
}

#[test]
fn every_file_it_mounts_is_in_the_repository() {
    let mounted: Vec<_> = compose()
        .lines()
        .filter_map(|line| {
            Some(
                line.trim()
                    .strip_prefix("- ./")?
                    .split(':')
                    .next()?
                    .to_owned(),
            )
        })
        .collect();
    assert_eq!(mounted, ["delayed-restart.sh", "redis.conf"]);
    for file in mounted {
        fs::metadata(path(&file)).unwrap();
    }
}

/// The values of a key, wherever it stands, without quotes.
fn values(compose: &str, key: &str) -> Vec<String> {
    compose
        .lines()
        .filter_map(|line| line.trim().strip_prefix(key)?.strip_prefix(": "))
        .map(|value| value.trim_matches('"').to_owned())
        .collect()
}

/// The one value there is, such as `30s`, as a number.
fn seconds(values: &[String]) -> u64 {
    assert_eq!(values.len(), 1, "{values:?}");
    values[0].strip_suffix('s').unwrap().parse().unwrap()
}

fn compose() -> String {
    fs::read_to_string(path("compose.yaml")).unwrap()
}

fn path(file: &str) -> String {
    format!("{}/../../docker/{file}", env!("CARGO_MANIFEST_DIR"))
}
