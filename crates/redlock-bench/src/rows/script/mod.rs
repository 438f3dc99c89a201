//! P9: what the client's functions and its script cost a server, against the least that a lock can cost.

mod guards;
mod lock;
mod site;

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
    let title = format!("what an operation costs a server, by its own count; {rounds} rounds");
    bench.report.begin("P9", &title);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let rounds = runtime.block_on(measure(rounds))?;
    let rows = [
        (SET_IN_A_SCRIPT, 0),
        ("an acquire alone", 0),
        ("one of 16 acquires in a call", 0),
        ("an acquire alone, by the script", 0),
        ("one of 16 acquires in a call, by the script", 0),
        (SET_AND_DELETE, 5),
        ("an acquire and its release, each alone", 5),
        ("a pair, in calls of 8 acquires and 8 releases", 5),
        ("an acquire and its release, each alone, by the script", 5),
        (
            "a pair, in calls of 8 acquires and 8 releases, by the script",
            5,
        ),
        (REFUSED, 10),
        ("a refused acquire, of a holder with a label", 10),
        (REFUSED_BY_SCRIPT, 12),
        (
            "a refused acquire, of a holder with a label, by the script",
            12,
        ),
    ];
    each(&mut bench.report, "P9", rows, &rounds);
    Ok(())
}

async fn measure(rounds: usize) -> Result<Vec<[f64; 14]>> {
    let mut script = Script::start().await?;
    // Until every counter is there, as in a namespace that has been used for some time.
    for _ in 0..WARM_UP {
        script.shared(Form::Functions).await?;
        script.shared(Form::Script).await?;
    }
    let mut figures = Vec::new();
    for _ in 0..rounds {
        let set = script.bare().await?;
        let [alone, one_of_16, pair, one_of_8_pairs] = script.form(Form::Functions).await?;
        let raw = script.raw().await?;
        let by_script = script.form(Form::Script).await?;
        let refused = script.refused(Form::Functions).await?;
        let refused_by_script = script.refused(Form::Script).await?;
        figures.push([
            set,
            alone,
            one_of_16,
            by_script[0],
            by_script[1],
            raw,
            pair,
            one_of_8_pairs,
            by_script[2],
            by_script[3],
            refused[0],
            refused[1],
            refused_by_script[0],
            refused_by_script[1],
        ]);
    }
    Ok(figures)
}

/// What is measured in a round; nothing that a round takes stays.
struct Script {
    site: Site,
    /// The hashes of the scripts that are compared with the client's.
    set: String,
    compare_and_delete: String,
    /// How many locks there were.
    used: u64,
}

impl Script {
    async fn start() -> Result<Self> {
        let site = Site::start().await?;
        Ok(Self {
            set: site.load(SET)?,
            compare_and_delete: site.load(COMPARE_AND_DELETE)?,
            site,
            used: 0,
        })
    }

    /// Measures a key that is set in a script.
    async fn bare(&mut self) -> Result<f64> {
        let locks = Lock::next(&mut self.used, ALONE);
        let set = |key: &str, owner: &str| {
            let command = ["EVALSHA", &self.set, "1", key, owner, "30000"];
            self.site.command(&command)
        };
        let bare = self.plain("evalsha", &locks, set).await?;
        self.delete(&locks).await?;
        Ok(bare)
    }

    /// Measures a key that is set by a command and deleted in a script: what a plain client does.
    async fn raw(&mut self) -> Result<f64> {
        let locks = Lock::next(&mut self.used, ALONE);
        let set = |key: &str, owner: &str| {
            let command = ["SET", key, owner, "NX", "PX", "30000"];
            self.site.command(&command)
        };
        let set = self.plain("set", &locks, set).await?;
        Ok(set + self.delete(&locks).await?)
    }

    async fn delete(&self, locks: &[Lock]) -> Result<f64> {
        let delete = |key: &str, owner: &str| {
            let command = ["EVALSHA", &self.compare_and_delete, "1", key, owner];
            self.site.command(&command)
        };
        self.plain("evalsha", locks, delete).await
    }

    async fn plain<F, T, E>(
        &self,
        name: &str,
        locks: &[Lock],
        command: impl Fn(&str, &str) -> F,
    ) -> Result<f64>
    where
        F: Future<Output = Result<T, E>>,
        E: std::fmt::Display,
    {
        let command = |lock: &Lock| command(&lock.key(), &lock.owner().to_wire());
        let commands = locks.iter().map(command).collect();
        Ok(self.site.cost(name, commands).await?.0)
    }

    /// Measures an acquire alone, one of 16, a pair whose halves are alone, and one of eight pairs.
    async fn form(&mut self, form: Form) -> Result<[f64; 4]> {
        let (acquire, release) = self.alone(form).await?;
        let (shared, mixed) = self.shared(form).await?;
        Ok([acquire, shared, acquire + release, mixed])
    }

    /// Measures an acquire and a release, each in a call of its own.
    async fn alone(&mut self, form: Form) -> Result<(f64, f64)> {
        let locks = Lock::next(&mut self.used, ALONE);
        let acquires = locks.iter().map(|lock| vec![lock.acquire()]);
        let acquire = self.calls(form, acquires.collect()).await?;
        let releases = locks.iter().map(|lock| vec![lock.release()]);
        Ok((acquire, self.calls(form, releases.collect()).await?))
    }

    /// Measures acquires that are refused: where the holder has no label, and where it has one.
    async fn refused(&mut self, form: Form) -> Result<[f64; 2]> {
        let mut costs = [0.0; 2];
        for (cost, taking) in costs
            .iter_mut()
            .zip([Lock::acquire, Lock::acquire_labelled])
        {
            let locks = Lock::next(&mut self.used, ALONE);
            let alone = |request: fn(Lock) -> Request| {
                let locks = locks.iter().copied().map(request);
                locks.map(|request| vec![request]).collect::<Vec<_>>()
            };
            self.calls(form, alone(taking)).await?;
            let refused = |reply: &Reply| matches!(reply, Reply::Held { .. });
            *cost = self
                .answered(form, alone(Lock::acquire_too), refused)
                .await?;
            let keys: Vec<String> = locks.iter().map(|lock| lock.key()).collect();
            let command: Vec<&str> = ["DEL"]
                .into_iter()
                .chain(keys.iter().map(String::as_str))
                .collect();
            self.site.command(&command).await?;
        }
        Ok(costs)
    }

    /// Measures one of the acquires that share a call, and an acquire and a release that share one with others.
    async fn shared(&mut self, form: Form) -> Result<(f64, f64)> {
        let old = Lock::next(&mut self.used, CALLS * SHARED);
        let new = Lock::next(&mut self.used, CALLS * SHARED);
        let all = |locks: &[Lock], request: fn(Lock) -> Request| {
            let calls = locks.chunks(SHARED);
            let calls = calls.map(|locks| locks.iter().copied().map(request).collect());
            calls.collect::<Vec<Vec<_>>>()
        };
        let acquires = self.calls(form, all(&old, Lock::acquire)).await?;
        // Each call lets some go that were taken before it, and takes as many.
        let pairs = SHARED / 2;
        let both = old.chunks(pairs).zip(new.chunks(pairs)).map(|(old, new)| {
            let releases = old.iter().map(|lock| lock.release());
            releases.chain(new.iter().map(|lock| lock.acquire()))
        });
        let mixed = self
            .calls(form, both.map(Iterator::collect).collect())
            .await?;
        self.calls(form, all(&new, Lock::release)).await?;
        Ok((acquires / SHARED as f64, mixed / pairs as f64))
    }

    /// Measures what each of these calls costs; every request of theirs must be granted.
    async fn calls(&mut self, form: Form, calls: Vec<Vec<Request>>) -> Result<f64> {
        let granted = |reply: &Reply| matches!(reply, Reply::Taken { .. }) || reply.is_done();
        self.answered(form, calls, granted).await
    }

    /// Measures what each of these calls costs; every request of theirs must be answered like this.
    async fn answered(
        &mut self,
        form: Form,
        calls: Vec<Vec<Request>>,
        expected: fn(&Reply) -> bool,
    ) -> Result<f64> {
        let sent = calls.iter().map(|requests| {
            let call = self.site.call(form, requests);
            async move { call.await.map_err(|error| error.reason) }
        });
        let sent = sent.collect();
        let (cost, answers) = self.site.cost(form.command(), sent).await?;
        let mut replies = answers.iter().flat_map(|answer| &answer.replies);
        match replies.find(|reply| !reply.as_ref().is_ok_and(expected)) {
            None => Ok(cost),
            Some(other) => Err(Failed(format!("it was answered otherwise: {other:?}"))),
        }
    }
}

/// What an acquire and a pair are compared with.
const SET_IN_A_SCRIPT: &str = "SET NX PX in a script of one line";
const SET_AND_DELETE: &str = "SET NX PX, and a script that compares and deletes";

const REFUSED: &str = "a refused acquire, of a holder without a label";
const REFUSED_BY_SCRIPT: &str = "a refused acquire, of a holder without a label, by the script";

const SET: &str = "return redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2])";

const COMPARE_AND_DELETE: &str =
    "return redis.call('GET', KEYS[1]) == ARGV[1] and redis.call('DEL', KEYS[1]) or 0";

const WARM_UP: usize = 10;
/// How many calls of one operation are made in a row.
const ALONE: usize = 64;
/// How many calls of several operations are made in a row, and of how many.
const CALLS: usize = 16;
const SHARED: usize = 16;
