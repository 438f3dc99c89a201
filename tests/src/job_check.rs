//! An independent check of what became of the ticks of jobs, of requests and of backfills.
//!
//! It computes ticks from the interval of a job alone, and reads what replicas wrote and what a test did to them.
//! It asks no node, and shares no code with the scheduler.
//!
//! The *end* of a tick is one of these:
//!
//! - a run that ended by itself: it returned, panicked, took too long or was cancelled;
//! - of a job without further attempts, also a run that was lost or aborted, or whose process was killed;
//! - a report that the tick was missed, or was given up.
//!
//! A tick has exactly one end, or a replica reports a reason for none, and the logs agree with the reason.
//! `not_winner` is no reason, because another replica has the tick, or reports it later.
//! A kill is one for a tick that its replica may have claimed, and for those before it that its claim had passed.
//! A request and a tick of a backfill have an end in the same way, but no further attempt.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::RangeInclusive,
    time::Duration,
};

use redlock_cron::chrono::{DateTime, SecondsFormat};

use crate::{Job, JobEvent, JobMoment, MissedTicks, OverlapPolicy};

/// The jobs of a test, and what the test did to their replicas.
#[derive(Clone, Debug)]
pub struct JobCheck {
    /// The jobs, each of which is due at the multiples of its interval.
    pub jobs: Vec<Job>,
    /// What the wall clock showed at the beginning of [`now`](crate::now)'s time, in milliseconds.
    pub wall: i64,
    /// The time to live of leases.
    pub ttl: Duration,
    /// The ticks that must have an end, in seconds since the epoch.
    pub ticks: RangeInclusive<i64>,
    /// The replicas that were killed or frozen.
    pub stops: Vec<ReplicaStop>,
    /// The requests for runs: each with its job, and its moment in milliseconds since the epoch.
    pub requests: Vec<(String, i64)>,
    /// The requests for backfills: each with its job, its moment in milliseconds, and its range in seconds since the epoch.
    pub backfills: Vec<(String, i64, RangeInclusive<i64>)>,
}

/// A replica that was killed or frozen.
#[derive(Clone, Debug)]
pub struct ReplicaStop {
    /// The replica.
    pub replica: String,
    /// When it stopped, as [`now`](crate::now) counts.
    pub at: Duration,
    /// Whether it never went on.
    pub is_kill: bool,
}

/// What a run or a report is about.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Kind {
    Tick,
    Request,
    Backfill,
}

/// A run, with moments in milliseconds since the epoch.
struct SeenRun<'a> {
    attempt: u32,
    replica: &'a str,
    began: i64,
    /// When and how it ended; none while it goes on.
    end: Option<(i64, &'a str)>,
}

/// A report of a replica other than that of a run.
struct Report<'a> {
    at: i64,
    replica: &'a str,
    outcome: &'a str,
}

/// What is written of a tick or a request.
#[derive(Default)]
struct Course<'a> {
    runs: Vec<SeenRun<'a>>,
    reports: Vec<Report<'a>>,
}

/// What is written of one job, by instants in milliseconds since the epoch.
struct Facts<'a> {
    check: &'a JobCheck,
    job: &'a Job,
    courses: BTreeMap<(i64, Kind), Course<'a>>,
}

impl JobCheck {
    /// Returns what is wrong with what the replicas wrote; while they go on, a tick without an end may still get one.
    pub fn violations(&self, events: &[JobEvent]) -> Vec<String> {
        let mut all = Vec::new();
        for job in &self.jobs {
            let mut facts = Facts {
                check: self,
                job,
                courses: BTreeMap::new(),
            };
            let of_job = events.iter().filter(|event| event.job == job.name);
            of_job.for_each(|event| facts.note(event));
            facts.end_killed_runs();
            let wrong = [facts.of_runs(), facts.of_what_is_owed()].concat();
            all.extend(wrong.iter().map(|wrong| format!("{}: {wrong}", job.name)));
        }
        all
    }

    fn wall(&self, moment: Duration) -> i64 {
        self.wall + millis(moment)
    }

    /// Returns when replicas were killed.
    fn kills(&self) -> impl Iterator<Item = (&str, i64)> {
        let kills = self.stops.iter().filter(|stop| stop.is_kill);
        kills.map(|stop| (&*stop.replica, self.wall(stop.at)))
    }

    /// Returns whether the replica of a run stopped before it could tell the nodes that the run had ended by itself.
    fn may_be_untold(&self, run: &SeenRun<'_>) -> bool {
        let mut stops = self.stops.iter().filter(|stop| stop.replica == run.replica);
        run.has_ended_by_itself()
            && stops.any(|stop| (self.wall(stop.at) - run.over()).abs() < SLACK)
    }
}

impl SeenRun<'_> {
    /// Returns when it was over, or a time after all others.
    fn over(&self) -> i64 {
        self.end.map_or(i64::MAX, |(at, _)| at)
    }

    fn outcome(&self) -> &str {
        self.end.map_or("no report", |(_, outcome)| outcome)
    }

    fn has_ended_by_itself(&self) -> bool {
        BY_THEMSELVES.contains(&self.outcome())
    }
}

impl<'a> Facts<'a> {
    fn note(&mut self, event: &'a JobEvent) {
        let (at, replica) = (self.check.wall(event.at), &*event.replica);
        let instant = 1_000 * event.tick + i64::from(event.millis);
        let run = |attempt, end| SeenRun {
            attempt,
            replica,
            began: at,
            end,
        };
        match &event.moment {
            JobMoment::Began {
                attempt, trigger, ..
            } => {
                let course = self.courses.entry((instant, Kind::of(trigger)));
                course.or_default().runs.push(run(*attempt, None));
            }
            JobMoment::Became {
                outcome,
                trigger,
                attempt,
                ..
            } if BY_THEMSELVES.contains(&&**outcome) || CUT_SHORT.contains(&&**outcome) => {
                let course = self.courses.entry((instant, Kind::of(trigger)));
                let runs = &mut course.or_default().runs;
                let is_it = |run: &&mut SeenRun<'_>| {
                    run.end.is_none() && (run.replica, run.attempt) == (replica, *attempt)
                };
                let end = Some((at, &**outcome));
                match runs.iter_mut().find(is_it) {
                    Some(run) => run.end = end,
                    // It was lost or aborted before its first step.
                    None => runs.push(run(*attempt, end)),
                }
            }
            JobMoment::Became {
                outcome,
                trigger,
                last,
                ..
            } => {
                let later = self.ticks(event.tick + 1, *last);
                for instant in [instant].into_iter().chain(later) {
                    let course = self.courses.entry((instant, Kind::of(trigger)));
                    course.or_default().reports.push(Report {
                        at,
                        replica,
                        outcome,
                    });
                }
            }
            _ => {}
        }
    }

    /// Ends the runs whose processes were killed, when their leases were over.
    fn end_killed_runs(&mut self) {
        let ttl = millis(self.check.ttl);
        for run in self
            .courses
            .values_mut()
            .flat_map(|course| &mut course.runs)
        {
            let mut kills = self.check.kills();
            let kill = kills.find(|(replica, at)| *replica == run.replica && run.began <= *at);
            run.end = run.end.or_else(|| kill.map(|(_, at)| (at + ttl, "killed")));
        }
    }

    /// Returns the ticks of a job between two seconds, which are among them.
    fn ticks(&self, from: i64, to: i64) -> impl Iterator<Item = i64> + use<> {
        let every = millis(self.job.every);
        let first = (1_000 * from + every - 1).div_euclid(every) * every;
        (first..=1_000 * to).step_by(usize::try_from(every).expect("it is positive"))
    }

    fn attempts(&self) -> usize {
        self.job
            .policies
            .max_attempts
            .map_or(1, |most| most as usize)
    }

    fn runs(&self, instant: i64, kind: Kind) -> &[SeenRun<'a>] {
        let course = self.courses.get(&(instant, kind));
        course.map_or(&[], |course| &course.runs)
    }

    /// Checks that no run began that may not.
    fn of_runs(&self) -> Vec<String> {
        let mut wrong = Vec::new();
        for ((instant, kind), course) in &self.courses {
            let mut say = |what: &str| wrong.push(course.says(*instant, *kind, what));
            let is_tick = self.ticks(instant / 1_000, instant / 1_000).next() == Some(*instant);
            if !is_tick && *kind != Kind::Request && !course.runs.is_empty() {
                say("is no tick, and began");
            }
            let used = course.runs.iter().filter(|run| run.outcome() != "aborted");
            if *kind == Kind::Tick && used.count() > self.attempts() {
                say("began more often than it may");
            }
            let attempts: BTreeSet<_> = course.runs.iter().map(|run| run.attempt).collect();
            if attempts.len() < course.runs.len() {
                say("has two runs of one number");
            }
            let others = [Kind::Tick, Kind::Backfill].map(|kind| self.runs(*instant, kind));
            let has_ended = |run: &SeenRun<'_>| {
                let same = course.runs.iter().any(|of| std::ptr::eq(of, run));
                let for_good = run.outcome() == "ok" || same && run.has_ended_by_itself();
                let before = course.runs.iter().any(|later| run.over() < later.began);
                for_good && before && !self.check.may_be_untold(run)
            };
            if others.into_iter().flatten().any(has_ended) {
                say("began again after its end");
            }
        }
        wrong
    }

    /// Checks that each tick, request and tick of a backfill has one end, or a reason for none.
    fn of_what_is_owed(&self) -> Vec<String> {
        let of_job = |job: &String| *job == self.job.name;
        let check = self.check;
        let ticks = self.ticks(*check.ticks.start(), *check.ticks.end());
        let ticks = ticks.map(|tick| (tick, Kind::Tick, tick));
        let requests = check.requests.iter().filter(|(job, _)| of_job(job));
        let requests = requests.map(|(_, moment)| (*moment, Kind::Request, *moment));
        let backfills = check.backfills.iter().filter(|(job, ..)| of_job(job));
        let backfilled = backfills.flat_map(|(_, moment, range)| {
            let ticks = self.ticks(*range.start(), *range.end());
            ticks.map(|tick| (tick, Kind::Backfill, *moment))
        });
        // A kill excuses one of each kind.
        let (mut wrong, mut kills) = (Vec::new(), BTreeSet::new());
        for (instant, kind, since) in ticks.chain(requests).chain(backfilled) {
            let nothing = Course::default();
            let course = self.courses.get(&(instant, kind)).unwrap_or(&nothing);
            let mut say = |what: &str| wrong.push(course.says(instant, kind, what));
            let mut is_excused = || {
                let claimed = since - SLACK..since + self.reach(kind);
                let mut kills_then = check.kills().filter(|(_, at)| claimed.contains(at));
                kills_then.any(|(_, at)| kills.insert((kind, at)))
            };
            let is_reason = |report: &Report<'_>| self.is_reason(instant, kind, course, report);
            let has_reason = course.reports.iter().any(is_reason);
            match self.ends(kind, course) {
                0 if has_reason || self.is_made_good(instant, kind) => {}
                0 if kind == Kind::Tick && course.is_silent() && self.was_passed(instant) => {}
                0 if course.runs.is_empty() && self.is_last(kind) && is_excused() => {}
                0 => say("has no end"),
                1 => {}
                _ if course.runs.iter().any(|run| check.may_be_untold(run)) => {}
                _ => say("has several ends"),
            }
            let is_owed = matches!(self.job.missed, MissedTicks::All) && !has_reason;
            if is_owed && course.reports_of(&["missed"]).next().is_some() {
                say("was not made up for");
            }
        }
        wrong
    }

    /// Returns whether a replica was killed that had claimed the next tick of which there are words, and began no run: it
    /// was to report the ticks that its claim had passed as missed.
    fn was_passed(&self, tick: i64) -> bool {
        let mut later = self.courses.range((tick + 1, Kind::Tick)..);
        let next = later.find(|((_, kind), _)| *kind == Kind::Tick);
        next.is_some_and(|((claimed, kind), course)| {
            let reach = claimed - SLACK..claimed + self.reach(*kind);
            let is_claimed = course.reports_of(&["not_winner"]).next().is_some();
            is_claimed
                && course.runs.is_empty()
                && self.ends(*kind, course) == 0
                && self.check.kills().any(|(_, at)| reach.contains(&at))
        })
    }

    /// Returns how many ends there are.
    fn ends(&self, kind: Kind, course: &Course<'_>) -> usize {
        let is_end = |run: &&SeenRun<'_>| {
            run.has_ended_by_itself() || self.is_last(kind) && run.end.is_some()
        };
        let runs = course.runs.iter().filter(is_end).count();
        runs + course.reports_of(&["missed", "given_up"]).count()
    }

    /// Returns whether a tick that was cut short, or is to be backfilled, has run well.
    fn is_made_good(&self, instant: i64, kind: Kind) -> bool {
        let [of_tick, backfilled] =
            [Kind::Tick, Kind::Backfill].map(|kind| self.runs(instant, kind));
        let mut runs = of_tick.iter().chain(backfilled);
        runs.any(|run| run.outcome() == "ok") && (kind == Kind::Backfill || !of_tick.is_empty())
    }

    /// Returns whether a report is a reason for no end that the logs agree with.
    fn is_reason(&self, instant: i64, kind: Kind, course: &Course<'_>, of: &Report<'_>) -> bool {
        match of.outcome {
            "forgotten" => true,
            _ if !course.runs.is_empty() => false,
            "overlapping" | "too_late" => self.was_busy(instant, of.at),
            // It has claimed the tick, and lost the majority before the run: others say that it has the tick.
            "no_quorum" => {
                let others = course.reports_of(&["not_winner"]).next();
                self.is_last(kind) && others.is_some() || self.was_busy(instant, of.at)
            }
            "paused" | "unconfirmed" => true,
            // A shutdown may lose what it claims; with further attempts, that is started again.
            "draining" => {
                let others = ["overlapping", "too_late"];
                self.is_last(kind) && course.reports_of(&others).next().is_none()
            }
            _ => false,
        }
    }

    /// Returns whether there is no further attempt.
    fn is_last(&self, kind: Kind) -> bool {
        kind != Kind::Tick || self.attempts() == 1
    }

    /// Returns for how long something may be claimed, in milliseconds.
    fn reach(&self, kind: Kind) -> i64 {
        match (kind, self.job.missed) {
            (Kind::Tick, MissedTicks::Skip) => 10_000,
            _ => 60_000,
        }
    }

    /// Returns whether as many runs as may go on kept this instant off, up to the time of a report.
    fn was_busy(&self, instant: i64, until: i64) -> bool {
        let needed = match self.job.policies.overlap {
            OverlapPolicy::Allow => return false,
            OverlapPolicy::UpTo(most) => most,
            _ => 1,
        };
        let meets = |from: i64, to: i64| from <= until && instant <= to.saturating_add(SLACK);
        // A replica that stopped may have had the lock without a run.
        let mut stops = self.check.stops.iter().map(|stop| self.check.wall(stop.at));
        let others = self
            .courses
            .iter()
            .filter(|((other, _), _)| *other != instant);
        let runs = others.map(|((other, kind), course)| {
            if *kind == Kind::Tick && self.attempts() > 1 {
                return usize::from(meets(*other, self.decided(course)));
            }
            let runs = course.runs.iter();
            runs.filter(|run| meets(run.began, run.over())).count()
        });
        stops.any(|at| meets(at - SLACK, at + millis(self.check.ttl)))
            || runs.sum::<usize>() >= needed
    }

    /// Returns when the last attempt of a tick was over; no later tick is claimed before.
    fn decided(&self, course: &Course<'_>) -> i64 {
        let last_words = course.reports_of(&["given_up", "forgotten"]);
        let last_word = last_words.map(|report| report.at).max();
        let last_run = course.runs.iter().map(SeenRun::over).max();
        match last_run {
            Some(_) if last_word.is_none() && self.ends(Kind::Tick, course) == 0 => i64::MAX,
            _ => last_run.max(last_word).unwrap_or(i64::MIN),
        }
    }
}

impl<'a> Course<'a> {
    /// Returns whether no replica said a word about it.
    fn is_silent(&self) -> bool {
        self.runs.is_empty() && self.reports.is_empty()
    }

    /// Returns the reports with these outcomes.
    fn reports_of(&self, outcomes: &[&str]) -> impl Iterator<Item = &Report<'a>> {
        let reports = self.reports.iter();
        reports.filter(move |report| outcomes.contains(&report.outcome))
    }

    /// Says what is wrong with it, in a line.
    fn says(&self, instant: i64, kind: Kind, what: &str) -> String {
        let instant = DateTime::from_timestamp_millis(instant).expect("it is one of a test");
        let instant = instant.to_rfc3339_opts(SecondsFormat::AutoSi, true);
        let runs = self.runs.iter().map(|run| {
            let SeenRun {
                attempt, replica, ..
            } = run;
            format!("run {attempt} on {replica}: {}", run.outcome())
        });
        let reports = self.reports.iter();
        let reports = reports.map(|report| format!("{} on {}", report.outcome, report.replica));
        let all: Vec<_> = runs.chain(reports).collect();
        format!("{kind:?} {instant} {what}: {}", all.join("; "))
    }
}

impl Kind {
    fn of(trigger: &str) -> Self {
        match trigger {
            "Manual" => Self::Request,
            "Backfill" => Self::Backfill,
            _ => Self::Tick,
        }
    }
}

fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).expect("it is not that far")
}

/// The outcomes of runs that ended by themselves.
const BY_THEMSELVES: [&str; 5] = ["ok", "failed", "panicked", "timed_out", "cancelled"];

/// The outcomes of runs that are started again, if there are further attempts.
const CUT_SHORT: [&str; 2] = ["lost", "aborted"];

/// How far apart two things may be that belong together, in milliseconds: a run and its record, a tick and its claim.
const SLACK: i64 = 2_000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Policies;

    /// Writes what a replica did with a tick, at so many milliseconds after it.
    fn event(replica: &str, tick: i64, after: u64, moment: JobMoment) -> JobEvent {
        JobEvent {
            at: Duration::from_millis(1_000 * tick.unsigned_abs() + after),
            replica: replica.to_owned(),
            job: JOB.to_owned(),
            tick,
            millis: 0,
            moment,
        }
    }

    fn began(replica: &str, tick: i64, after: u64, attempt: u32, trigger: &str) -> JobEvent {
        let began = JobMoment::Began {
            token: 1,
            attempt,
            trigger: trigger.to_owned(),
        };
        event(replica, tick, after, began)
    }

    fn became(replica: &str, tick: i64, after: u64, run: (u32, &str), outcome: &str) -> JobEvent {
        let became = JobMoment::Became {
            outcome: outcome.to_owned(),
            trigger: run.1.to_owned(),
            attempt: run.0,
            last: tick,
        };
        event(replica, tick, after, became)
    }

    fn said(replica: &str, tick: i64, outcome: &str) -> JobEvent {
        became(replica, tick, 200, (1, "Schedule"), outcome)
    }

    fn ran(replica: &str, tick: i64, after: u64, run: (u32, &str), outcome: &str) -> [JobEvent; 2] {
        [
            began(replica, tick, after, run.0, run.1),
            became(replica, tick, after + 100, run, outcome),
        ]
    }

    fn killed(replica: &str, at: u64) -> ReplicaStop {
        ReplicaStop {
            replica: replica.to_owned(),
            at: Duration::from_millis(at),
            is_kill: true,
        }
    }

    /// Returns what is wrong once `change` was made to the logs of a job that runs at 10, 20 and 30 seconds.
    fn wrong(change: impl FnOnce(&mut JobCheck, &mut Vec<JobEvent>)) -> Vec<String> {
        let mut check = JobCheck {
            jobs: vec![Job::new(JOB, Duration::from_secs(10), Duration::ZERO)],
            wall: 0,
            ttl: Duration::from_secs(1),
            ticks: 10..=30,
            stops: Vec::new(),
            requests: Vec::new(),
            backfills: Vec::new(),
        };
        let mut events = Vec::new();
        for (replica, other, tick) in [("a", "b", 10), ("b", "a", 20), ("a", "b", 30)] {
            events.extend(ran(replica, tick, 50, ON_TIME, "ok"));
            events.push(said(other, tick, "not_winner"));
        }
        change(&mut check, &mut events);
        events.sort_by_key(|event| event.at);
        check.violations(&events)
    }

    /// Checks that there is one violation with this text.
    fn assert_found(text: &str, change: impl FnOnce(&mut JobCheck, &mut Vec<JobEvent>)) {
        let wrong = wrong(change);
        assert!(
            wrong.len() == 1 && wrong[0].contains(text),
            "not {text}: {wrong:#?}"
        );
    }

    /// Puts these events in the place of those about the tick at 20 seconds.
    fn instead(log: &mut Vec<JobEvent>, events: impl IntoIterator<Item = JobEvent>) {
        log.retain(|event| event.tick != 20);
        log.extend(events);
    }

    fn policies(check: &mut JobCheck) -> &mut Policies {
        &mut check.jobs[0].policies
    }

    fn assert_fine(change: impl FnOnce(&mut JobCheck, &mut Vec<JobEvent>)) {
        assert_eq!(wrong(change), Vec::<String>::new());
    }

    #[test]
    fn a_tick_with_one_end_is_fine_and_one_with_several_is_found() {
        assert_fine(|_, _| {});
        assert_fine(|_, log| instead(log, [said("a", 20, "missed")]));
        assert_found("has several ends", |_, log| {
            log.push(said("c", 20, "missed"));
        });
        let missed = ["a", "b"].map(|replica| said(replica, 20, "missed"));
        assert_found("has several ends", |_, log| instead(log, missed));
    }

    #[test]
    fn a_tick_that_begins_twice_is_found() {
        for (attempt, trigger, text) in [
            (1, "Schedule", "has two runs of one number"),
            (1, "CatchUp", "has two runs of one number"),
            (2, "Retry", "began again after its end"),
        ] {
            let wrong = wrong(|check, log| {
                policies(check).max_attempts = Some(2);
                log.extend(ran("c", 20, 3_000, (attempt, trigger), "ok"));
            });
            assert!(wrong.iter().any(|wrong| wrong.contains(text)), "{wrong:#?}");
        }
        assert_found("began more often than it may", |check, log| {
            policies(check).max_attempts = Some(2);
            let lost = |attempt| {
                ran(
                    "b",
                    20,
                    1_000 * u64::from(attempt),
                    (attempt, "Retry"),
                    "lost",
                )
            };
            instead(log, [1, 2].map(lost).concat());
            log.extend(ran("c", 20, 3_000, (3, "Retry"), "ok"));
        });
        assert_found("is no tick, and began", |_, log| {
            log.extend(ran("a", 25, 0, ON_TIME, "ok"));
        });
    }

    #[test]
    fn a_tick_that_no_replica_has_is_found_whatever_they_say() {
        assert_found("has no end", |_, log| instead(log, []));
        for outcome in [
            "not_winner",
            "no_quorum",
            "too_early",
            "overlapping",
            "too_late",
        ] {
            let all = ["a", "b"].map(|replica| said(replica, 20, outcome));
            assert_found("has no end", |_, log| instead(log, all));
        }
        for outcome in ["paused", "forgotten", "unconfirmed", "draining"] {
            assert_fine(|_, log| instead(log, [said("a", 20, outcome)]));
        }
        let lost = ["no_quorum", "not_winner"].map(|outcome| said("a", 20, outcome));
        assert_fine(|_, log| instead(log, lost));
        assert_found("has no end", |check, log| {
            policies(check).max_attempts = Some(2);
            instead(log, [said("a", 20, "draining")]);
        });
        let both = ["draining", "overlapping"].map(|outcome| said("a", 20, outcome));
        assert_found("has no end", |_, log| instead(log, both));
        assert_found("was not made up for", |check, log| {
            check.jobs[0].missed = MissedTicks::All;
            instead(log, [said("a", 20, "missed")]);
        });
    }

    #[test]
    fn a_tick_is_skipped_only_while_as_many_runs_go_on_as_may() {
        let long = |check: &mut JobCheck, log: &mut Vec<JobEvent>, overlap| {
            policies(check).overlap = overlap;
            instead(log, [said("a", 20, "overlapping")]);
            log.retain(|event| event.tick != 10);
            log.push(began("a", 10, 0, 1, "Schedule"));
            log.push(became("a", 10, 12_000, ON_TIME, "ok"));
        };
        assert_fine(|check, log| long(check, log, OverlapPolicy::Skip));
        assert_fine(|check, log| long(check, log, OverlapPolicy::Wait));
        for overlap in [OverlapPolicy::Allow, OverlapPolicy::UpTo(2)] {
            assert_found("has no end", |check, log| long(check, log, overlap));
        }
    }

    #[test]
    fn a_run_that_is_cut_short_is_followed_by_another_if_the_job_wants_that() {
        let open = || [began("b", 20, 0, 1, "Schedule")];
        assert_found("has no end", |_, log| instead(log, open()));
        let cut = |check: &mut JobCheck, log: &mut Vec<JobEvent>, attempts, rest: &[JobEvent]| {
            check.stops.push(killed("b", 20_500));
            policies(check).max_attempts = attempts;
            instead(log, open());
            log.extend_from_slice(rest);
        };
        let retried = ran("a", 20, 3_000, (2, "Retry"), "ok");
        let given_up = ["a", "c"].map(|on| became(on, 20, 3_000, (1, "Retry"), "given_up"));
        assert_fine(|check, log| cut(check, log, None, &[]));
        assert_found("has no end", |check, log| cut(check, log, Some(2), &[]));
        assert_fine(|check, log| cut(check, log, Some(2), &retried));
        assert_fine(|check, log| cut(check, log, Some(2), &given_up[..1]));
        assert_fine(|check, log| cut(check, log, Some(2), &[said("a", 20, "forgotten")]));
        assert_found("has several ends", |check, log| {
            cut(check, log, Some(2), &given_up);
        });
        // The replica was killed before the nodes knew of the end.
        let ended = became("b", 20, 400, ON_TIME, "ok");
        let both = [&[ended], &retried[..]].concat();
        assert_fine(|check, log| cut(check, log, Some(2), &both));
    }

    #[test]
    fn a_kill_excuses_one_tick_that_never_began() {
        assert_fine(|check, log| {
            check.stops.push(killed("b", 20_100));
            instead(log, [said("a", 20, "not_winner")]);
        });
        assert_found("has no end", |check, log| {
            check.stops.push(killed("b", 19_500));
            log.retain(|event| event.tick == 30);
        });
    }

    #[test]
    fn a_kill_excuses_the_ticks_that_the_claim_of_its_replica_passed() {
        let kill_of_claimant = |check: &mut JobCheck, log: &mut Vec<JobEvent>| {
            check.stops.push(killed("b", 20_100));
            instead(log, [said("a", 20, "not_winner")]);
            log.retain(|event| event.tick != 10);
        };
        assert_fine(kill_of_claimant);
        assert_found("has no end", |check, log| {
            kill_of_claimant(check, log);
            log.push(said("a", 10, "not_winner"));
        });
        // No other replica knows of a claim.
        assert_found("has no end", |check, log| {
            kill_of_claimant(check, log);
            log.retain(|event| event.tick == 30);
        });
    }

    #[test]
    fn a_request_has_one_run_or_a_reason() {
        let asked = |check: &mut JobCheck| check.requests.push((JOB.to_owned(), 25_000));
        let by_hand = (1, "Manual");
        assert_found("has no end", |check, _| asked(check));
        for outcome in ["not_winner", "overlapping"] {
            assert_found("has no end", |check, log| {
                asked(check);
                log.push(became("a", 25, 1_000, by_hand, outcome));
            });
        }
        for replicas in [&["a"][..], &["a", "b"]] {
            let wrong = wrong(|check, log| {
                asked(check);
                log.extend(
                    replicas
                        .iter()
                        .flat_map(|on| ran(on, 25, 900, by_hand, "ok")),
                );
            });
            assert_eq!(wrong.is_empty(), replicas.len() == 1, "{wrong:#?}");
        }
    }

    #[test]
    fn a_backfill_runs_each_tick_that_has_not_run_well_and_no_other() {
        let asked = |check: &mut JobCheck| check.backfills.push((JOB.to_owned(), 35_000, 10..=20));
        let backfilled = |tick| ran("b", tick, 20_000, (1, "Backfill"), "ok");
        let skipped = || [said("a", 20, "missed")];
        assert_fine(|check, _| asked(check));
        assert_found("has no end", |check, log| {
            asked(check);
            instead(log, skipped());
        });
        assert_fine(|check, log| {
            asked(check);
            instead(log, skipped());
            log.extend(backfilled(20));
        });
        assert_found("began again after its end", |check, log| {
            asked(check);
            log.extend(backfilled(10));
        });
        assert_found("began again after its end", |check, log| {
            policies(check).max_attempts = Some(2);
            instead(log, ran("a", 20, 50, ON_TIME, "lost"));
            log.extend(backfilled(20));
            log.extend(ran("a", 20, 25_000, (2, "Retry"), "ok"));
        });
    }

    const JOB: &str = "job";
    const ON_TIME: (u32, &str) = (1, "Schedule");
}
