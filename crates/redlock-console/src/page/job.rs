//! The page of one job.

use super::{
    PageView,
    html::{Attributes, Html},
    jobs,
    runs::{RunColour, in_words, run_id},
    time::{Shown, as_ms, span},
};
use crate::{
    Access,
    snapshot::{JobSnapshot, RunSnapshot},
};

/// Adds all that is known of one job.
pub(super) fn page(html: &mut Html, job: &JobSnapshot, view: &PageView, now: u64) {
    super::verdict(html, "unknown", &job.job, |html| {
        if job.known != Some(false) {
            return html.element("p", &[], |html| jobs::state(html, job, now));
        }
        html.leaf("p", &[], format_args!("No node knows a job {}.", job.job));
        html.element("p", &[], |html| {
            html.text("Look for its name among ");
            let known = "the jobs that the nodes know";
            html.leaf("a", &[("href", &"overview#jobs")], known);
            html.text(", or start a service with this job: its scheduler makes the job known.");
        });
    });
    if job.known == Some(false) {
        return;
    }
    html.element("section", &[("id", &"job")], |html| {
        if view.access == Access::Operate {
            html.element("p", &[("class", &"act")], |html| {
                for action in [
                    jobs::switch(job),
                    ("trigger", "Run now…"),
                    ("stop", "Stop the run…"),
                    ("backfill", "Backfill…"),
                    ("cancel", "Cancel the backfill…"),
                    ("forget", "Forget…"),
                ] {
                    jobs::button(html, action);
                }
            });
        }
        html.element("dl", &[], |html| facts(html, job, now));
    });
    super::section(html, "runs", "Last runs", |html| {
        if job.runs.is_empty() {
            return super::dim(html, "No run is remembered.");
        }
        html.large_strip(&job.runs);
        let names = ["Tick", "End", "Took", "Replica", "Attempt", "Note"];
        super::table_to_act(html, view, &names, |html| {
            for run in &job.runs {
                run_row(html, run, view, now);
            }
        });
    });
    html.element("section", &[("id", &"ticks")], |html| {
        jobs::calendar(html, std::slice::from_ref(job), as_ms(now));
    });
}

fn facts(html: &mut Html, job: &JobSnapshot, now: u64) {
    let mut fact = |name: &str, value: &dyn Fn(&mut Html)| {
        html.leaf("dt", &[], name);
        html.element("dd", &[], value);
    };
    fact("Schedule", &|html| html.text(jobs::schedule(job)));
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
    fact("Next tick", &|html| jobs::next(html, job, now));
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
        fact("Paused since", &|html| {
            html.written(&pause.since, Shown::At, now);
        });
    }
    if let Some(backfill) = &job.backfill {
        fact("Backfill", &|html| {
            let (begun, ticks) = (backfill.begun, backfill.ticks);
            html.text(format_args!(
                "{begun} of {ticks} ticks were started, as counted by {}",
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
                (None, None) => "no end is recorded".to_owned(),
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
                    let attributes: Attributes<'_> = &[
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
