//! Mistakes of the job adapter about zones and clocks, which show on servers and replicas that live through the changes.

use super::mutant::{Mutant, by_test, on_servers};

const ATTACH: &str = "crates/redlock-cron/src/pulse/attach.rs";
const DUE: &str = "crates/redlock-cron/src/tick/progress.rs";
const RUNNER: &str = "crates/redlock-cron/src/tick/runner.rs";
const SCHEDULE: &str = "crates/redlock-cron/src/schedule/calendar.rs";

pub(super) const CLOCKS: &[Mutant] = &[
    by_test(
        "counter-relied-on-beside-a-clock-of-ones-own",
        "crates/redlock-sandbox/clock/clock.c",
        "strcmp(path, \"/proc/cpuinfo\") == 0",
        "strcmp(path, \"/proc/cpu\") == 0",
        "redlock-sandbox",
        "--lib",
        "processors_counter",
    ),
    // tokio-cron-scheduler's own reading of the pattern, with the offset that the zone had when the job was added.
    changes(
        "scheduler-left-to-itself",
        ATTACH,
        "    let runner = Arc::downgrade(runner);\n    let job = Job::new_async(EVERY_SECOND, move |id, scheduler| {\n        let runner = Weak::clone(&runner);\n        Box::pin(async move { wake(&scheduler, id, &runner).await })\n    })?;\n    let id = scheduler.add(job).await?;\n    if !has_code(scheduler, id).await {\n        // The error that matters is the one below.\n        let _ = scheduler.remove(&id).await;\n        return Err(JobSchedulerError::CantAdd);\n    }\n    set_next(scheduler, id, next, Unless::Never).await;\n    Ok(id)\n",
        "    let _ = next;\n    let (pattern, zone) = match &runner.schedule {\n        crate::schedule::Schedule::Cron { cron, zone } => (cron.pattern.to_string(), *zone),\n        crate::schedule::Schedule::Every(_) => (EVERY_SECOND.to_owned(), chrono_tz::UTC),\n    };\n    let runner = Arc::downgrade(runner);\n    let job = Job::new_async_tz(pattern, zone, move |_, _| {\n        let runner = Weak::clone(&runner);\n        Box::pin(async move {\n            if let Some(runner) = runner.upgrade() {\n                runner.wake();\n            }\n        })\n    })?;\n    scheduler.add(job).await\n",
        "berlin",
    ),
    changes(
        "offset-of-the-start",
        SCHEDULE,
        "        let cron = Box::new(cron);\n",
        "        let cron = Box::new(cron);\n        let offset = chrono::Offset::fix(Utc::now().with_timezone(&zone).offset());\n        let zone = format!(\"Etc/GMT{:+}\", -offset.local_minus_utc() / 3_600);\n        let zone = zone.parse().expect(\"it is a zone\");\n",
        "berlin",
    ),
    changes(
        "gap-drops-a-fixed-time",
        SCHEDULE,
        "                        Ok(latest) => return Some(latest.with_timezone(&Utc)),\n",
        "                        Ok(latest) => {\n                            let is_there = cron.is_time_matching(&latest).ok()?;\n                            return is_there.then(|| latest.with_timezone(&Utc));\n                        }\n",
        "sao_paulo",
    ),
    // A day of a change does not have 24 hours.
    changes(
        "wake-up-a-period-after-the-last-tick",
        RUNNER,
        "        let next = self.schedule.next_after(now + LEAD)?;\n",
        "        let last = self.schedule.latest_at(now + LEAD)?;\n        let next = last + self.schedule.shortest_gap()?;\n",
        "berlin",
    ),
    on_servers(
        "clock-set-back-unnoticed",
        "crates/redlock-cron/src/pulse/clock_watch.rs",
        "        jobs.lock().await.look_at_clock(&scheduler, was_set).await;\n",
        "        let _ = (&scheduler, was_set);\n        drop(jobs.lock().await);\n",
        "--test jobs_clock_steps",
        "takes_part_again",
    ),
    on_servers(
        "refused-ticks-taken-for-dealt-with",
        DUE,
        "if lag(now, self.until) > LONGEST_AHEAD {",
        "if lag(now, self.until) > 60 * LONGEST_AHEAD {",
        "--test jobs_clock_steps",
        "takes_part_again",
    ),
];

/// A mistake that shows at the changes of a zone.
const fn changes(
    name: &'static str,
    file: &'static str,
    from: &'static str,
    to: &'static str,
    filter: &'static str,
) -> Mutant {
    on_servers(name, file, from, to, "--test jobs_clock_changes", filter)
}
