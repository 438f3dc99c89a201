//! P9: what the client's transactions and its script cost a server, against the least that a lock can cost.

mod guards;
mod lock;
mod site;

use deadpool_redis::redis::{Pipeline, pipe};
use redlock_core::node::{Reply, Request};

pub(super) use self::guards::p15;
use self::{
    lock::Lock,
    site::{Form, Site},
};
use super::{Bench, each};
use crate::failed::{Failed, Result};

pub(super) fn p9(bench: &mut Bench) -> Result<()> {
    let rounds = bench.scale.rounds;
    let title = format!("processor time of a server for an operation; {rounds} rounds");
    bench.report.begin("P9", &title);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let rounds = runtime.block_on(measure(rounds))?;
    let rows = [
        (RAW, 0),
        ("a pair alone", 0),
        ("a pair alone, by the script", 0),
        (RAW_OF_16, 3),
        ("a pair, in calls of 8 acquires and 8 releases", 3),
        (
            "a pair, in calls of 8 acquires and 8 releases, by the script",
            3,
        ),
    ];
    each(&mut bench.report, "P9", rows, &rounds);
    Ok(())
}

async fn measure(rounds: usize) -> Result<Vec<[f64; 6]>> {
    let mut script = Script::start().await?;
    // Until every counter is there, as in a namespace that has been used for some time.
    for _ in 0..WARM_UP {
        script.pairs(Form::Transaction, SHARED).await?;
        script.pairs(Form::Script, SHARED).await?;
    }
    let mut figures = Vec::new();
    for _ in 0..rounds {
        let mut round = [f64::NAN; 6];
        for (place, size) in [(0, 1), (3, SHARED)] {
            round[place] = script.raw(size).await?;
            round[place + 1] = script.pairs(Form::Transaction, size).await?;
            round[place + 2] = script.pairs(Form::Script, size).await?;
        }
        figures.push(round);
    }
    Ok(figures)
}

/// What is measured in a round; nothing that a round takes stays.
struct Script {
    site: Site,
    /// The hash of the script by which a plain client releases.
    compare_and_delete: String,
    /// How many locks there were.
    used: u64,
}

impl Script {
    async fn start() -> Result<Self> {
        let site = Site::start().await?;
        Ok(Self {
            compare_and_delete: site.load(COMPARE_AND_DELETE)?,
            site,
            used: 0,
        })
    }

    /// Measures a pair of a plain client's: a key that is set by a command and deleted by a script, with `size` commands
    /// sent together.
    async fn raw(&mut self, size: usize) -> Result<f64> {
        let (old, new) = self.locks();
        let set = |pipe: &mut Pipeline, lock: &Lock| {
            let owner = lock.owner().to_wire();
            pipe.cmd("SET").arg(lock.key()).arg(owner);
            pipe.arg("NX").arg("PX").arg("30000");
        };
        let release = |pipe: &mut Pipeline, lock: &Lock| {
            pipe.cmd("EVALSHA").arg(&self.compare_and_delete).arg(1);
            pipe.arg(lock.key()).arg(lock.owner().to_wire());
        };
        let mut all = pipe();
        old.iter().for_each(|lock| set(&mut all, lock));
        self.site.commands(all).await?;
        let calls = mixed(size, &old, &new).into_iter().map(|(old, new)| {
            let mut call = pipe();
            old.iter().for_each(|lock| release(&mut call, lock));
            new.iter().for_each(|lock| set(&mut call, lock));
            self.site.commands(call)
        });
        let (cost, answers) = self.site.cost(calls.collect()).await?;
        let mut all = pipe();
        new.iter().for_each(|lock| release(&mut all, lock));
        self.site.commands(all).await?;
        Ok(cost * answers.len() as f64 / old.len() as f64)
    }

    /// Measures a pair of the client's, in calls of `size` requests.
    async fn pairs(&mut self, form: Form, size: usize) -> Result<f64> {
        let (old, new) = self.locks();
        let all = |locks: &[Lock], request: fn(Lock) -> Request| {
            let calls = locks.chunks(SHARED);
            let calls = calls.map(|locks| locks.iter().copied().map(request).collect());
            calls.collect::<Vec<Vec<_>>>()
        };
        self.calls(form, all(&old, Lock::acquire)).await?;
        let calls = mixed(size, &old, &new).into_iter().map(|(old, new)| {
            let releases = old.iter().map(|lock| lock.release());
            releases
                .chain(new.iter().map(|lock| lock.acquire()))
                .collect()
        });
        let calls: Vec<Vec<Request>> = calls.collect();
        let count = calls.len();
        let cost = self.calls(form, calls).await?;
        self.calls(form, all(&new, Lock::release)).await?;
        Ok(cost * count as f64 / old.len() as f64)
    }

    /// Returns locks to release and locks to acquire.
    fn locks(&mut self) -> (Vec<Lock>, Vec<Lock>) {
        let old = Lock::next(&mut self.used, PAIRS);
        (old, Lock::next(&mut self.used, PAIRS))
    }

    /// Measures what each of these calls costs; every request of theirs must be granted.
    async fn calls(&mut self, form: Form, calls: Vec<Vec<Request>>) -> Result<f64> {
        let sent = calls.iter().map(|requests| {
            let call = self.site.call(form, requests);
            async move { call.await.map_err(|error| Failed(error.reason.to_string())) }
        });
        let sent = sent.collect();
        let (cost, answers) = self.site.cost(sent).await?;
        let granted = |reply: &Reply| matches!(reply, Reply::Taken { .. }) || reply.is_done();
        let mut replies = answers.iter().flat_map(|answer| &answer.replies);
        match replies.find(|reply| !reply.as_ref().is_ok_and(granted)) {
            None => Ok(cost),
            Some(other) => Err(Failed(format!("it was answered otherwise: {other:?}"))),
        }
    }
}

/// Deals locks out to calls of `size` requests: each lets some locks go that were taken before it, and takes as many.
fn mixed<'a>(size: usize, old: &'a [Lock], new: &'a [Lock]) -> Vec<(&'a [Lock], &'a [Lock])> {
    if size == 1 {
        let none: &[Lock] = &[];
        let releases = old.chunks(1).map(|old| (old, none));
        return releases
            .chain(new.chunks(1).map(|new| (none, new)))
            .collect();
    }
    old.chunks(size / 2).zip(new.chunks(size / 2)).collect()
}

/// What a pair is compared with.
const RAW: &str = "SET NX PX, and a script that compares and deletes";
const RAW_OF_16: &str = "the same, 16 commands sent together";

const COMPARE_AND_DELETE: &str =
    "return redis.call('GET', KEYS[1]) == ARGV[1] and redis.call('DEL', KEYS[1]) or 0";

const WARM_UP: usize = 10;
/// How many pairs are measured at a time.
const PAIRS: usize = 256;
/// How many requests share a call.
const SHARED: usize = 16;
