//! The keys by contention, and the page of one key.

use super::{
    PageView,
    html::{Attributes, Html, InAddress},
    picture::TimeWindow,
    time::{Shown, as_ms, span},
};
use crate::{
    Access, Snapshot,
    snapshot::{KeyDetail, KeyEventKind, KeyKind, KeySnapshot, KeyStanding, LineSnapshot},
};

/// Adds the keys, those with the longest lines first.
pub(super) fn keys(html: &mut Html, snapshot: &Snapshot, view: &PageView) {
    let now = snapshot.at_ms;
    html.element("section", &[("id", &"keys")], |html| {
        html.element("h2", &[], |html| {
            super::linked(html, "keys", "Keys");
            super::count(html, snapshot.keys.len(), snapshot.keys_total);
        });
        if snapshot.keys.is_empty() {
            return super::dim(html, none(view));
        }
        let names = [
            "Key",
            "Kind",
            "Holder",
            "Held for",
            "Free in",
            "Line",
            "Why it is held, and until when",
        ];
        super::table_to_act(html, view, &names, |html| {
            for key in &snapshot.keys {
                row(html, key, view, now);
            }
        });
    });
}

fn none(view: &PageView) -> &'static str {
    match (view.query.is_empty(), view.kind) {
        (true, None) => "No key is held.",
        _ => "No held key matches.",
    }
}

fn row(html: &mut Html, key: &KeySnapshot, view: &PageView, now: u64) {
    html.element("tr", &[], |html| {
        html.element("th", &[("scope", &"row")], |html| link(html, &key.key));
        html.element("td", &[], |html| {
            html.text(called(key.kind));
            if !key.held {
                html.leaf("span", &[("class", &"pill bad")], "no majority");
            }
        });
        html.leaf("td", &[], key.holder.as_deref().unwrap_or("–"));
        html.element("td", &[], |html| {
            html.moment_or("–", key.held_since_ms, Shown::Since, now);
        });
        html.element("td", &[], |html| {
            let end = key.remaining_ms.map(|left| as_ms(now) + left);
            html.moment_or("never", end, Shown::Left, now);
        });
        html.element("td", &[], |html| {
            line(html, key.line.as_ref(), now);
            if key.exclusive_awaited {
                html.leaf("small", &[], "another waits to have it alone");
            }
        });
        html.leaf("td", &[("class", &"words")], &key.why);
        if view.access == Access::Operate {
            html.element("td", &[("class", &"act")], release);
        }
    });
}

fn release(html: &mut Html) {
    html.leaf("button", &[("data-do", &"release")], "Release…");
}

fn link(html: &mut Html, key: &str) {
    html.leaf(
        "a",
        &[("href", &format_args!("key?name={}", InAddress(key)))],
        key,
    );
}

/// Adds the callers in line, with their places and how long they have waited.
pub(super) fn line(html: &mut Html, line: Option<&LineSnapshot>, now: u64) {
    let Some(line) = line else {
        return html.leaf("span", &[("class", &"dim")], "not known");
    };
    if line.callers == 0 {
        return html.text("–");
    }
    html.element("details", &[], |html| {
        html.element("summary", &[], |html| {
            html.leaf("b", &[], line.callers);
            html.text(if line.callers == 1 {
                " waits, "
            } else {
                " wait, "
            });
            if let Some(longest) = line.longest_ms {
                html.moment(as_ms(now) - longest, Shown::Since, now);
            }
        });
        html.element("ol", &[], |html| {
            for caller in &line.clients {
                html.element("li", &[], |html| {
                    html.text(caller.label.as_ref().unwrap_or(&caller.client));
                    html.text(" ");
                    html.moment(as_ms(now) - caller.waits_ms, Shown::Since, now);
                });
            }
        });
        let more = line.callers.saturating_sub(line.clients.len());
        if more > 0 {
            html.leaf("small", &[], format_args!("and {more} more"));
        }
    });
}

/// Returns the name of a kind of keys on the page.
pub(super) const fn called(kind: KeyKind) -> &'static str {
    match kind {
        KeyKind::Exclusive => "exclusive",
        KeyKind::Shared => "shared",
        KeyKind::Slot => "slot",
        KeyKind::Job => "job",
    }
}

/// Adds all that is known of one key.
pub(super) fn page(html: &mut Html, detail: &KeyDetail, view: &PageView) {
    let now = detail.at_ms;
    let class = match detail.state {
        KeyStanding::Held => "degraded",
        KeyStanding::Free => "ok",
        KeyStanding::Unknown => "unknown",
    };
    let words = match (detail.state, &detail.key) {
        (KeyStanding::Held, Some(key)) => &key.why,
        (KeyStanding::Free, None) => "It is free: there is nothing to release.",
        _ => &detail.sentence,
    };
    super::verdict(html, class, &detail.name, |html| {
        html.leaf("p", &[], words);
    });
    html.element("section", &[("id", &"key")], |html| {
        if view.access == Access::Operate && detail.key.is_some() {
            html.element("p", &[("class", &"act")], release);
        }
        if let Some(key) = &detail.key {
            html.element("dl", &[], |html| facts(html, key, now));
        }
    });
    super::section(html, "answers", "What each node says", |html| {
        super::table(
            html,
            &["Node", "Key", "Holder", "Free in", "Vote"],
            |html| {
                for node in &detail.nodes {
                    answer(html, node, now);
                }
            },
        );
    });
    timeline(html, detail);
}

fn facts(html: &mut Html, key: &KeySnapshot, now: u64) {
    let mut fact = |name: &str, value: &dyn Fn(&mut Html)| {
        html.leaf("dt", &[], name);
        html.element("dd", &[], value);
    };
    fact("Kind", &|html| html.text(called(key.kind)));
    fact("Holder", &|html| {
        html.text(key.holder.as_deref().unwrap_or("without a label"));
    });
    if let Some(since) = key.held_since_ms {
        fact("Held since", &|html| {
            html.moment(since, Shown::At, now);
            html.text(", ");
            html.moment(since, Shown::Since, now);
            html.text(" ago");
        });
    }
    fact("Free in", &|html| match key.remaining_ms {
        Some(left) => {
            html.moment(as_ms(now) + left, Shown::Left, now);
            html.text(" unless it is renewed");
        }
        None => html.text("never: release it by force"),
    });
    fact("Line", &|html| line(html, key.line.as_ref(), now));
    fact("Changed hands", &|html| {
        html.text(format_args!(
            "{} times, as far as this console has seen",
            key.changed_hands
        ));
    });
}

fn answer(html: &mut Html, answer: &crate::snapshot::KeyAnswer, now: u64) {
    html.element("tr", &[], |html| {
        html.element("th", &[("scope", &"row")], |html| {
            html.leaf("code", &[], &answer.node);
            if let Some(server) = &answer.server {
                html.text(" → ");
                html.leaf("code", &[], server);
            }
        });
        html.leaf(
            "td",
            &[],
            match answer.state {
                KeyStanding::Held => "held",
                KeyStanding::Free => "free",
                KeyStanding::Unknown => "not known",
            },
        );
        html.leaf("td", &[], answer.holder.as_deref().unwrap_or("–"));
        html.element("td", &[], |html| {
            let end = answer.remaining_ms.map(|left| as_ms(now) + left);
            html.moment_or("–", end, Shown::Left, now);
        });
        html.element("td", &[], |html| {
            html.text(if answer.votes { "votes" } else { "no vote" });
            if let Some(why) = &answer.why {
                html.leaf("small", &[], why);
            }
        });
    });
}

fn timeline(html: &mut Html, detail: &KeyDetail) {
    let now = as_ms(detail.at_ms);
    super::section(html, "timeline", "What has happened to it", |html| {
        let Some(oldest) = detail.timeline.last() else {
            return super::dim(html, "Nothing, since this page was opened.");
        };
        // At least a minute, so that the first event is not at both ends.
        let window = TimeWindow {
            from_ms: as_ms(oldest.at_ms).min(now - 60_000.0),
            to_ms: now,
        };
        let marks = detail
            .timeline
            .iter()
            .map(|event| (class(event.kind), as_ms(event.at_ms)));
        html.marks("the events below on a line of time", window, now, marks);
        html.element("p", &[("class", &"axis")], |html| {
            html.leaf(
                "span",
                &[],
                format_args!("{} ago", span(now - window.from_ms)),
            );
            html.leaf("span", &[], "now");
        });
        html.element("ol", &[("class", &"events")], |html| {
            for event in &detail.timeline {
                let attributes: Attributes<'_> = &[("class", &class(event.kind))];
                html.element("li", attributes, |html| {
                    html.moment(as_ms(event.at_ms), Shown::At, detail.at_ms);
                    html.text(" ");
                    html.text(&event.words);
                });
            }
        });
    });
}

const fn class(kind: KeyEventKind) -> &'static str {
    match kind {
        KeyEventKind::Granted | KeyEventKind::Given | KeyEventKind::HandedOver => "ok",
        KeyEventKind::Lost | KeyEventKind::Expired | KeyEventKind::Taken => "bad",
        KeyEventKind::Joined | KeyEventKind::Left => "open",
        KeyEventKind::Extended | KeyEventKind::Freed | KeyEventKind::Unknown => "not",
    }
}
