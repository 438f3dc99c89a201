//! The elections, and what operators did.

use super::{
    html::Html,
    keys::line,
    picture::TimeWindow,
    time::{Shown, as_ms},
};
use crate::{
    Snapshot,
    snapshot::{ElectionSnapshot, KeyStanding},
};

/// Adds the elections that the operator has named.
pub(super) fn elections(html: &mut Html, snapshot: &Snapshot) {
    super::section(html, "elections", "Elections", |html| {
        if snapshot.elections.is_empty() {
            let words = "Nodes cannot tell an election from another key: name it, by redlock console --election NAME.";
            return super::dim(html, words);
        }
        let names = [
            "Election",
            "Leader",
            "Leads for",
            "Ends in",
            "Candidates",
            "Terms of the last day",
        ];
        super::table(html, &names, |html| {
            for election in &snapshot.elections {
                row(html, election, snapshot.at_ms);
            }
        });
    });
}

fn row(html: &mut Html, election: &ElectionSnapshot, now: u64) {
    html.element("tr", &[], |html| {
        html.leaf("th", &[("scope", &"row")], &election.name);
        html.element("td", &[], |html| match election.state {
            KeyStanding::Held => html.text(
                election
                    .leader
                    .as_deref()
                    .unwrap_or("a leader without a label"),
            ),
            KeyStanding::Free => html.leaf("span", &[("class", &"pill bad")], "no leader"),
            KeyStanding::Unknown => html.leaf("span", &[("class", &"pill open")], "not known"),
        });
        html.element("td", &[], |html| {
            html.moment_or("–", election.since_ms, Shown::Since, now);
        });
        html.element("td", &[], |html| {
            let end = election.remaining_ms.map(|left| as_ms(now) + left);
            html.moment_or("–", end, Shown::Left, now);
        });
        html.element("td", &[], |html| {
            line(html, election.candidates.as_ref(), now);
        });
        html.element("td", &[], |html| terms(html, election, now));
    });
}

fn terms(html: &mut Html, election: &ElectionSnapshot, now: u64) {
    let at = as_ms(now);
    if election.terms.is_empty() {
        return html.text("–");
    }
    let window = TimeWindow {
        from_ms: at - DAY_MS,
        to_ms: at,
    };
    let called = |leader: &Option<String>| {
        leader
            .clone()
            .unwrap_or_else(|| "without a label".to_owned())
    };
    let mut leaders: Vec<String> = Vec::new();
    let spans = election.terms.iter().rev().map(|term| {
        let leader = called(&term.leader);
        let place = leaders.iter().position(|known| *known == leader);
        let place = place.unwrap_or_else(|| {
            leaders.push(leader.clone());
            leaders.len() - 1
        });
        let class = COLOURS[place % COLOURS.len()];
        (
            class,
            term.since_ms.max(window.from_ms),
            term.until_ms.unwrap_or(at),
            leader,
        )
    });
    let spans: Vec<_> = spans.collect();
    html.spans(
        "the terms of the last day",
        window,
        spans
            .iter()
            .map(|(class, from, to, leader)| (*class, *from, *to, &**leader)),
    );
    html.element("details", &[], |html| {
        html.element("summary", &[], |html| {
            let count = election.terms.len();
            html.text(format_args!(
                "{count} term{}",
                if count == 1 { "" } else { "s" }
            ));
        });
        html.element("ol", &[], |html| {
            for term in &election.terms {
                html.element("li", &[], |html| {
                    html.text(called(&term.leader));
                    html.text(" from ");
                    html.moment(term.since_ms, Shown::At, now);
                    if let Some(until) = term.until_ms {
                        html.text(" to ");
                        html.moment(until, Shown::At, now);
                    }
                });
            }
        });
    });
}

/// Adds what operators did, the newest first.
pub(super) fn actions(html: &mut Html, snapshot: &Snapshot) {
    super::section(html, "actions", "Actions", |html| {
        if let Some(why) = &snapshot.actions_unknown {
            return html.leaf("p", &[("class", &"warning")], why);
        }
        if snapshot.actions.is_empty() {
            return super::dim(html, "The nodes remember no action of an operator.");
        }
        super::table(html, &["When", "What", "Job or key", "By", "Why"], |html| {
            for action in &snapshot.actions {
                html.element("tr", &[], |html| {
                    html.element("th", &[("scope", &"row")], |html| {
                        html.written(&action.at, Shown::At, snapshot.at_ms);
                    });
                    html.leaf("td", &[], &action.verb);
                    html.leaf("td", &[], &action.subject);
                    html.leaf("td", &[], action.by.as_deref().unwrap_or("–"));
                    let reason = action.reason.as_deref().unwrap_or("–");
                    html.leaf("td", &[("class", &"words")], reason);
                });
            }
        });
    });
}

/// One colour for each leader, again from the beginning if there are more.
const COLOURS: [&str; 4] = ["a", "b", "c", "d"];

const DAY_MS: f64 = 86_400_000.0;
