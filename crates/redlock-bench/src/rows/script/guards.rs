//! P15: what each guard costs a server: the commands of an acquire again, without those of that guard.

use deadpool_redis::redis::{Pipeline, pipe};

use super::{PAIRS, SHARED, Script, lock::Lock, site::Form};
use crate::{
    failed::Result,
    rows::{Bench, each},
};

/// Measures the client's acquires, and their commands without each guard in turn.
pub(in crate::rows) fn p15(bench: &mut Bench) -> Result<()> {
    let rounds = bench.scale.rounds.div_ceil(3);
    let title = format!("what guards cost a server, in time of a processor; {rounds} rounds");
    bench.report.begin("P15", &title);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let rounds = runtime.block_on(measure(rounds))?;
    let lines = [
        ("an acquire alone", 0),
        ("its commands, sent by the bench", 0),
        ("its commands, without the look at the run", 0),
        ("its commands, without the node's time", 0),
        ("its commands, without the counter", 0),
        ("its commands, without the transaction around them", 0),
        ("SET NX PX alone", 0),
        ("one of 16 acquires in a call", 7),
        ("its commands, 16 at a time, sent by the bench", 7),
        ("its commands, 16 at a time, without the look at the run", 7),
        ("its commands, 16 at a time, without the node's time", 7),
        ("its commands, 16 at a time, without the counter", 7),
        (
            "its commands, 16 at a time, without the transaction around them",
            7,
        ),
        ("SET NX PX, 16 at a time", 7),
    ];
    each(&mut bench.report, "P15", lines, &rounds);
    Ok(())
}

async fn measure(rounds: usize) -> Result<Vec<[f64; 14]>> {
    let mut script = Script::start().await?;
    script.pairs(Form::Transaction, SHARED).await?;
    let mut figures = Vec::new();
    for _ in 0..rounds {
        let mut round = [f64::NAN; 14];
        for (place, size) in [(0, 1), (7, SHARED)] {
            round[place] = script.acquires(size).await?;
            for (next, guards) in VARIANTS.iter().enumerate() {
                round[place + 1 + next] = script.commands(size, guards).await?;
            }
        }
        figures.push(round);
    }
    Ok(figures)
}

impl Script {
    /// Measures an acquire of the client's, in calls of `size`.
    async fn acquires(&mut self, size: usize) -> Result<f64> {
        let locks = Lock::next(&mut self.used, PAIRS);
        let calls = locks
            .chunks(size)
            .map(|locks| locks.iter().map(|lock| lock.acquire()).collect());
        let cost = self.calls(Form::Transaction, calls.collect()).await?;
        self.delete(&locks).await?;
        Ok(cost / size as f64)
    }

    /// Measures the same commands with some guards, sent by hand.
    async fn commands(&mut self, size: usize, guards: &[Guard]) -> Result<f64> {
        let locks = Lock::next(&mut self.used, PAIRS);
        let calls = locks.chunks(size);
        let calls = calls.map(|locks| self.site.commands(commands(locks, guards)));
        let (cost, _) = self.site.cost(calls.collect()).await?;
        self.delete(&locks).await?;
        Ok(cost / size as f64)
    }

    async fn delete(&self, locks: &[Lock]) -> Result<()> {
        let mut delete = pipe();
        let keys: Vec<String> = locks.iter().map(|lock| lock.key()).collect();
        delete.cmd("DEL").arg(keys);
        self.site.commands(delete).await?;
        Ok(())
    }
}

/// Returns the commands by which the client acquires these locks, as far as they are for these guards.
fn commands(locks: &[Lock], guards: &[Guard]) -> Pipeline {
    let has = |guard: Guard| guards.contains(&guard);
    let mut call = pipe();
    if has(Guard::Transaction) {
        call.cmd("MULTI");
    }
    if has(Guard::Time) {
        call.cmd("TIME");
    }
    for lock in locks {
        call.cmd("SET").arg(lock.key()).arg(lock.owner().to_wire());
        call.arg("NX").arg("PX").arg("30000");
    }
    if has(Guard::Counter) {
        call.cmd("ZMSCORE").arg("{bench}:counters").arg("floor");
        for lock in locks {
            call.arg(lock.shard());
        }
        call.cmd("ZADD").arg("{bench}:counters").arg("GT");
        for lock in locks {
            call.arg(lock.last_token()).arg(lock.shard());
        }
    }
    if has(Guard::Run) {
        call.cmd("MGET").arg("{bench}:mark");
        for lock in locks {
            call.arg(lock.key());
        }
        call.cmd("INFO").arg("replication");
    }
    if has(Guard::Transaction) {
        call.cmd("EXEC");
    }
    call
}

/// A guard of an acquire.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Guard {
    /// The mark, and whether it is of this run of the server.
    Run,
    /// The server's clock.
    Time,
    /// The fencing counter.
    Counter,
    /// All in one step.
    Transaction,
}

use Guard::{Counter, Run, Time, Transaction};

const VARIANTS: [&[Guard]; 6] = [
    &[Run, Time, Counter, Transaction],
    &[Time, Counter, Transaction],
    &[Run, Counter, Transaction],
    &[Run, Time, Transaction],
    &[Run, Time, Counter],
    &[],
];
