//! Mistakes in the job adapter: what is made up for, started again or forgotten, and whose turn it is.

use super::{
    jobs::job,
    mutant::{Mutant, by_test},
};

const CATCH_UP: &str = "crates/redlock-cron/src/catch_up.rs";
const COURSE: &str = "crates/redlock-cron/src/course.rs";
const STAND_BY: &str = "crates/redlock-cron/src/stand_by.rs";

pub(super) const BACKLOG: &[Mutant] = &[
    job(
        "winner-asks-first-again",
        "crates/redlock-cron/src/turns.rs",
        "        let mut last = winners.values().rev().take(others);",
        "        let mut last = winners.values().rev().take(others * 0);",
        "turns",
    ),
    job(
        "tick-asked-for-by-the-replicas-own-clock",
        "crates/redlock-cron/src/runner.rs",
        "        self.now() - self.replica.ahead()",
        "        self.now() - self.replica.ahead() * 0",
        "like_shares",
    ),
    job(
        "ticks-that-a-wrong-clock-passed-over-are-dealt-with",
        "crates/redlock-cron/src/due.rs",
        "        self.until = self.until.min(now + LEAD);",
        "        let _ = now;",
        "ahead",
    ),
    job(
        "tick-asked-for-before-it-is-due",
        COURSE,
        "        sleep(lag(self.nodes_now(), tick + turn)).await;",
        "        sleep(lag(self.nodes_now(), tick + turn) / 50).await;",
        "waits_for_the_nodes_clocks",
    ),
    job(
        "a-hundred-missed-ticks-are-all",
        CATCH_UP,
        "self.schedule.between(since, until, max).await",
        "self.schedule.between(since, until, max.min(100)).await",
        "all_missed_ticks_are_all",
    ),
    job(
        "a-hundred-ticks-passed-over-are-all",
        "crates/redlock-cron/src/runner.rs",
        "self.schedule.between(due.after, tick, max).await",
        "self.schedule.between(due.after, tick, max.min(100)).await",
        "passed_over_are_made_up_for",
    ),
    job(
        "more-than-a-hundred-missed-ticks-untold",
        CATCH_UP,
        "        if missed.len() == MOST_TOLD {",
        "        if missed.len() > MOST_TOLD {",
        "all_missed_ticks_are_all",
    ),
    job(
        "tick-lost-to-a-run-here-that-makes-up-for-another",
        "crates/redlock-cron/src/tasks.rs",
        "of_job.any(|running| !running.trigger.is_making_up())",
        "of_job.any(|running| !running.trigger.is_making_up() || true)",
        "makes_up_for_another",
    ),
    job(
        "tick-lost-to-a-run-elsewhere-that-makes-up-for-another",
        COURSE,
        "                true => InTheWay::MadeUp,\n",
        "                true => InTheWay::Run,\n",
        "makes_up_for_another",
    ),
    job(
        "ticks-that-no-schedule-promised",
        CATCH_UP,
        "            false => covered(last).max(self.added),",
        "            false => covered(last),",
        "never_promised",
    ),
    job(
        "policy-taken-for-another-schedule",
        "crates/redlock-cron/src/fingerprint.rs",
        "        (number & !MADE_UP) >> HALF == self.number() >> HALF",
        "        number & !MADE_UP == self.number()",
        "never_promised",
    ),
    job(
        "missing-day-ends-the-schedule",
        "crates/redlock-cron/src/schedule/mod.rs",
        "                        Err(_) => (missing_days::next_end(&from.0)?, true),\n",
        "                        Err(_) => return None,\n",
        "missing_days",
    ),
    job(
        "tick-of-a-missing-day-on-the-next",
        "crates/redlock-cron/src/schedule/mod.rs",
        "Ok(next) if missing_days::is_from_one(&next, cron) => (next, false),",
        "Ok(next) if missing_days::is_from_one(&next, cron) && false => (next, false),",
        "missing_days",
    ),
    by_test(
        "one-shot-that-has-passed-refused",
        "crates/redlock-cron/src/replica.rs",
        " && schedule.latest_at(now).is_none()",
        "",
        "redlock-cron",
        "--test setup",
        "whose_last_tick_has_passed",
    ),
    job(
        "end-of-a-pause-not-read",
        "crates/redlock-cron/src/switch.rs",
        "            _ if number == Self::Resumed.number() => Self::Resumed,\n",
        "",
        "switch",
    ),
    job(
        "names-in-the-fingerprint",
        "crates/redlock-cron/src/fingerprint.rs",
        "        .number(5, overlap)\n",
        "        .text(5, &format!(\"{:?}\", (overlap, terms.overlap).1))\n",
        "the_encoding_is_the_one",
    ),
    job(
        "later-tick-passes-over-a-run-cut-short",
        COURSE,
        "            _ => After::Settled(settled),\n",
        "            _ => {\n                let _ = settled;\n                After::Whatever\n            }\n",
        "pass_over",
    ),
    job(
        "run-cut-short-not-started-before-a-later-tick",
        COURSE,
        "                && self.settle(before).await\n",
        "",
        "comes_before_the_ticks_that_were_missed",
    ),
    job(
        "tick-lost-to-a-run-that-is-started-again",
        COURSE,
        "                return InTheWay::MadeUp;\n",
        "                return InTheWay::Run;\n",
        "due_before_the_last_run_is_known",
    ),
    job(
        "retry-only-while-a-tick-may-start",
        STAND_BY,
        "            start_within: self.terms.retry_within,\n",
        "",
        "a_run_of_ten_minutes",
    ),
    job(
        "retry-window-of-the-runs-limit-alone",
        "crates/redlock-cron/src/terms.rs",
        "runs.map_or(RETRY_WITHIN, |runs|",
        "runs.map_or(start_within, |runs|",
        "a_run_of_ten_minutes",
    ),
    job(
        "forgotten-tick-blocks-those-after-it",
        "crates/redlock-proto/src/client/claim.rs",
        "            return is_why.then_some(NotClaimed::Forgotten { for_good });\n",
        "            return (is_why && others > votes.quorum().nodes()).then_some(NotClaimed::Forgotten { for_good });\n",
        "all_nodes_may_have_forgotten",
    ),
];
