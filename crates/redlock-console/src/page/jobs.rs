//! The jobs, the calendar of their ticks, and the page of one job.

use super::{
    PageView,
    html::{Html, InAddress},
    picture::{RunColour, TimeWindow, in_words, run_id, runs_in_words},
    time::{Shown, as_ms, parsed, span},
};
use crate::{
    Access, Snapshot,
    snapshot::{JobSnapshot, PauseSnapshot, RunSnapshot},
};

/// Adds the jobs with their next ticks and last runs.
pub(super) fn jobs(html: &mut Html, snapshot: &Snapshot, view: &PageView) {
    let now = snapshot.at_ms;
    html.element("section", &[("id", &"jobs")], |html| {
        html.element("h2", &[], |html| {
            html.leaf("a", &[("href", &"#jobs")], "Jobs");
            super::count(html, snapshot.jobs.len(), snapshot.jobs_total);
        });
        if let Some(why) = &snapshot.jobs_unknown {
            html.leaf("p", &[("class", &"warning")], why);
        }
        if snapshot.jobs.is_empty() {
            let words = match view.query.is_empty() {
                true => "The nodes remember no job.",
                false => "No job matches.",
            };
            return html.leaf("p", &[("class", &"dim")], words);
        }
        html.element("table", &[], |html| {
            let mut head = vec!["Job", "State", "Schedule", "Next tick", "Last runs"];
            if view.access == Access::Operate {
                head.push("");
            }
            super::head(html, &head);
            html.element("tbody", &[], |html| {
                for job in &snapshot.jobs {
                    row(html, job, view, now);
                }
            });
        });
        calendar(html, &snapshot.jobs, as_ms(now));
    });
}

fn row(html: &mut Html, job: &JobSnapshot, view: &PageView, now: u64) {
    let address = format!("job?name={}", InAddress(&job.job));
    html.element("tr", &[], |html| {
        html.element("th", &[("scope", &"row")], |html| {
            html.leaf("a", &[("href", &address)], &job.job);
        });
        html.element("td", &[], |html| state(html, job, now));
        html.leaf("td", &[("class", &"words")], schedule(job));
        html.element("td", &[], |html| next(html, job, now));
        html.element("td", &[], |html| {
            let runs = format!("{address}#runs");
            html.element("a", &[("href", &runs), ("class", &"runs")], |html| {
                html.strip(&job.runs);
            });
            let failed = job
                .runs
                .iter()
                .filter(|run| RunColour::of(run) == RunColour::Bad)
                .count();
            if failed > 0 {
                html.leaf(
                    "small",
                    &[("class", &"bad")],
                    format_args!("{failed} of {} failed", job.runs.len()),
                );
            }
        });
        if view.access == Access::Operate {
            html.element("td", &[("class", &"act")], |html| {
                button(
                    html,
                    if job.paused == Some(true) {
                        ("resume", "Resume…")
                    } else {
                        ("pause", "Pause…")
                    },
                );
                button(html, ("trigger", "Run now…"));
                if job.running_on.is_some() {
                    button(html, ("stop", "Stop…"));
                }
            });
        }
    });
}

fn button(html: &mut Html, (verb, words): (&'static str, &'static str)) {
    html.leaf("button", &[("data-do", &verb)], words);
}

fn state(html: &mut Html, job: &JobSnapshot, now: u64) {
    let class = match (job.paused, &job.running_on, job.known) {
        (_, _, None) => "pill bad",
        (Some(true), ..) => "pill open",
        (_, Some(_), _) => "pill ok",
        _ => "pill not",
    };
    html.leaf("span", &[("class", &class)], &job.state);
    if let Some(pause) = &job.pause {
        html.element("small", &[], |html| paused(html, pause, now));
    }
    if job.missed.is_some_and(|missed| missed > 0) {
        html.leaf(
            "small",
            &[("class", &"bad")],
            format_args!("{} missed", job.missed.unwrap_or_default()),
        );
    }
}

/// Adds the operator that paused a job, the end of the pause, and the reason.
fn paused(html: &mut Html, pause: &PauseSnapshot, now: u64) {
    if let Some(by) = &pause.by {
        html.text("by ");
        html.text(by);
        html.text(" ");
    }
    match &pause.until {
        Some(until) => {
            html.text("until ");
            html.written(until, Shown::At, now);
        }
        None => html.text("until it is resumed"),
    }
    if let Some(reason) = &pause.reason {
        html.text(": ");
        html.text(reason);
    }
}

/// Returns the schedule of a job in words, or its pattern.
fn schedule(job: &JobSnapshot) -> String {
    let Some(registered) = &job.registered else {
        return "no scheduler has it".to_owned();
    };
    let words = registered.schedule.as_ref().unwrap_or(&registered.pattern);
    match registered.gone {
        true => format!("{words}; no replica has it any more"),
        false => words.clone(),
    }
}

fn next(html: &mut Html, job: &JobSnapshot, now: u64) {
    match job.next_tick_ms {
        Some(at) => {
            html.moment(at, Shown::Left, now);
            html.element("small", &[], |html| html.moment(at, Shown::At, now));
        }
        None => html.text("–"),
    }
}

/// Adds the ticks of all jobs on one line of time: those that ran, and the next of each.
fn calendar(html: &mut Html, jobs: &[JobSnapshot], now: f64) {
    let half = window(jobs, now);
    let window = TimeWindow {
        from_ms: now - half,
        to_ms: now + half,
    };
    html.element("figure", &[("id", &"calendar")], |html| {
        html.element("figcaption", &[], |html| {
            html.leaf("a", &[("href", &"#calendar")], "Calendar of ticks");
        });
        html.element("table", &[], |html| {
            html.element("tbody", &[], |html| {
                for job in jobs.iter().take(MOST_IN_CALENDAR) {
                    html.element("tr", &[], |html| {
                        html.leaf("th", &[("scope", &"row")], &job.job);
                        html.element("td", &[], |html| marks(html, job, window, now));
                    });
                }
                html.element("tr", &[("class", &"axis")], |html| {
                    html.leaf("th", &[], "");
                    html.element("td", &[], |html| {
                        html.element("p", &[("class", &"axis")], |html| {
                            html.leaf("span", &[], format_args!("{} ago", span(half)));
                            html.leaf("span", &[], "now");
                            html.leaf("span", &[], format_args!("in {}", span(half)));
                        });
                    });
                });
            });
        });
    });
}

fn marks(html: &mut Html, job: &JobSnapshot, window: TimeWindow, now: f64) {
    let ran = job.runs.iter().rev();
    let ran = ran.filter_map(|run| Some((RunColour::of(run).class(), parsed(&run.tick)?)));
    let to_come = job.next_tick_ms.iter().chain(&job.later_ticks_ms);
    let to_come = to_come.map(|at| ("next", *at));
    let label = format!("{}: {}", job.job, runs_in_words(&job.runs));
    html.marks(&label, window, now, ran.chain(to_come));
}

/// Returns how far the calendar reaches to both sides: far enough for the next two ticks of most jobs.
fn window(jobs: &[JobSnapshot], now: f64) -> f64 {
    let mut left: Vec<f64> = jobs
        .iter()
        .filter_map(|job| Some(job.later_ticks_ms.first().or(job.next_tick_ms.as_ref())? - now))
        .collect();
    left.sort_by(f64::total_cmp);
    let most = left
        .get(left.len() * 4 / 5)
        .or_else(|| left.last())
        .copied()
        .unwrap_or_default();
    let reaches = |minutes: &f64| minutes * 60_000.0 >= most;
    let minutes = [10.0, 60.0, 360.0, 1_440.0].into_iter().find(reaches);
    minutes.unwrap_or(10_080.0) * 60_000.0
}

/// Adds all that is known of one job.
pub(super) fn page(html: &mut Html, job: &JobSnapshot, view: &PageView, now: u64) {
    html.element(
        "section",
        &[("id", &"verdict"), ("class", &"unknown")],
        |html| {
            html.leaf("h1", &[("aria-live", &"polite")], &job.job);
            html.element("p", &[], |html| state(html, job, now));
        },
    );
    html.element("section", &[("id", &"job")], |html| {
        if view.access == Access::Operate {
            html.element("p", &[("class", &"act")], |html| {
                let switch = if job.paused == Some(true) {
                    ("resume", "Resume…")
                } else {
                    ("pause", "Pause…")
                };
                for action in [
                    switch,
                    ("trigger", "Run now…"),
                    ("stop", "Stop the run…"),
                    ("backfill", "Backfill…"),
                    ("cancel", "Cancel the backfill…"),
                    ("forget", "Forget…"),
                ] {
                    button(html, action);
                }
            });
        }
        html.element("dl", &[], |html| facts(html, job, now));
    });
    html.element("section", &[("id", &"runs")], |html| {
        html.element("h2", &[], |html| {
            html.leaf("a", &[("href", &"#runs")], "Last runs");
        });
        if job.runs.is_empty() {
            return html.leaf("p", &[("class", &"dim")], "No run is remembered.");
        }
        html.large_strip(&job.runs);
        html.element("table", &[], |html| {
            let mut head = vec![
                "Tick",
                "End",
                "Took",
                "Replica",
                "Attempt",
                "What is said of it",
            ];
            if view.access == Access::Operate {
                head.push("");
            }
            super::head(html, &head);
            html.element("tbody", &[], |html| {
                for run in &job.runs {
                    run_row(html, run, view, now);
                }
            });
        });
    });
    html.element("section", &[("id", &"ticks")], |html| {
        calendar(html, std::slice::from_ref(job), as_ms(now));
    });
}

fn facts(html: &mut Html, job: &JobSnapshot, now: u64) {
    let mut fact = |name: &str, value: &dyn Fn(&mut Html)| {
        html.leaf("dt", &[], name);
        html.element("dd", &[], value);
    };
    fact("Schedule", &|html| html.text(schedule(job)));
    if let Some(registered) = &job.registered {
        fact("Pattern", &|html| {
            html.leaf("code", &[], &registered.pattern);
            if let Some(zone) = &registered.zone {
                html.text(" in ");
                html.text(zone);
            }
        });
        if let Some(policies) = &registered.policies {
            fact("Policies", &|html| html.text(policies));
        }
        fact("Registered", &|html| {
            html.written(&registered.at, Shown::At, now);
            html.text(" by ");
            html.text(&registered.replica);
        });
    }
    fact("Next tick", &|html| next(html, job, now));
    if let Some(replica) = &job.running_on {
        fact("Runs on", &|html| html.text(replica));
    }
    if let Some(locked) = job.locked_ms {
        fact("Its lock", &|html| {
            if locked > 0.0 {
                html.text("free in ");
                html.moment(as_ms(now) + locked, Shown::Left, now);
                html.text(" unless it is renewed");
            } else {
                html.text("free");
            }
        });
    }
    fact("Last success", &|html| match &job.last_success {
        Some(tick) => {
            html.written(tick, Shown::At, now);
            html.text(", ");
            html.written(tick, Shown::Since, now);
            html.text(" ago");
        }
        None => html.text("none is remembered"),
    });
    if let Some(missed) = job.missed {
        fact("Missed ticks", &|html| html.text(missed));
    }
    if let Some(pause) = &job.pause {
        fact("Paused", &|html| paused(html, pause, now));
    }
    if let Some(backfill) = &job.backfill {
        fact("Backfill", &|html| {
            let (begun, ticks) = (backfill.begun, backfill.ticks);
            html.text(format_args!(
                "{begun} of {ticks} ticks begun, counted by {}",
                backfill.replica
            ));
            if backfill.cancelled {
                html.text(", cancelled");
            }
        });
    }
}

fn run_row(html: &mut Html, run: &RunSnapshot, view: &PageView, now: u64) {
    let id = run_id(run);
    let colour = RunColour::of(run);
    html.element("tr", &[("id", &id)], |html| {
        html.element("th", &[("scope", &"row")], |html| {
            html.written(&run.tick, Shown::At, now);
        });
        html.element("td", &[], |html| {
            let pill = format!("pill {}", colour.class());
            let end = match (&run.outcome, &run.not_started) {
                (_, Some(_)) => "not started".to_owned(),
                (Some(outcome), None) => outcome.replace('_', " "),
                (None, None) => "no end yet".to_owned(),
            };
            html.leaf("span", &[("class", &pill)], end);
        });
        let took = run
            .took_ms
            .filter(|_| run.not_started.is_none())
            .map_or_else(|| "–".to_owned(), span);
        html.leaf("td", &[], took);
        html.leaf("td", &[], &run.replica);
        html.element("td", &[], |html| {
            html.text(run.attempt);
            match (run.backfill, run.by_hand) {
                (true, _) => html.leaf("small", &[], "backfill"),
                (false, true) => html.leaf("small", &[], "by hand"),
                (false, false) => {}
            }
        });
        html.leaf(
            "td",
            &[("class", &"words")],
            run.note
                .as_ref()
                .or(run.not_started.as_ref())
                .map_or("", String::as_str),
        );
        if view.access == Access::Operate {
            html.element("td", &[("class", &"act")], |html| {
                // A request for a run by hand has no tick of the schedule.
                if !run.by_hand || run.backfill {
                    let attributes: super::html::Attributes<'_> = &[
                        ("data-do", &"rerun"),
                        ("data-tick", &run.tick),
                        (
                            "aria-label",
                            &format_args!("Run this tick again: {}", in_words(run)),
                        ),
                    ];
                    html.leaf("button", attributes, "Run again…");
                }
            });
        }
    });
}

/// More rows would be a wall; a search narrows them.
const MOST_IN_CALENDAR: usize = 50;
