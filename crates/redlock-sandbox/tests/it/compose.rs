//! The files of `docker/` agree with each other.

use std::fs;

#[test]
fn a_health_check_asks_whether_a_master_votes_where_the_demo_locks() {
    let compose = read("compose.yaml");
    let namespace = &values(&compose, "REDLOCK_NAMESPACE")[0];
    let asked = format!("[\"CMD\", \"sh\", \"/usr/local/bin/votes.sh\", \"{namespace}\"]");
    assert_eq!(values(&compose, "test"), [asked]);
    assert!(!compose.to_lowercase().contains("redis-cli ping"));
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
fn prometheus_asks_the_watch_and_loads_the_alerts_that_are_mounted() {
    let compose = read("compose.yaml");
    let watch = service(&compose, "watch");
    let [command] = &values(&watch, "command")[..] else {
        panic!("{watch}");
    };
    let (_, address) = command.split_once("\"--listen\", \"").unwrap();
    let port = address.split(['"', ':']).nth(1).unwrap();
    // At every address of its container, because another one asks.
    assert_eq!(
        *command,
        format!("[\"watch\", \"--listen\", \"0.0.0.0:{port}\"]")
    );

    let prometheus = read("prometheus/prometheus.yml");
    let targets = values(&prometheus, "- targets");
    assert_eq!(targets, [format!("[\"watch:{port}\"]")]);
    // `/metrics`, which is what the watch serves, is what Prometheus asks for by default.
    assert!(!prometheus.contains("metrics_path"));
    let mounts = service(&compose, "prometheus");
    for file in ["prometheus.yml", "alerts.yml"] {
        let mount = format!("- ./prometheus/{file}:/etc/prometheus/{file}:ro");
        assert!(mounts.contains(&mount), "{mounts}");
    }
    assert!(prometheus.contains("rule_files:\n  - alerts.yml\n"));
}

#[test]
fn grafana_asks_prometheus_and_finds_the_dashboard_that_is_mounted() {
    let mounts = service(&read("compose.yaml"), "grafana");
    let datasources = read("grafana/datasources.yaml");
    assert_eq!(values(&datasources, "url"), ["http://prometheus:9090"]);
    // The dashboard names no data source but the one that is chosen, at first the default.
    assert_eq!(values(&datasources, "isDefault"), ["true"]);
    let [folder] = &values(&read("grafana/dashboards.yaml"), "path")[..] else {
        panic!("one folder");
    };
    for (file, place) in [
        ("redlock.json", format!("{folder}/redlock.json")),
        (
            "datasources.yaml",
            "/etc/grafana/provisioning/datasources/redlock.yaml".to_owned(),
        ),
        (
            "dashboards.yaml",
            "/etc/grafana/provisioning/dashboards/redlock.yaml".to_owned(),
        ),
    ] {
        let mount = format!("- ./grafana/{file}:{place}:ro");
        assert!(mounts.contains(&mount), "{mount}: {mounts}");
    }
}

#[test]
fn what_is_not_the_demo_comes_with_a_profile_and_is_open_to_this_machine_only() {
    let compose = read("compose.yaml");
    for name in ["watch", "prometheus", "grafana"] {
        let service = service(&compose, name);
        assert_eq!(values(&service, "profiles"), ["[\"metrics\"]"], "{name}");
    }
    let published = compose.lines().map(str::trim);
    let published: Vec<_> = published
        .filter_map(|line| line.strip_prefix("- \""))
        .collect();
    assert_eq!(published.len(), 2, "{published:?}");
    for port in published {
        assert!(port.starts_with("127.0.0.1:"), "{port}");
    }
}

#[test]
fn each_image_is_built_of_a_package_by_a_stage_of_its_name() {
    let dockerfile = read("Dockerfile");
    let targets = values(&read("compose.yaml"), "target");
    assert_eq!(targets, ["demo", "redlock"]);
    for target in targets {
        let stage = |name: &str| dockerfile.find(&format!(" AS {name}\n")).unwrap();
        assert!(stage(&format!("build-{target}")) < stage(&target));
        let start = stage(&format!("build-{target}"));
        let (_, package) = dockerfile[start..].split_once("--package ").unwrap();
        let (package, _) = package.split_once('\n').unwrap();
        let folder = ["../examples", "../crates"]
            .iter()
            .map(|folder| path(folder));
        let is_there = |folder: String| fs::metadata(format!("{folder}/{package}")).is_ok();
        assert!(folder.into_iter().any(is_there), "{package}");
    }
}

/// The lines of one service.
fn service(compose: &str, name: &str) -> String {
    let lines = compose.lines();
    let behind = lines
        .skip_while(|line| *line != format!("  {name}:"))
        .skip(1);
    let own = behind.take_while(|line| line.is_empty() || line.starts_with("    "));
    let own: Vec<_> = own.collect();
    assert!(!own.is_empty(), "{name}");
    own.join("\n")
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

fn read(file: &str) -> String {
    fs::read_to_string(path(file)).unwrap()
}

fn path(file: &str) -> String {
    format!("{}/../../docker/{file}", env!("CARGO_MANIFEST_DIR"))
}
