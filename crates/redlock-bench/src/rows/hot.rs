//! P5 to P7: many callers want one key.

use std::time::Duration;

use super::{Bench, delay::PINGS, pairs::micros};
use crate::{
    contender::{Outcome, Spread, Workload},
    failed::{Failed, Result},
    report::{OURS, Report},
    site::{Contender, Nodes, Relays},
    statistics::{Series, ratios},
};

/// Measures the callers of one process.
pub(super) fn p5(bench: &mut Bench) -> Result<()> {
    let title = "one key, one process, 16 waiters, 1 ms hold, 5 nodes; mutex is tokio's own; redlock blocks, redis-rs has no retry";
    bench.report.begin("P5", title);
    let nodes = Nodes::start(5)?;
    let programs = bench.programs(&["mutex", "rslock", "ours"]);
    let mut groups = Vec::new();
    for program in &programs {
        groups.push(vec![Contender::start(program, &nodes.urls())?]);
    }
    let contest = Contest {
        row: "P5",
        waiters: 16,
        length: length(bench),
        repeats: bench.scale.repeats,
    };
    let all = measure(contest, &mut groups)?;
    for hot in &all {
        let report = &mut bench.report;
        report.add(
            "P5",
            &hot.contender,
            "acquisitions/s, × 1/hold",
            "",
            &hot.of_ideal,
        );
        report.add("P5", &hot.contender, "p99 wait, × 16 holds", "", &hot.wait);
        report.add(
            "P5",
            &hot.contender,
            "largest share, × the median",
            "",
            &hot.share,
        );
    }
    compare(&mut bench.report, "P5", &all);
    Ok(())
}

/// Measures many processes of one caller, which can only wait for one another.
pub(super) fn p6(bench: &mut Bench) -> Result<()> {
    let title = "one key, 16 processes of one caller, 1 ms hold, 5 nodes behind a 4 ms round trip";
    bench.report.begin("P6", title);
    let contest = Contest {
        row: "P6",
        waiters: 1,
        // Each caller has a fourth of the turns that one of P7 has in the same time.
        length: 4 * length(bench),
        repeats: bench.scale.repeats.div_ceil(3),
    };
    let (all, round_trip) = processes(bench, contest, 16)?;
    for hot in &all {
        let report = &mut bench.report;
        let between: Series = hot.between.iter().map(|time| time / round_trip).collect();
        report.add(
            "P6",
            &hot.contender,
            "time between two holds",
            "round trip",
            &between,
        );
        report.add("P6", &hot.contender, "p99 wait, × 16 turns", "", &hot.turns);
        report.add("P6", &hot.contender, SHARE, "", &hot.share);
    }
    compare(&mut bench.report, "P6", &all);
    Ok(())
}

/// Measures several processes of several callers.
pub(super) fn p7(bench: &mut Bench) -> Result<()> {
    let title = "one key, 4 processes of 4 waiters, 1 ms hold, 5 nodes behind a 4 ms round trip; redlock blocks, redis-rs has no retry";
    bench.report.begin("P7", title);
    let contest = Contest {
        row: "P7",
        waiters: 4,
        length: length(bench),
        repeats: bench.scale.repeats,
    };
    let (all, _) = processes(bench, contest, 4)?;
    for hot in &all {
        bench
            .report
            .add("P7", &hot.contender, SHARE, "", &hot.share);
    }
    compare(&mut bench.report, "P7", &all);
    Ok(())
}

/// Measures processes behind a delay; returns the microseconds of a round trip too.
fn processes(bench: &Bench, contest: Contest, count: usize) -> Result<(Vec<Hot>, f64)> {
    let nodes = Nodes::start(5)?;
    let relays = Relays::start(&nodes, Duration::from_millis(4))?;
    let mut groups = Vec::new();
    for program in bench.programs(&["rslock", "ours"]) {
        let processes = (0..count).map(|_| Contender::start(&program, &relays.urls()));
        groups.push(processes.collect::<Result<Vec<_>>>()?);
    }
    let round_trip = micros(Spread::of(relays.round_trips(PINGS)?).p50);
    Ok((measure(contest, &mut groups)?, round_trip))
}

/// What callers do in each repeat.
#[derive(Clone, Copy, Debug)]
struct Contest {
    row: &'static str,
    /// How many callers each process has.
    waiters: usize,
    length: Duration,
    repeats: usize,
}

/// The figures of one client, one for each repeat.
#[derive(Debug, Default)]
struct Hot {
    contender: String,
    per_second: Series,
    /// Microseconds.
    hold: Series,
    hand_over: Series,
    /// Between the end of a hold and the begin of the next, whichever the processes are.
    between: Series,
    /// As a multiple of what a queue of such holds takes.
    wait: Series,
    /// The same wait as a multiple of as many turns: a turn is a hold and the time to the next.
    turns: Series,
    of_ideal: Series,
    share: Series,
}

/// Measures each group of processes in turn; those of a group contend for one key.
fn measure(contest: Contest, groups: &mut [Vec<Contender>]) -> Result<Vec<Hot>> {
    let mut all: Vec<_> = groups
        .iter()
        .map(|group| Hot {
            contender: group[0].name().to_owned(),
            ..Hot::default()
        })
        .collect();
    for repeat in 0..contest.repeats {
        for turn in 0..groups.len() {
            let index = (repeat + turn) % groups.len();
            let workload = Workload::HotKey {
                key: format!("bench:{}:{index}:{repeat}", contest.row),
                waiters: contest.waiters,
                hold: HOLD,
                length: contest.length,
            };
            let group = &mut groups[index];
            for contender in &mut *group {
                contender.begin(&workload)?;
            }
            let outcomes = group.iter_mut().map(|one| one.end(&workload));
            all[index].add(&outcomes.collect::<Result<Vec<_>>>()?)?;
        }
    }
    Ok(all)
}

impl Hot {
    fn add(&mut self, outcomes: &[Outcome]) -> Result<()> {
        if outcomes.iter().any(|outcome| outcome.overlaps > 0) {
            return Err(Failed(format!(
                "{}: two had the key at once",
                self.contender
            )));
        }
        if outcomes.iter().all(|one| one.done == 0) {
            return Err(Failed(format!("{}: no caller had the key", self.contender)));
        }
        let rates = outcomes.iter();
        let rate: f64 = rates
            .map(|one| one.done as f64 / one.wall.as_secs_f64())
            .sum();
        let mean = |figure: fn(&Outcome) -> Duration| {
            let figures = outcomes.iter().map(|one| micros(figure(one)));
            figures.sum::<f64>() / outcomes.len() as f64
        };
        let hold = mean(|one| one.hold);
        let waiters: usize = outcomes.iter().map(|one| one.shares.len()).sum();
        self.per_second.push(rate);
        self.hold.push(hold);
        self.hand_over.push(mean(|one| one.hand_over.p50));
        self.between.push(1e6 / rate - hold);
        let wait = mean(|one| one.wait.p99) / waiters as f64;
        self.wait.push(wait / hold);
        self.turns.push(wait * rate / 1e6);
        let of_ideal = rate * hold / 1e6;
        if of_ideal > MOST_OF_IDEAL {
            return Err(Failed(format!(
                "{}: two had the key at once",
                self.contender
            )));
        }
        self.of_ideal.push(of_ideal);
        self.share.push(match outcomes {
            [alone] => largest(&alone.shares),
            several => largest(&several.iter().map(|one| one.done).collect::<Vec<_>>()),
        });
        Ok(())
    }
}

/// Divides the largest share by the one in the middle, or by the mean of the two there.
fn largest(shares: &[u64]) -> f64 {
    let mut shares = shares.to_vec();
    shares.sort_unstable();
    let middle = |index: usize| shares.get(index).copied().unwrap_or_default() as f64;
    let median = f64::midpoint(
        middle((shares.len().max(1) - 1) / 2),
        middle(shares.len() / 2),
    );
    shares.last().copied().unwrap_or_default() as f64 / median
}

/// Returns for how long callers contend: long enough that one turn more or less is no larger share.
fn length(bench: &Bench) -> Duration {
    bench.scale.sample.mul_f64(3.0).max(LEAST)
}

fn compare(report: &mut Report, row: &'static str, all: &[Hot]) {
    for hot in all {
        for (metric, figures) in [
            ("acquisitions/s", &hot.per_second),
            ("hold, µs", &hot.hold),
            ("hand-over p50, µs", &hot.hand_over),
        ] {
            report.add(row, &hot.contender, metric, "", figures);
        }
    }
    for base in all.iter().filter(|base| base.contender != OURS) {
        for hot in all.iter().filter(|hot| hot.contender != base.contender) {
            for (metric, of) in [
                (
                    "acquisitions/s",
                    (|hot| &hot.per_second) as fn(&Hot) -> &Series,
                ),
                ("hand-over p50", |hot| &hot.hand_over),
            ] {
                report.add(
                    row,
                    &hot.contender,
                    metric,
                    &base.contender,
                    &ratios(of(hot), of(base)),
                );
            }
        }
    }
}

const SHARE: &str = "largest share of a process, × the median";
const HOLD: Duration = Duration::from_millis(1);
/// One holder at a time; the clocks of several processes are not read at the same moment.
const MOST_OF_IDEAL: f64 = 1.02;
const LEAST: Duration = Duration::from_millis(1200);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_compared_with_the_median() {
        assert!((largest(&[10, 30, 20]) - 1.5).abs() < 1e-9);
        assert!((largest(&[10, 30, 20, 20]) - 1.5).abs() < 1e-9);
        assert!(largest(&[]).is_nan(), "no caller had the key");
    }

    #[test]
    fn a_client_with_two_holders_at_once_is_not_measured_but_refused() {
        let outcome = Outcome {
            overlaps: 1,
            ..Outcome::default()
        };
        assert!(Hot::default().add(&[outcome]).is_err());
        let one = Outcome {
            done: 700,
            wall: Duration::from_secs(1),
            hold: HOLD,
            ..Outcome::default()
        };
        assert!(Hot::default().add(&[one.clone(), one]).is_err());
    }

    #[test]
    fn a_client_that_has_no_key_is_not_measured() {
        assert!(Hot::default().add(&[Outcome::default()]).is_err());
    }
}
