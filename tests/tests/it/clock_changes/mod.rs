//! What is due around the changes of four zones, by hand.

mod tables;

use redlock_cron::chrono::{DateTime, FixedOffset, NaiveDateTime, TimeDelta, Utc};

pub(crate) use self::tables::{BERLIN, LORD_HOWE, NEW_YORK, SAO_PAULO};

/// A job beside those of a table that is due at each quarter of an hour, and so at each stop, whatever the zone does: it
/// shows that a replica has lived through it.
pub(crate) const PULSE: &str = "pulse";

/// Jobs in a zone, and the days around two changes of its clocks.
pub(crate) struct Table {
    pub(crate) zone: &'static str,
    pub(crate) jobs: &'static [Plan],
    changes: [Change; 2],
}

/// A job.
pub(crate) struct Plan {
    pub(crate) name: &'static str,
    pub(crate) pattern: &'static str,
    /// The times of day that the pattern names, with spaces in between.
    times: &'static str,
}

struct Change {
    year: i32,
    /// A line for each row: an instant in UTC and in local time, and the jobs of which it is a tick.
    ///
    /// Where something is missing or the row has no job, something would be due if the zone's other offset counted.
    rows: &'static str,
    /// Before which row another replica is started, and its name.
    late: (usize, &'static str),
}

/// An instant to live through.
pub(crate) struct Stop {
    pub(crate) tick: DateTime<Utc>,
    pub(crate) local: DateTime<FixedOffset>,
    /// What is due.
    pub(crate) jobs: Vec<&'static str>,
    /// The replica to start before.
    pub(crate) late: Option<&'static str>,
}

/// What is to become of a job.
pub(crate) struct Expected {
    pub(crate) job: &'static str,
    /// The ticks that run.
    pub(crate) runs: Vec<DateTime<Utc>>,
    /// The ticks that were jumped over after the first run and before the last, of which the newest hundred before each
    /// run are told of one by one, and the others by the first of them.
    pub(crate) missed: Vec<DateTime<Utc>>,
}

impl Table {
    /// The instants, in order.
    ///
    /// # Panics
    ///
    /// If the two columns of a row do not mean the same instant, or it has a job that there is not.
    pub(crate) fn stops(&self) -> Vec<Stop> {
        let stops: Vec<Stop> = self.changes.iter().flat_map(Change::stops).collect();
        for stop in &stops {
            assert_eq!(stop.tick, stop.local, "two instants in one row");
            let is_there = |name: &&str| self.jobs.iter().any(|job| job.name == *name);
            assert!(stop.jobs.iter().all(is_there), "{:?}", stop.jobs);
        }
        assert!(stops.is_sorted_by(|one, next| one.tick < next.tick));
        stops
    }

    /// What is to become of each job.
    pub(crate) fn expected(&self) -> Vec<Expected> {
        let stops = self.stops();
        let of_table = |plan: &Plan| {
            let is_due = |stop: &&Stop| stop.jobs.contains(&plan.name);
            let runs = stops.iter().filter(is_due).map(|stop| stop.tick);
            expected(&stops, plan.name, runs.collect(), Some(plan.times))
        };
        let all = stops.iter().map(|stop| stop.tick).collect();
        let pulse = expected(&stops, PULSE, all, None);
        self.jobs.iter().map(of_table).chain([pulse]).collect()
    }
}

impl Change {
    fn stops(&self) -> impl Iterator<Item = Stop> {
        let (before, late) = self.late;
        let rows = self.rows.lines().filter(|line| !line.starts_with('#'));
        rows.enumerate().map(move |(row, line)| {
            let columns: Vec<_> = line.split('|').map(str::trim).collect();
            let [utc, local, jobs] = columns[..] else {
                panic!("{line:?} has not three columns");
            };
            let of_year = |instant: &str| format!("{}-{instant}", self.year);
            let tick = NaiveDateTime::parse_from_str(&of_year(utc), "%Y-%m-%d %H:%M");
            let local = DateTime::parse_from_str(&of_year(local), "%Y-%m-%d %H:%M %:z");
            Stop {
                tick: tick.expect("it is an instant").and_utc(),
                local: local.expect("it is an instant"),
                jobs: jobs.split_whitespace().collect(),
                late: (row == before).then_some(late),
            }
        })
    }
}

/// A job that is due at these times of day, which its pattern names.
const fn plan(name: &'static str, pattern: &'static str, times: &'static str) -> Plan {
    Plan {
        name,
        pattern,
        times,
    }
}

fn expected(
    stops: &[Stop],
    job: &'static str,
    runs: Vec<DateTime<Utc>>,
    times: Option<&str>,
) -> Expected {
    let mut missed = Vec::new();
    for two in runs.windows(2) {
        let jumped = jumped_over(stops, times, two[0], two[1]);
        let (many, newest) = jumped.split_at(jumped.len().saturating_sub(MOST_TOLD));
        missed.extend(many.first());
        missed.extend_from_slice(newest);
    }
    Expected { job, runs, missed }
}

/// The ticks after one instant and before another one that no stop was made at, of a job that is due at these times of
/// day, or at all quarters of an hour if none are said.
///
/// Clocks change at stops only, so in between a time of day is what an offset makes of it.
fn jumped_over(
    stops: &[Stop],
    times: Option<&str>,
    after: DateTime<Utc>,
    before: DateTime<Utc>,
) -> Vec<DateTime<Utc>> {
    let next = |instant: &DateTime<Utc>| Some(*instant + TimeDelta::minutes(15));
    let quarters = std::iter::successors(next(&after), next).take_while(|tick| *tick < before);
    let is_due = |tick: &DateTime<Utc>| {
        let newest = &stops[stops.partition_point(|stop| stop.tick <= *tick) - 1];
        let local = tick.with_timezone(newest.local.offset());
        let local = local.format("%H:%M").to_string();
        newest.tick != *tick && times.is_none_or(|times| times.split(' ').any(|time| time == local))
    };
    quarters.filter(is_due).collect()
}

/// How many ticks are told of one by one at most, that were missed before one that is claimed.
const MOST_TOLD: usize = 100;
