//! The dashboard and the alerts ask for what the code measures, by names that it has.

use std::{fs, path::Path};

use redlock_core::metrics::{Kind, Metric};

fn read(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn all() -> Vec<Metric> {
    let all = [
        redlock_core::metrics::ALL,
        redlock_cron::metrics::ALL,
        redlock_tower::metrics::ALL,
    ];
    all.concat()
}

/// The metric whose series has this name.
fn of<'a>(all: &'a [Metric], series: &str) -> Option<&'a Metric> {
    let ends = ["_bucket", "_sum", "_count"];
    let base = ends.iter().find_map(|end| series.strip_suffix(end));
    let is_histogram = |metric: &&Metric| metric.kind == Kind::Histogram;
    let histogram = base.and_then(|base| all.iter().find(|metric| metric.name == base));
    let other = || all.iter().find(|metric| metric.name == series);
    let histogram = histogram.filter(is_histogram);
    histogram.or_else(|| other().filter(|metric| !is_histogram(metric)))
}

/// The series that an expression asks for, each with the labels by which it selects some of them.
fn series(expression: &str) -> Vec<(String, Vec<String>)> {
    let is_of_a_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut found = Vec::new();
    let mut rest = expression;
    while let Some(at) = rest.find("redlock_") {
        let begins = !rest[..at].ends_with(is_of_a_name);
        let name = &rest[at..];
        let (name, behind) = name.split_at(name.find(|c| !is_of_a_name(c)).unwrap_or(name.len()));
        let selector = behind.strip_prefix('{').and_then(|s| s.split_once('}'));
        let selector = selector.map_or("", |(selector, _)| selector);
        let labels = selector.split(", ").filter(|label| !label.is_empty());
        let labels = labels.map(|label| {
            let end = label.find(['=', '!']).expect("a label has a value");
            label[..end].to_owned()
        });
        if begins {
            found.push((name.to_owned(), labels.collect()));
        }
        rest = behind;
    }
    found
}

/// The expressions of a file, without what JSON and YAML put around them.
fn expressions(text: &str) -> Vec<String> {
    let lines = text.lines().map(str::trim_start);
    let expressions = lines.filter(|line| {
        let keys = ["\"expr\":", "\"query\": \"label_values", "expr:"];
        keys.iter().any(|key| line.starts_with(key))
    });
    expressions.map(|line| line.replace('\\', "")).collect()
}

#[test]
fn dashboard_and_alerts_name_what_there_is() {
    let all = all();
    let mut named = Vec::new();
    for path in [
        "docker/grafana/redlock.json",
        "docker/prometheus/alerts.yml",
    ] {
        let expressions = expressions(&read(path));
        assert!(expressions.len() > 10, "{path}: {expressions:?}");
        for expression in expressions {
            for (name, labels) in series(&expression) {
                let metric = of(&all, &name).unwrap_or_else(|| panic!("{path}: {name}"));
                for label in labels {
                    let is_there = metric.labels.contains(&&*label);
                    assert!(is_there, "{path}: {name} by {label}");
                }
                named.push((path, metric.name));
            }
        }
    }
    let grafana = named.iter().filter(|(path, _)| path.ends_with(".json"));
    let shown: Vec<&str> = grafana.map(|(_, name)| *name).collect();
    for metric in all {
        assert!(
            shown.contains(&metric.name),
            "the dashboard shows no {}",
            metric.name
        );
    }
}

#[test]
fn each_alert_has_a_test() {
    let tests = read("docker/prometheus/alerts_test.yml");
    let alerts = read("docker/prometheus/alerts.yml");
    let names = alerts
        .lines()
        .filter_map(|line| line.trim().strip_prefix("- alert: "));
    let names: Vec<&str> = names.collect();
    assert!(names.len() > 10, "{names:?}");
    for name in names {
        let fires = format!("alertname: {name}\n        exp_alerts:\n          - exp_labels:");
        let is_quiet = format!("alertname: {name}\n        exp_alerts: []");
        assert!(
            tests.contains(&fires) && tests.contains(&is_quiet),
            "{name}"
        );
    }
}

#[test]
fn names_follow_the_practice_of_prometheus() {
    for Metric { name, kind, .. } in all() {
        assert!(name.starts_with("redlock_"), "{name}");
        assert_eq!(kind == Kind::Counter, name.ends_with("_total"), "{name}");
        assert!(
            kind != Kind::Histogram || name.ends_with("_seconds"),
            "{name}"
        );
        assert!(!name.contains("_ms") && !name.contains("milli"), "{name}");
    }
}
