//! Clients with tasks, on tokio's runtime of several threads as services have it.

use std::{
    process,
    time::{Duration, Instant},
};

use tokio::{runtime::Runtime, task::JoinSet};

use super::{
    Client, Outcome, Workload,
    sample::{Sample, Times},
};
use crate::{failed::Result, meter};

/// A client whose calls are futures.
pub(super) trait Locks: Clone + Send + Sync + 'static {
    /// A lock that is held.
    type Held: Send;

    /// Acquires `key`; `None` if that failed.
    fn acquire(&self, key: &str) -> impl Future<Output = Option<Self::Held>> + Send;

    /// Releases what is held, and says if a majority has confirmed that.
    fn release(&self, held: Self::Held) -> impl Future<Output = bool> + Send;
}

/// A client and the runtime that it is used from.
pub(super) struct Concurrent<L> {
    runtime: Runtime,
    locks: L,
    /// How many tasks there were, for names that nobody has had.
    tasks: u64,
}

impl<L: Locks> Concurrent<L> {
    pub(super) fn start(connect: impl Future<Output = Result<L>>) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()?;
        let locks = runtime.block_on(connect)?;
        Ok(Self {
            runtime,
            locks,
            tasks: 0,
        })
    }

    /// The beginning of the names of one task's keys.
    fn prefix(&mut self) -> String {
        self.tasks += 1;
        format!("bench:{}:{}", process::id(), self.tasks)
    }

    fn pairs(&mut self, tasks: usize, length: Duration) -> Result<Outcome> {
        let prefixes: Vec<_> = (0..tasks).map(|_| self.prefix()).collect();
        let locks = &self.locks;
        self.runtime.block_on(async {
            let sample = Sample::start();
            let until = meter::now() + length;
            let mut set = JoinSet::new();
            for prefix in prefixes {
                set.spawn(pairs(locks.clone(), prefix, until));
            }
            let mut times = Times::default();
            while let Some(task) = set.join_next().await {
                times.append(task?);
            }
            Ok(sample.end(times))
        })
    }
}

impl<L: Locks> Client for Concurrent<L> {
    fn run(&mut self, workload: &Workload) -> Result<Outcome> {
        match *workload {
            Workload::Pairs { tasks, length } => self.pairs(tasks, length),
        }
    }
}

/// Acquires and releases one key after the other.
async fn pairs<L: Locks>(locks: L, prefix: String, until: Instant) -> Times {
    let mut times = Times::default();
    for number in 0_u64.. {
        let key = format!("{prefix}:{number}");
        let started = meter::now();
        if started >= until {
            break;
        }
        let Some(held) = locks.acquire(&key).await else {
            times.fail();
            continue;
        };
        let acquired = meter::now();
        if locks.release(held).await {
            times.add(started, acquired, meter::now());
        } else {
            times.fail();
        }
    }
    times
}
