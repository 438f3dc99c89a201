//! What the dashboard asks for, asked of what a real run tells Prometheus.

use std::{collections::BTreeMap, fmt::Write as _, fs, path::Path};

use redlock_sandbox::SERVER_VARIABLE;
use serde_json::Value;

use super::{ALONE, failed, prometheus::PROMTOOL, read, scratch, write};
use crate::{
    server,
    step::{Failed, Step},
    unchecked::Unchecked,
};

/// Has `promtool` read each query of the dashboard, and find something by it in the metrics of a real run.
///
/// Each becomes the condition of an alert, which must fire on series with the names and labels of that run.
pub(super) fn check(unchecked: &mut Unchecked) -> Result<(), Failed> {
    if !PROMTOOL.is_there("queries", unchecked)? {
        return Ok(());
    }
    let folder = scratch("queries")?;
    let exposition = real_run(&folder)?;
    let questions = questions(&read("docker/grafana/redlock.json")?)?;
    let (rules, tests) = (folder.join("rules.yml"), folder.join("tests.yml"));
    write(&rules, &rules_of(&questions))?;
    write(&tests, &tests_of(&questions, &series(&exposition)))?;
    let step = Step::program("queries", "promtool", "test rules");
    step.arguments(&[&tests]).alone(ALONE).run()
}

/// Runs the test that measures everything once, and returns what it told Prometheus.
fn real_run(folder: &Path) -> Result<String, Failed> {
    let server = server::ensure()?;
    let told = folder.join("exposition.txt");
    // With the features of the run of all tests, so that nothing is built twice.
    let test = "test --locked --workspace --all-features --test metrics";
    Step::cargo("metrics of a real run", test)
        .variable(SERVER_VARIABLE, server.path())
        .variable("REDLOCK_EXPOSITION", &told)
        .run()?;
    fs::read_to_string(&told).map_err(|error| failed(&told, &error))
}

/// A query, and the labels of its result that the legend shows.
#[derive(Debug, Eq, PartialEq)]
struct Question {
    /// Where it is asked.
    place: String,
    expression: String,
    labels: Vec<String>,
}

/// Returns all that a dashboard asks, for its panels and for the choices of its variables.
fn questions(dashboard: &str) -> Result<Vec<Question>, Failed> {
    let dashboard: Value = serde_json::from_str(dashboard)
        .map_err(|error| Failed(format!("docker/grafana/redlock.json: {error}")))?;
    let mut all = Vec::new();
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    for variable in list(&dashboard["templating"]["list"]) {
        let query = text(&variable["query"]["query"]);
        let parts = query.strip_prefix("label_values(");
        let parts = parts.and_then(|parts| parts.strip_suffix(')')?.rsplit_once(", "));
        if let Some((expression, label)) = parts {
            all.push(Question {
                place: format!("variable {}", text(&variable["name"])),
                expression: plain(expression)?,
                labels: vec![label.to_owned()],
            });
        } else if text(&variable["type"]) == "query" {
            return Err(Failed(format!("the variable's query is new here: {query}")));
        }
    }
    for panel in list(&dashboard["panels"]) {
        for target in list(&panel["targets"]) {
            let legend = text(&target["legendFormat"]);
            let labels = legend
                .split("{{")
                .skip(1)
                .filter_map(|rest| rest.split_once("}}"));
            all.push(Question {
                place: format!("{} {}", text(&panel["title"]), text(&target["refId"])),
                expression: plain(&text(&target["expr"]))?,
                labels: labels.map(|(label, _)| label.to_owned()).collect(),
            });
        }
    }
    Ok(all)
}

/// Returns a query as Grafana sends it, with all variables at their widest.
fn plain(query: &str) -> Result<String, Failed> {
    let mut plain = query.to_owned();
    for (variable, value) in [
        ("$namespace", ".*"),
        ("$lock", ".*"),
        ("$__rate_interval", "1m"),
    ] {
        plain = plain.replace(variable, value);
    }
    if plain.contains('$') {
        return Err(Failed(format!(
            "a variable of this query is new here: {query}"
        )));
    }
    Ok(plain)
}

/// Returns the rules: one that fires where a query finds a number, and one for each label of its legend.
fn rules_of(questions: &[Question]) -> String {
    let mut rules = "groups:\n  - name: queries\n    rules:\n".to_owned();
    for (name, condition) in conditions(questions) {
        // A string of JSON is one of YAML.
        let (name, condition) = (Value::from(name), Value::from(condition));
        let _ = writeln!(rules, "      - alert: {name}\n        expr: {condition}");
    }
    rules
}

fn conditions(questions: &[Question]) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for Question {
        place,
        expression,
        labels,
    } in questions
    {
        // What is no number is greater than nothing.
        all.push((place.clone(), format!("count(({expression}) > -Inf) > 0")));
        for label in labels {
            // Without that label, both sides are the same.
            let shown = format!("group by ({label}) ({expression}) unless group({expression})");
            all.push((
                format!("{place}, by {label}"),
                format!("count({shown}) > 0"),
            ));
        }
    }
    all
}

/// Returns a test in which all rules fire on these series.
fn tests_of(questions: &[Question], series: &BTreeMap<String, String>) -> String {
    let mut tests = "rule_files:\n  - rules.yml\n\
        evaluation_interval: 15s\n\
        tests:\n  - interval: 15s\n    input_series:\n"
        .to_owned();
    for (series, values) in series {
        let series = Value::from(series.as_str());
        let _ = writeln!(
            tests,
            "      - series: {series}\n        values: \"{values}\""
        );
    }
    tests.push_str("    alert_rule_test:\n");
    for (name, _) in conditions(questions) {
        let name = Value::from(name);
        let _ = writeln!(
            tests,
            "      - eval_time: 5m\n        alertname: {name}\n        exp_alerts:\n          - exp_labels: {{}}"
        );
    }
    tests
}

/// Returns the series of a run as one process has them, with their values: counters grow.
fn series(exposition: &str) -> BTreeMap<String, String> {
    let mut kinds = BTreeMap::new();
    let mut all = BTreeMap::new();
    for line in exposition.lines() {
        if let Some((name, kind)) = line
            .strip_prefix("# TYPE ")
            .and_then(|line| line.split_once(' '))
        {
            kinds.insert(name, kind);
            continue;
        }
        let Some((series, value)) = line.rsplit_once(' ').filter(|_| !line.starts_with('#')) else {
            continue;
        };
        let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
        let ends = ["_bucket", "_sum", "_count"];
        let base = ends.iter().find_map(|end| name.strip_suffix(end));
        let value: f64 = value.parse().unwrap_or(f64::NAN);
        if !value.is_finite() {
            // Not a value that a test of Prometheus can have.
            continue;
        }
        let is_gauge = base
            .and_then(|base| kinds.get(base))
            .or_else(|| kinds.get(name))
            == Some(&"gauge");
        let values = if is_gauge {
            format!("{value}x40")
        } else {
            format!("{value}+{}x40", value + 1.0)
        };
        let comma = if labels == "}" { "" } else { "," };
        let series = format!("{name}{{instance=\"web-1:9000\",job=\"web\"{comma}{labels}");
        all.insert(series, values);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panels_and_variables_ask_for_what_their_legends_show() {
        let dashboard = r#"{
            "templating": { "list": [
                { "name": "datasource", "type": "datasource", "query": "prometheus" },
                { "name": "lock", "type": "query", "query": { "query": "label_values(held{namespace=~\"$namespace\"}, lock)" } }
            ] },
            "panels": [
                { "type": "row", "title": "Locks" },
                { "title": "Lost", "targets": [
                    { "refId": "A", "expr": "rate(lost[$__rate_interval])", "legendFormat": "{{lock}}: {{reason}}" }
                ] }
            ]
        }"#;
        let question = |place: &str, expression: &str, labels: &[&str]| Question {
            place: place.to_owned(),
            expression: expression.to_owned(),
            labels: labels.iter().copied().map(str::to_owned).collect(),
        };
        let expected = [
            question("variable lock", "held{namespace=~\".*\"}", &["lock"]),
            question("Lost A", "rate(lost[1m])", &["lock", "reason"]),
        ];
        assert_eq!(questions(dashboard).unwrap(), expected);
        let unknown = dashboard.replace("$namespace", "$name");
        assert!(questions(&unknown).is_err());
    }

    #[test]
    fn series_are_those_of_a_process_and_counters_grow() {
        let exposition = "# HELP up how\n# TYPE up gauge\nup 1\n# TYPE next gauge\nnext NaN\n\n\
            # TYPE lost_total counter\nlost_total{lock=\"a\"} 2\n";
        let of_a_process = "instance=\"web-1:9000\",job=\"web\"";
        let expected = [
            (
                format!("lost_total{{{of_a_process},lock=\"a\"}}"),
                "2+3x40".to_owned(),
            ),
            (format!("up{{{of_a_process}}}"), "1x40".to_owned()),
        ];
        assert_eq!(series(exposition), BTreeMap::from(expected));
    }
}
