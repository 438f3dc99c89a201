//! The jobs, and the calendar of their ticks.

use super::{
    PageView,
    html::{Html, InAddress},
    picture::TimeWindow,
    runs::{RunColour, runs_in_words},
    time::{Shown, as_ms, parsed, span},
};
use crate::{
    Access, Snapshot,
    snapshot::{JobSnapshot, PauseSnapshot},
};

/// Adds the jobs with their next ticks and last runs.
pub(super) fn jobs(html: &mut Html, snapshot: &Snapshot, view: &PageView) {
    let now = snapshot.at_ms;
    html.element("section", &[("id", &"jobs")], |html| {
        html.element("h2", &[], |html| {
            super::linked(html, "jobs", "Jobs");
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
            return super::dim(html, words);
        }
        let names = ["Job", "State", "Schedule", "Next tick", "Last runs"];
        super::table_to_act(html, view, &names, |html| {
            for job in &snapshot.jobs {
                row(html, job, view, now);
            }
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
                button(html, switch(job));
                button(html, ("trigger", "Run now…"));
                if job.running_on.is_some() {
                    button(html, ("stop", "Stop…"));
                }
            });
        }
    });
}

pub(super) fn button(html: &mut Html, (verb, words): (&'static str, &'static str)) {
    html.leaf("button", &[("data-do", &verb)], words);
}

/// Returns the button that ends the pause of a job, or begins one.
pub(super) fn switch(job: &JobSnapshot) -> (&'static str, &'static str) {
    match job.paused {
        Some(true) => ("resume", "Resume…"),
        _ => ("pause", "Pause…"),
    }
}

pub(super) fn state(html: &mut Html, job: &JobSnapshot, now: u64) {
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
pub(super) fn schedule(job: &JobSnapshot) -> String {
    let Some(registered) = &job.registered else {
        return "no scheduler has registered it".to_owned();
    };
    let words = registered.schedule.as_ref().unwrap_or(&registered.pattern);
    match registered.gone {
        true => format!("{words}; no replica has registered it for a week"),
        false => words.clone(),
    }
}

pub(super) fn next(html: &mut Html, job: &JobSnapshot, now: u64) {
    match job.next_tick_ms {
        Some(at) => {
            html.moment(at, Shown::Left, now);
            html.element("small", &[], |html| html.moment(at, Shown::At, now));
        }
        None => html.text("–"),
    }
}

/// Adds the ticks of all jobs on one line of time: those that ran, and the next of each.
pub(super) fn calendar(html: &mut Html, jobs: &[JobSnapshot], now: f64) {
    let half = window(jobs, now);
    let window = TimeWindow {
        from_ms: now - half,
        to_ms: now + half,
    };
    html.element("figure", &[("id", &"calendar")], |html| {
        html.element("figcaption", &[], |html| {
            super::linked(html, "calendar", "Calendar of ticks");
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

/// More rows would be a wall; a search narrows them.
const MOST_IN_CALENDAR: usize = 50;
