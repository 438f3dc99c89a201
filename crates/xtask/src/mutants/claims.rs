//! Mistakes about the ticks of jobs: what nodes judge and remember, and what a client makes of it.

use super::{
    mutant::{Catch, Mutant, by_simulation, on_servers, unit},
    script::alike,
    ticks::{HEARS_A_NODE_VERB, TAKES_ITS_OWN_TIME},
};

const CLAIM: &str = "crates/redlock-proto/src/client/acquisitions/claim.rs";
const ACQUIRE: &str = "crates/redlock-proto/src/client/acquisitions/attempt.rs";
const SETTLE: &str = "crates/redlock-proto/src/client/acquisitions/settle.rs";
const DRIVEN: &str = "crates/redlock-core/src/client/jobs.rs";
const JOBS: &str = "crates/redlock-proto/src/node/store/jobs.rs";

pub(super) const CLAIMS: &[Mutant] = &[
    ticks(
        "watermark-not-committed",
        ACQUIRE,
        "if claim.is_some() || !is_agreed {",
        "if !is_agreed {",
    ),
    ticks(
        "watermark-not-kept",
        JOBS,
        "                    self.advance(job, entry);\n",
        "",
    ),
    ticks(
        "claim-judged-by-the-clients-clock",
        CLAIM,
        "                window: *window,\n",
        "                window: { let _ = window; crate::Window::new(crate::Window::LONGEST, crate::Window::LONGEST) },\n",
    ),
    unit(
        "claim-after-a-run-that-was-cut-short",
        "crates/redlock-proto/src/client/acquisitions/attempt.rs",
        "        if let Some(last) = claim.and_then(Claiming::cut_short) {",
        "        if let Some(last) = claim.and_then(Claiming::cut_short).filter(|_| false) {",
        "--test clients",
        "after_a_run_that_was_cut_short",
    ),
    unit(
        "forgotten-for-good-where-others-may-grant",
        CLAIM,
        "            let for_good = self.forgot > tolerated;",
        "            let for_good = true;",
        "--test clients",
        "may_have_forgotten_is_settled",
    ),
    unit(
        "claim-of-a-tick-that-has-passed",
        JOBS,
        "            && last.tick >= tick\n",
        "            && last.tick > tick\n",
        "--lib",
        "remembers_nothing_before_its_commit",
    ),
    unit(
        "claim-behind-the-watermark",
        JOBS,
        "            && last.tick >= tick\n",
        "            && last.tick == tick\n",
        "--lib",
        "remembers_nothing_before_its_commit",
    ),
    ticks(
        "claim-too-early",
        JOBS,
        "if let Some(by) = window.too_early(tick, now) {",
        "if let Some(by) = window.too_early(tick, now).filter(|by| by.is_zero()) {",
    ),
    ticks(
        "claim-too-late",
        JOBS,
        "if let Some(by) = window.too_late(tick, now) {",
        "if let Some(by) = window.too_late(tick, now).filter(|by| by.is_zero()) {",
    ),
    ticks(
        "no-horizon",
        "crates/redlock-proto/src/node/store/mark.rs",
        "if let Some(horizon) = horizon {\n                    self.remember",
        "if let Some(horizon) = &horizon.filter(|_| self.vouched) {\n                    self.remember",
    ),
    ticks(
        "horizon-without-early",
        "crates/redlock-proto/src/tick/window.rs",
        "tick.0 <= horizon.saturating_add(self.early)",
        "tick.0 <= horizon",
    ),
    ticks(
        "unconfirmed-claim-started",
        SETTLE,
        "if usable && matches!(verdict, ExtensionVerdict::Extended { .. }) {",
        "if usable && !matches!(verdict, ExtensionVerdict::Revoked) {",
    ),
    unit(
        "late-votes-do-not-count",
        SETTLE,
        "let counts = counts(outcome, tokens);",
        "let counts = counts(outcome, tokens) && tokens.first().get() == 0;",
        "--test clients",
        "dies_at_any_moment_neither_fails_nor_delays_a_claim",
    ),
    unit(
        "late-votes-count-with-any-counter",
        SETTLE,
        "counter <= tokens.first().get()",
        "counter <= tokens.first().get().max(u64::MAX)",
        "--test clients",
        "late_vote_with_a_greater_counter",
    ),
    unit(
        "claim-given-up-burns-its-tick",
        SETTLE,
        "        leases.withdraw(id, cx, now);\n        leases.release(id, None, cx, now);\n        let failed",
        "        leases.release(id, None, cx, now);\n        let failed",
        "--test clients",
        "can_no_longer_be_confirmed",
    ),
    unit(
        "claim-kept-while-it-cannot-be-confirmed",
        SETTLE,
        "hopeful >= quorum.majority() || reachable",
        "hopeful >= quorum.majority().min(1) || reachable",
        "--test clients",
        "can_no_longer_be_confirmed",
    ),
    unit(
        "withdrawal-of-any-run-of-the-tick",
        JOBS,
        "runs.iter().position(|run| run == entry)",
        "runs.iter().position(|run| run.tick == entry.tick)",
        "--lib",
        "only_the_very_run_is_withdrawn",
    ),
    ticks(
        "buried-owner-claims",
        JOBS,
        "                self.is_there(&space.tomb(*owner), now)\n            }\n            JobVerb::Commit",
        "                self.is_there(&space.tomb(*owner), now) && self.jobs.is_empty()\n            }\n            JobVerb::Commit",
    ),
    unit(
        "commit-without-the-lock",
        JOBS,
        "if self.is_owner(lock, *owner) {",
        "if self.is_owner(lock, *owner) || !self.keys.is_empty() {",
        "--lib",
        "only_the_owner",
    ),
    unit(
        "watermark-goes-back",
        JOBS,
        "last.tick >= entry.tick && *last != entry",
        "last.tick > Tick::MAX && *last != entry",
        "--lib",
        "never_goes_back",
    ),
    unit(
        "passed-is-not-final",
        CLAIM,
        "        self.passed().is_some()\n",
        "        self.passed().is_some() && self.early.len() > 99\n",
        "--test clients",
        "ends_the_claim_at_once",
    ),
    unit(
        "wrong-clock-judges",
        "crates/redlock-proto/src/client/acquisitions/mod.rs",
        "let votes = cx.nodes.members().vote(node, now.clock).is_ok();",
        "let votes = node < cx.quorum().nodes() && now.clock > Instant::ORIGIN;",
        "--test clients",
        "has_no_say",
    ),
    unit(
        "told-to-vote-with-a-wrong-clock",
        "crates/redlock-proto/src/membership/members.rs",
        "        self.clocks.agrees(node, now).then_some(())?;\n",
        "        let _ = now;\n",
        "--test clients",
        "only_when_its_clock_is_right",
    ),
    unit(
        "horizon-of-the-telling",
        "crates/redlock-proto/src/node/store/mod.rs",
        HEARS_A_NODE_VERB,
        TAKES_ITS_OWN_TIME,
        "--test clients",
        "brings_no_tick_back",
    ),
    unit(
        "commit-of-a-namesake",
        JOBS,
        "last.tick >= entry.tick && *last != entry",
        "last.tick >= entry.tick && !last.is_same_run(entry)",
        "--lib",
        "never_goes_back",
    ),
    masters(
        "claim-looks-before-it-asks",
        DRIVEN,
        "        let request = AcquireRequest {\n",
        "        let (job, lock) = (claim.job.clone(), acquire.key.clone());\n        let _ = client.engine.read_job(job, lock).await;\n        let request = AcquireRequest {\n",
        "two_round_trips",
    ),
    masters(
        "masters-told-to-vote-with-a-wrong-clock",
        "crates/redlock-proto/src/membership/members.rs",
        "        self.clocks.agrees(node, now).then_some(())?;\n",
        "        let _ = now;\n",
        "with_a_wrong_clock",
    ),
    masters(
        "masters-without-a-horizon",
        "crates/redlock-core/src/node/redis/node.lua",
        "not blesses and not (found and found >= horizon) and store",
        "blesses and not (found and found >= horizon) and store",
        "every_master_has_come_back_empty",
    ),
    unit(
        "commit-asked-for-once",
        SETTLE,
        "if may_wait && at < until && may",
        "if may_wait && at > until && may",
        "--test clients",
        "asked_for_again",
    ),
    unit(
        "commit-goes-on-for-nobody",
        "crates/redlock-proto/src/client/acquisitions/mod.rs",
        "                cx.timers.cancel(timer);\n            }\n            leases.withdraw",
        "                let _ = timer;\n                return;\n            }\n            leases.withdraw",
        "--test clients",
        "nobody_waits_for_any_more",
    ),
    unit(
        "unconfirmed-claim-remembered",
        SETTLE,
        "        leases.withdraw(id, cx, now);\n        leases.release(id, None, cx, now);\n        let why",
        "        leases.release(id, None, cx, now);\n        let why",
        "--test clients",
        "nobody_remembers_it_then",
    ),
    unit(
        "window-that-opens-not-waited-for",
        ACQUIRE,
        "&& now.clock + by < acquisition.request.wait_until",
        "&& now.clock + by < now.clock",
        "--test clients",
        "opens_during_the_wait",
    ),
    unit(
        "status-by-one-node",
        "crates/redlock-proto/src/client/job_state.rs",
        "if said.clone().count() < majority {",
        "if said.clone().count() < majority.min(1) {",
        "--test clients",
        "too_few_nodes",
    ),
    Mutant {
        name: "runs-unbounded",
        file: JOBS,
        from: "            runs.truncate(JobEntry::MOST);\n",
        to: "            runs.truncate(JobEntry::MOST + 1);\n",
        catch: Catch::Test {
            package: "redlock-core",
            target: "--test differential",
            filter: "alike",
        },
    },
    alike(
        "script-claim-of-a-passed-tick",
        "watermark >= tick then",
        "watermark > tick then",
    ),
    alike(
        "script-claim-too-early",
        "if tick - early > now then",
        "if tick - early > now + 1 then",
    ),
    alike(
        "script-claim-too-late",
        "if tick + late < now then",
        "if tick + late < now - 1 then",
    ),
    alike(
        "script-claim-by-seconds",
        "local now, last, watermark = math.floor(replies[3] / 1000), nil, nil",
        "local now, last, watermark = math.floor(replies[3] / 1000000) * 1000, nil, nil",
    ),
    alike(
        "script-claim-of-what-may-be-forgotten",
        "tick - early <= tonumber(horizon) then",
        "tick - early < tonumber(horizon) then",
    ),
    alike(
        "script-horizon-without-early",
        "tick - early <= tonumber(horizon) then",
        "tick <= horizon then",
    ),
    alike(
        "script-claim-of-a-buried-owner",
        "      if owners[place + 1] then return -3, counter end\n",
        "",
    ),
    alike(
        "script-commit-without-compare",
        "      if found ~= owner then return nil, 0 end\n      if runs then",
        "      if runs then",
    ),
    alike(
        "script-watermark-not-committed",
        "local error = store(place + 1, run, ILLEGIBLE)",
        "local error = nil",
    ),
    alike(
        "script-watermark-goes-back",
        "local is_newer = not last or watermark < tick",
        "local is_newer = not last or watermark ~= tick",
    ),
    alike(
        "script-commit-of-anothers-tick",
        "if not is_newer and last ~= run then",
        "if not is_newer and watermark > tick then",
    ),
    alike(
        "script-commit-of-a-namesake",
        "if not is_newer and last ~= run then",
        "if not is_newer and string.sub(last, 1, 34) ~= string.sub(run, 1, 34) then",
    ),
    alike(
        "script-runs-unbounded",
        "local MOST_RUNS = 10\n",
        "local MOST_RUNS = 11\n",
    ),
    alike(
        "script-runs-forgotten-in-their-call",
        "    owners[place] = text\n",
        "",
    ),
    alike(
        "script-record-adds",
        "      if not from then return -2, 0 end\n      local rest",
        "      if not from then return store(place, run .. text, ILLEGIBLE) or 0, 0 end\n      local rest",
    ),
    alike(
        "script-record-of-the-newest-only",
        "local from = runs and string.find('\\n' .. runs, '\\n' .. run, 1, true)",
        "local from = runs and string.sub(runs, 1, #run) == run and 1",
    ),
    alike(
        "script-horizon-of-the-telling",
        "      local found, blesses = owners[place], horizon == ''\n",
        "      local found, blesses = owners[place], horizon == ''\n      if not blesses then horizon = string.format('%016.0f', math.floor(replies[3] / 1000)) end\n",
    ),
    alike(
        "script-no-horizon",
        "not blesses and not (found and found >= horizon) and store",
        "blesses and not (found and found >= horizon) and store",
    ),
];

/// A mistake that the simulation of jobs notices.
const fn ticks(
    name: &'static str,
    file: &'static str,
    from: &'static str,
    to: &'static str,
) -> Mutant {
    by_simulation(name, file, from, to, "ticks", 5_000)
}

/// A mistake that shows on real masters.
const fn masters(
    name: &'static str,
    file: &'static str,
    from: &'static str,
    to: &'static str,
    filter: &'static str,
) -> Mutant {
    on_servers(name, file, from, to, "--test claims", filter)
}
