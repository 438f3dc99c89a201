//! Mistakes in the job adapter: its policies, its attempts, its pauses.

use super::mutant::{Mutant, by_test};

const BACKLOG: &str = "crates/redlock-cron/src/tick/backlog.rs";
const MISSED: &str = "crates/redlock-cron/src/tick/missed.rs";
const CONTROL: &str = "crates/redlock-cron/src/control/actions.rs";
const CLAIM: &str = "crates/redlock-cron/src/replica/claims.rs";
const COURSE: &str = "crates/redlock-cron/src/tick/course.rs";
const EXECUTION: &str = "crates/redlock-cron/src/tick/execution.rs";
const PAUSE: &str = "crates/redlock-cron/src/tick/pause.rs";
const RETRY: &str = "crates/redlock-cron/src/tick/retry.rs";
const STATUS: &str = "crates/redlock-cron/src/control/status.rs";

pub(super) const JOBS: &[Mutant] = &[
    job(
        "overlap-does-not-wait",
        COURSE,
        "Overlap::Wait => claims.claim(ask(left)).await",
        "Overlap::Wait => claims.claim(ask(SHORT_WAIT)).await",
        "policies",
    ),
    job(
        "overlap-not-cancelled",
        COURSE,
        "                    self.cancel_others(tick).await;\n",
        "",
        "cancels_others",
    ),
    job(
        "overlapping-runs-share-a-lock",
        COURSE,
        "Overlap::Allow => self.id.tick_key(tick)",
        "Overlap::Allow => self.id.job_key()",
        "may_overlap",
    ),
    job(
        "run-cancels-itself",
        EXECUTION,
        "asked.watermark > tick",
        "asked.watermark >= tick",
        "cancels_others",
    ),
    job(
        "run-dropped-without-a-word",
        EXECUTION,
        "        told.stop(outcome);\n",
        "",
        "told_to_stop",
    ),
    job(
        "run-dropped-without-grace",
        EXECUTION,
        "        sleep(STOP_GRACE).await;\n        outcome\n",
        "        outcome\n",
        "told_to_stop",
    ),
    job(
        "shutdown-drops-without-a-word",
        EXECUTION,
        "            () = self.replica.tasks.stopping() => Outcome::Aborted,\n",
        "",
        "grace_is_over",
    ),
    job(
        "missed-ticks-untold",
        COURSE,
        "                    self.tell_missed(won.claim.last(), tick).await;\n",
        "",
        "tells_which_were_missed",
    ),
    job(
        "missed-ticks-too-late",
        COURSE,
        "            start_within: self.terms.window,\n",
        "",
        "missed",
    ),
    job(
        "missed-while-a-run-went-on",
        MISSED,
        "TimeDelta::from_std(*took)",
        "TimeDelta::from_std(*took / 100)",
        "were_not_missed",
    ),
    job(
        "missed-without-a-majority",
        MISSED,
        "Missed::All { .. } => in_time",
        "Missed::All { .. } => in_time && false",
        "without_a_majority",
    ),
    job(
        "backlog-opened-at-once",
        BACKLOG,
        "                working: true,\n",
        "                working: false,\n",
        "missed_ticks_run_before",
    ),
    job(
        "attempt-after-a-later-tick",
        RETRY,
        "if first.watermark != to_tick(tick) {",
        "if first.watermark < to_tick(tick) {",
        "attempts",
    ),
    job(
        "attempt-not-looked-at-again",
        RETRY,
        "if let Attempts::Over(refusal) = self.attempts(tick, attempt).await {",
        "if let (true, Attempts::Over(refusal)) = (false, self.attempts(tick, attempt).await) {",
        "later_tick_that_gets_the_lock_first",
    ),
    job(
        "attempts-without-end",
        RETRY,
        "Attempts::CutShort if *attempt == self.terms.max_attempts",
        "Attempts::CutShort if *attempt > self.terms.max_attempts",
        "no_more_runs",
    ),
    job(
        "attempt-after-a-failure",
        RETRY,
        "RunState::Ended { .. } if run.was_cut_short(&cut_short_outcomes())",
        "RunState::Ended { .. } if !run.is_open()",
        "ended_by_itself",
    ),
    job(
        "attempt-of-a-run-that-is-silent",
        RETRY,
        "_ if first.free_in == Some(Duration::ZERO) => Attempts::CutShort",
        "_ if first.free_in == Some(Duration::MAX) => Attempts::CutShort",
        "nothing_is_heard",
    ),
    job(
        "pause-not-looked-at",
        COURSE,
        "won: self.unless_paused(won).await?,",
        "won,",
        "a_pause_holds",
    ),
    job(
        "pause-by-the-replicas-clock",
        CONTROL,
        "Some(behind) => now += whole(behind),",
        "Some(_) => return Err(refusal),",
        "off_by_hours",
    ),
    job(
        "trigger-uses-up-ticks",
        CONTROL,
        "self.moment(self.id.manual_key(), now, wait)",
        "self.moment(self.id.job_key(), now, wait)",
        "uses_up_no_tick",
    ),
    job(
        "contention-taken-for-a-run",
        COURSE,
        "_ => (self.is_fresh(tick) && self.stands_for_itself(tick)).then_some(pause),",
        "_ => None,",
        "for_replicas_that_want_it_too",
    ),
    job(
        "run-taken-for-contention",
        COURSE,
        "            && run.is_open()\n        {\n            return if",
        "            && !run.is_open()\n        {\n            return if",
        "for_replicas_that_want_it_too",
    ),
    job(
        "a-moment-without-a-majority-costs-the-tick",
        MISSED,
        "Missed::Skip | Missed::Latest => in_time && self.is_newest(tick)",
        "Missed::Skip => false, Missed::Latest => in_time && self.is_newest(tick)",
        "a_majority_comes_back_within",
    ),
    job(
        "pause-asked-for-once",
        PAUSE,
        "if is_late || !won.claim.lease().is_held() {",
        "if look > 0 || is_late {",
        "can_tell_whether",
    ),
    scheduler(
        "disagreement-not-refused",
        "if let Some(within) = self.agreed_within {",
        "if let Some(within) = self.agreed_within.filter(|_| start.is_done) {",
        "of_another_configuration",
    ),
    job(
        "claims-leave-no-gap",
        "crates/redlock-core/src/client/mod.rs",
        "        turn.leave_a_gap(wait.duration()).await;\n",
        "        if request.claim.is_none() {\n            turn.leave_a_gap(wait.duration()).await;\n        }\n",
        "not_all_on_one_replica",
    ),
    job(
        "clock-offset-the-wrong-way",
        CLAIM,
        "Some(self.clock.now() - DateTime::<Utc>::from(theirs))",
        "Some(DateTime::<Utc>::from(theirs) - self.clock.now())",
        "how_far_off",
    ),
    job(
        "claim-time-without-the-wait",
        CLAIM,
        "        let decided = self.ask(tick, ask).await;\n",
        "        let decided = self.ask(tick, ask).await;\n        let asked = Instant::now();\n",
        "how_far_off",
    ),
    job(
        "oldest-for-the-latest",
        MISSED,
        "self.schedule.between(since, until, 1).await.pop()",
        "self.schedule.between(since, until, usize::MAX).await.first().copied()",
        "the_latest_missed_tick",
    ),
    job(
        "unconfirmed-pause-counts",
        PAUSE,
        "find(|run| !is_unstarted(run))",
        "find(|run| !is_unstarted(run) || run.fingerprint > 0)",
        "not_confirmed",
    ),
    job(
        "status-in-the-order-of-keys",
        STATUS,
        "runs.sort_by_key(|run| std::cmp::Reverse((run.record.claimed_at, run.record.token)));",
        "",
        "uses_up_no_tick",
    ),
    job(
        "status-with-the-oldest-first",
        STATUS,
        "std::cmp::Reverse((run.record.claimed_at, run.record.token))",
        "(run.record.claimed_at, run.record.token)",
        "uses_up_no_tick",
    ),
    scheduler(
        "start-looks-for-nothing-missed",
        "        for runner in self.jobs.all() {\n            self.begin(&runner);\n        }\n",
        "",
        "makes_up_for_missed_ticks",
    ),
    scheduler(
        "late-job-looks-for-nothing-missed",
        "if start.is_done {",
        "if start.is_done && self.agreed_within.is_some() {",
        "makes_up_for_missed_ticks",
    ),
];

/// A mistake about what a start makes up for.
const fn scheduler(
    name: &'static str,
    from: &'static str,
    to: &'static str,
    filter: &'static str,
) -> Mutant {
    by_test(
        name,
        "crates/redlock-cron/src/scheduler/singleton_scheduler.rs",
        from,
        to,
        "redlock-cron",
        "--test control",
        filter,
    )
}

/// A mistake that a test of the adapter notices.
pub(super) const fn job(
    name: &'static str,
    file: &'static str,
    from: &'static str,
    to: &'static str,
    filter: &'static str,
) -> Mutant {
    by_test(name, file, from, to, "redlock-cron", "--lib", filter)
}
