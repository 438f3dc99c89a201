//! The verdict, the findings of the doctor, and the nodes.

use super::{
    html::{Attributes, Html},
    time::{Shown, as_ms, span, span_or_dash},
};
use crate::{
    Snapshot,
    snapshot::{NodeSnapshot, Severity, Verdict, VerdictState},
};

/// Adds the state of the whole in one sentence, and what to do about it.
pub(super) fn verdict(html: &mut Html, verdict: &Verdict) {
    let class = match verdict.state {
        VerdictState::Unknown => "unknown",
        VerdictState::Ok => "ok",
        VerdictState::Degraded => "degraded",
        VerdictState::Critical => "critical",
        VerdictState::NoQuorum => "no-quorum",
    };
    super::verdict(html, class, &verdict.sentence, |html| {
        if let Some(advice) = &verdict.advice {
            html.leaf("p", &[], advice);
        }
    });
}

/// Adds what the doctor has found, with its advice.
pub(super) fn findings(html: &mut Html, snapshot: &Snapshot) {
    super::section(html, "findings", "Findings", |html| {
        match (snapshot.findings_at_ms, snapshot.findings.is_empty()) {
            (None, _) => {
                let words =
                    "The doctor is looking for the first time: its findings come in a few seconds.";
                super::dim(html, words);
            }
            (Some(_), true) => super::dim(html, "The doctor has found nothing."),
            (Some(_), false) => {}
        }
        html.element("ul", &[], |html| {
            for finding in &snapshot.findings {
                let class = match finding.level {
                    Severity::Note => "note",
                    Severity::Warning => "warning",
                    Severity::Failure => "failure",
                };
                html.element("li", &[("class", &class)], |html| {
                    html.leaf("b", &[], class);
                    html.text(" ");
                    if let Some(node) = &finding.node {
                        html.leaf("code", &[], node);
                        html.text(" ");
                    }
                    html.text(&finding.found);
                    html.leaf("p", &[("class", &"advice")], &finding.advice);
                });
            }
        });
    });
}

/// Adds the nodes, and the number of their votes in the last hour.
pub(super) fn nodes(html: &mut Html, snapshot: &Snapshot) {
    let (now, verdict) = (snapshot.at_ms, &snapshot.verdict);
    super::section(html, "nodes", "Nodes", |html| {
        let names = [
            "Node",
            "Vote",
            "Round trip",
            "Clock",
            "Memory",
            "Connections",
            "Server",
        ];
        super::table(html, &names, |html| {
            for node in &snapshot.nodes {
                row(html, node, now);
            }
        });
        html.element("figure", &[("id", &"margin")], |html| {
            html.element("figcaption", &[], |html| {
                super::linked(html, "margin", "Votes in the last hour");
            });
            if snapshot.margin.is_empty() {
                return super::dim(html, "No look was taken yet.");
            }
            let (nodes, majority) = (verdict.nodes, verdict.majority);
            html.margin(&snapshot.margin, nodes, majority, as_ms(now));
        });
    });
}

fn row(html: &mut Html, node: &NodeSnapshot, now: u64) {
    html.element("tr", &[], |html| {
        html.element("th", &[("scope", &"row")], |html| {
            html.leaf("code", &[], &node.node);
            if let Some(server) = &node.server {
                html.text(" → ");
                html.leaf("code", &[], server);
            }
        });
        html.element("td", &[], |html| match (node.votes, node.ready_in_ms) {
            (true, _) => html.leaf("span", &[("class", &"pill ok")], "votes"),
            (false, Some(left)) => {
                html.leaf("span", &[("class", &"pill open")], "quarantine");
                html.text(" ");
                html.moment(as_ms(now) + left, Shown::Left, now);
            }
            (false, None) => html.leaf("span", &[("class", &"pill bad")], "no vote"),
        });
        html.element("td", &[], |html| {
            html.text(span_or_dash(node.round_trip_ms));
            html.spark(&node.round_trips.by_minute_ms);
            if let (Some(p50), Some(p99)) = (node.round_trips.p50_ms, node.round_trips.p99_ms) {
                let words = format!("p50 {}, p99 {}", span(p50), span(p99));
                html.leaf("small", &[], words);
            }
        });
        html.leaf("td", &[], ahead(node.clock_ahead_ms));
        html.element("td", &[], |html| {
            html.text(node.memory_bytes.map_or_else(|| "–".to_owned(), bytes));
            if let Some(limit) = node.memory_limit_bytes {
                html.leaf("small", &[], format_args!("of {}", bytes(limit)));
            }
        });
        let connections = node
            .connections
            .map_or_else(|| "–".to_owned(), |count| count.to_string());
        html.leaf("td", &[], connections);
        html.element("td", &[], |html| {
            html.text(node.version.as_deref().unwrap_or("–"));
            if let Some(up) = node.up_ms {
                html.leaf("small", &[], format_args!("up {}", span(up)));
            }
        });
    });
    // A node that does not answer says nothing of its keys either.
    if let Some(why) = node.why.as_ref().or(node.keys_unknown.as_ref()) {
        let wide: Attributes<'_> = &[("colspan", &"7")];
        html.element("tr", &[("class", &"why")], |html| {
            html.leaf("td", wide, why);
        });
    }
}

/// Returns by how much a clock differs from the one in the middle.
fn ahead(ms: Option<f64>) -> String {
    match ms {
        None => "–".to_owned(),
        Some(ms) if ms.abs() < 0.5 => "±0 ms".to_owned(),
        Some(ms) if ms < 0.0 => format!("{} behind", span(-ms)),
        Some(ms) => format!("{} ahead", span(ms)),
    }
}

#[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
fn bytes(count: u64) -> String {
    let mut size = count as f64;
    for unit in ["B", "kB", "MB", "GB"] {
        if size < 1_000.0 {
            let digits = usize::from(size < 10.0 && unit != "B");
            return format!("{size:.digits$} {unit}");
        }
        size /= 1_000.0;
    }
    format!("{size:.1} TB")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_and_sizes_have_the_digits_that_a_person_needs() {
        assert_eq!(ahead(Some(-12.5)), "12 ms behind");
        assert_eq!(ahead(Some(0.2)), "±0 ms");
        assert_eq!(bytes(999), "999 B");
        assert_eq!(bytes(1_310_720), "1.3 MB");
        assert_eq!(bytes(268_435_456), "268 MB");
    }
}
