//! Mistakes in the job adapter, and in what it stands on, that show on replicas in processes of their own.

use super::mutant::{Mutant, on_servers};

const MISSED: &str = "crates/redlock-cron/src/tick/missed.rs";
const CLAIM: &str = "crates/redlock-proto/src/client/acquisitions/claim.rs";
const ACQUIRE: &str = "crates/redlock-proto/src/client/acquisitions/attempt.rs";
const CONTROL: &str = "crates/redlock-cron/src/control/actions.rs";
const COURSE: &str = "crates/redlock-cron/src/tick/course.rs";
const EXECUTION: &str = "crates/redlock-cron/src/tick/execution.rs";
const RUNNER: &str = "crates/redlock-cron/src/tick/runner.rs";
const SCHEDULER: &str = "crates/redlock-cron/src/scheduler/singleton_scheduler.rs";
const LOOK: &str = "crates/redlock-cron/src/control/status.rs";
const PAUSE: &str = "crates/redlock-cron/src/tick/pause.rs";
const RETRY: &str = "crates/redlock-cron/src/tick/retry.rs";
const START: &str = "crates/redlock-cron/src/tick/start.rs";
const STATUS: &str = "crates/redlock-cron/src/record/status.rs";
const TASKS: &str = "crates/redlock-cron/src/replica/tasks.rs";

const JOBS: &str = "--test jobs";
const ATTEMPTS: &str = "--test jobs_attempts";
const OVERLAP: &str = "--test jobs_overlap";
const HANDLED: &str = "--test jobs_control";
const LOST_LEASE: &str = "--test jobs_lost_lease";

pub(super) const FLEET: &[Mutant] = &[
    on_servers(
        "tick-decided-by-the-replicas-clock",
        CLAIM,
        "                window: *window,\n",
        "                window: { let _ = window; crate::Window::new(crate::Window::LONGEST, crate::Window::LONGEST) },\n",
        JOBS,
        "skewed_clocks",
    ),
    on_servers(
        "watermark-not-committed",
        ACQUIRE,
        "if claim.is_some() || !is_agreed {",
        "if !is_agreed {",
        JOBS,
        "skewed_clocks",
    ),
    on_servers(
        "tick-named-after-the-wake-up",
        RUNNER,
        "            tasks.spawn(Arc::clone(self).tick(tick, Trigger::Schedule));",
        "            tasks.spawn(Arc::clone(self).tick({ let _ = tick; now }, Trigger::Schedule));",
        JOBS,
        "skewed_clocks",
    ),
    on_servers(
        "ticks-run-without-the-jobs-lock",
        COURSE,
        "            _ => self.id.job_key(),\n        };\n        ClaimRequest {",
        "            _ => self.id.tick_key(tick),\n        };\n        ClaimRequest {",
        JOBS,
        "skewed_clocks",
    ),
    on_servers(
        "tick-started-by-one-master",
        "crates/redlock-proto/src/membership/quorum.rs",
        "self.nodes.get() / 2 + 1",
        "self.nodes.get() / 2",
        JOBS,
        "a_majority_stops_all",
    ),
    on_servers(
        "no-majority-is-not-told",
        "crates/redlock-cron/src/replica/claims.rs",
        "            AcquireErrorKind::NoQuorum\n            | AcquireErrorKind::Quarantined",
        "            AcquireErrorKind::Quarantined",
        JOBS,
        "a_majority_stops_all",
    ),
    on_servers(
        "run-not-dropped-on-loss",
        EXECUTION,
        "            OnLost::Abort => reason,\n",
        "            OnLost::Abort => std::future::pending().await,\n",
        JOBS,
        "leaves_the_next_tick",
    ),
    on_servers(
        "drain-not-waited-for",
        TASKS,
        "if timeout(grace, self.tracker.wait()).await.is_err() {",
        "if timeout(grace / 1_000, self.tracker.wait()).await.is_err() {",
        JOBS,
        "leaves_the_next_tick",
    ),
    on_servers(
        "unfinished-run-untold",
        START,
        "            Outcome::Aborted => in_flight.dropped(),\n",
        "",
        JOBS,
        "leaves_the_next_tick",
    ),
    on_servers(
        "missed-not-told",
        COURSE,
        "                    self.tell_missed(won.claim.last(), tick).await;\n",
        "",
        JOBS,
        "a_rolling_restart",
    ),
    on_servers(
        "oldest-for-the-latest",
        MISSED,
        "self.schedule.between(since, until, 1).await.pop()",
        "self.schedule.between(since, until, usize::MAX).await.first().copied()",
        JOBS,
        "a_rolling_restart",
    ),
    on_servers(
        "start-looks-for-nothing-missed",
        SCHEDULER,
        "        for runner in self.jobs.all() {\n            self.begin(&runner);\n",
        "        for runner in self.jobs.all() {\n            runner.wake();\n            let _ = runner.backlog.open();\n",
        JOBS,
        "a_rolling_restart",
    ),
    on_servers(
        "attempts-without-end",
        RETRY,
        "Attempts::CutShort if *attempt == self.terms.max_attempts",
        "Attempts::CutShort if *attempt > self.terms.max_attempts",
        ATTEMPTS,
        "is_killed",
    ),
    on_servers(
        "attempt-claimed-by-each",
        RETRY,
        "..self.ask(self.attempt_key(*attempt + 1), tick, SHORT_WAIT)",
        "..self.ask(\n                    ResourceKey::new(\"redlock-cron-attempt\", &self.replica.claims.replica).expect(\"it fits\"),\n                    tick,\n                    SHORT_WAIT,\n                )",
        ATTEMPTS,
        "is_killed",
    ),
    on_servers(
        "silence-is-no-end",
        RETRY,
        "_ if first.free_in == Some(Duration::ZERO) => Attempts::CutShort",
        "_ if first.free_in == Some(Duration::MAX) => Attempts::CutShort",
        ATTEMPTS,
        "is_killed",
    ),
    on_servers(
        "run-beside-its-next-attempt",
        EXECUTION,
        "            OnLost::Abort => reason,\n",
        "            OnLost::Abort => std::future::pending().await,\n",
        ATTEMPTS,
        "paused_beyond_its_lease",
    ),
    on_servers(
        "shutdown-cuts-nothing-short",
        "crates/redlock-cron/src/replica/claims.rs",
        "[Outcome::Lost, Outcome::Aborted, Outcome::Draining]",
        "[Outcome::Lost, Outcome::Draining]",
        ATTEMPTS,
        "a_shutdown_cuts_short",
    ),
    on_servers(
        "shutdown-keeps-the-lease",
        START,
        "        self.finish(start.won.claim, outcome.as_str(), took).await;\n        report\n",
        "        if outcome != Outcome::Aborted {\n            self.finish(start.won.claim, outcome.as_str(), took).await;\n        } else {\n            drop(Box::leak(Box::new(start.won)));\n        }\n        report\n",
        ATTEMPTS,
        "a_shutdown_cuts_short",
    ),
    on_servers(
        "overlap-not-cancelled",
        COURSE,
        "                    self.cancel_others(tick).await;\n",
        "",
        OVERLAP,
        "cancels_others",
    ),
    on_servers(
        "run-dropped-without-a-word",
        EXECUTION,
        "        told.stop(outcome);\n        sleep(STOP_GRACE).await;\n",
        "",
        OVERLAP,
        "cancels_others",
    ),
    on_servers(
        "overlap-does-not-wait",
        COURSE,
        "Overlap::Wait => claims.claim(ask(left)).await",
        "Overlap::Wait => claims.claim(ask(SHORT_WAIT)).await",
        OVERLAP,
        "that_waits",
    ),
    on_servers(
        "overlapping-runs-share-a-lock",
        COURSE,
        "Overlap::Allow => self.id.tick_key(tick)",
        "Overlap::Allow => self.id.job_key()",
        OVERLAP,
        "side_by_side",
    ),
    on_servers(
        "run-without-end",
        EXECUTION,
        "                Some(limit) => sleep(limit).await,\n",
        "                Some(limit) => sleep(limit * 100).await,\n",
        OVERLAP,
        "takes_too_long",
    ),
    on_servers(
        "pause-not-looked-at",
        COURSE,
        "won: self.unless_paused(won).await?,",
        "won,",
        HANDLED,
        "a_pause_keeps",
    ),
    on_servers(
        "end-of-a-pause-forgotten",
        PAUSE,
        "Some(last.is_some_and(|last| Switch::of(last.fingerprint) == Switch::Paused))",
        "Some(last.is_some() && state.runs.iter().any(|run| Switch::of(run.fingerprint) == Switch::Paused))",
        HANDLED,
        "a_pause_keeps",
    ),
    on_servers(
        "asked-for-beside-a-run",
        CONTROL,
        "let ask = |wait| move |now| self.moment(self.id.manual_key(), now, wait);",
        "let ask = |wait| move |now| ClaimRequest {\n            lock: self.id.manual_key(),\n            ..self.moment(self.id.manual_key(), now, wait)\n        };",
        HANDLED,
        "asks_for",
    ),
    on_servers(
        "asked-for-with-the-next-tick",
        CONTROL,
        "let ask = |wait| move |now| self.moment(self.id.manual_key(), now, wait);",
        "let ask = |wait| {\n            move |now| {\n                let tick = self.schedule.next_after(now).unwrap_or(now);\n                ClaimRequest {\n                    early: SHORT_WAIT * 10,\n                    ..self.moment(self.id.job_key(), tick, wait)\n                }\n            }\n        };",
        HANDLED,
        "asks_for",
    ),
    on_servers(
        "holder-untold",
        STATUS,
        "newest.filter(|_| self.free_in != Some(Duration::ZERO))",
        "newest.filter(|_| self.free_in == Some(Duration::ZERO))",
        HANDLED,
        "who_has_the_job",
    ),
    on_servers(
        "status-of-all-masters-or-none",
        LOOK,
        "let first = first.and_then(|status| status.state().cloned());",
        "let is_up = |report: &redlock_core::NodeReport| report.answer == redlock_core::NodeAnswer::Reachable;\n        let first = first.filter(|status| status.reports().iter().all(is_up));\n        let first = first.and_then(|status| status.state().cloned());",
        HANDLED,
        "who_has_the_job",
    ),
    on_servers(
        "skipped-tick-forgotten",
        "crates/redlock-cron/src/record/journal.rs",
        "        seen.skipped.push_front(report.clone());\n",
        "",
        HANDLED,
        "who_has_the_job",
    ),
    on_servers(
        "lost-lease-untold",
        EXECUTION,
        "                told.stop(Outcome::Lost);\n",
        "",
        LOST_LEASE,
        "told_before",
    ),
    on_servers(
        "lost-lease-told-late",
        EXECUTION,
        "                told.stop(Outcome::Lost);\n",
        "                sleep(STOP_GRACE).await;\n                told.stop(Outcome::Lost);\n",
        LOST_LEASE,
        "told_before",
    ),
];
