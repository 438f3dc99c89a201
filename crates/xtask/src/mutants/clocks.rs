//! Mistakes of the job adapter about zones and clocks, which show on servers and replicas that live through the changes.

use super::{
    jobs::job,
    mutant::{Mutant, by_test, on_servers},
};

const ALARM: &str = "crates/redlock-cron/src/pulse/alarm.rs";
const DUE: &str = "crates/redlock-cron/src/tick/progress.rs";
const SCHEDULE: &str = "crates/redlock-cron/src/schedule/calendar.rs";
const WATCH: &str = "crates/redlock-cron/src/pulse/watch.rs";

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
        DUE,
        "            next: schedule.next_after(now),\n",
        "            next: schedule\n                .latest_at(now)\n                .zip(schedule.shortest_gap())\n                .map(|(last, gap)| last + gap),\n",
        "berlin",
    ),
    on_servers(
        "clock-set-back-unnoticed",
        WATCH,
        "        let (set_back, silence) = (jobs.set_back_by(), jobs.silence());\n",
        "        let (set_back, silence) = (jobs.set_back_by() * 0, jobs.silence() * 0);\n",
        "--test jobs_clock_steps",
        "takes_part_again",
    ),
    on_servers(
        "refused-ticks-taken-for-dealt-with",
        DUE,
        "lag(now, self.until) > LONGEST_AHEAD",
        "lag(now, self.until) > 60 * LONGEST_AHEAD",
        "--test jobs_clock_steps",
        "takes_part_again",
    ),
    job(
        "alarm-not-set-anew",
        WATCH,
        "            alarm.set_anew().await;\n",
        "            let _ = &alarm;\n",
        "was_a_year_ahead",
    ),
    job(
        "alarm-set-anew-only-by-a-clock",
        WATCH,
        "if set_back > Duration::ZERO || silence > LONGEST_SILENCE {",
        "if set_back > Duration::ZERO || silence > 10_000 * LONGEST_SILENCE {",
        "was_a_year_ahead",
    ),
    job(
        "silence-untold",
        WATCH,
        "let is_silent = silence > TOLD_SILENCE;",
        "let is_silent = silence > TOLD_SILENCE * 1_000;",
        "wakes_nothing_up_any_more",
    ),
    job(
        "alarm-of-jobs-that-are-gone",
        ALARM,
        "                    Self { scheduler, id }.store(None).await;\n",
        "                    drop((scheduler, id));\n",
        "forgets_jobs_that_are_gone",
    ),
    job(
        "tick-found-when-it-is-due",
        DUE,
        "TimeDelta::milliseconds(1_500)",
        "TimeDelta::milliseconds(1_000)",
        "half_a_second_before",
    ),
    job(
        "end-of-a-schedule-unnoticed",
        DUE,
        "self.next.is_some_and(|next| next <= now + LEAD) ||",
        "self.next.is_none_or(|next| next <= now + LEAD) ||",
        "has_ended_with_its_last_tick",
    ),
    job(
        "first-tick-waits-for-the-scheduler",
        "crates/redlock-cron/src/scheduler/singleton_scheduler.rs",
        "        runner.wake();\n",
        "",
        "first_tick",
    ),
    by_test(
        "scheduler-that-was-shut-down",
        "crates/redlock-cron/src/scheduler/singleton_scheduler.rs",
        "if self.is_shut_down().await {",
        "if self.is_shut_down().await && start.is_done {",
        "redlock-cron",
        "--test setup",
        "has_shut_down",
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
