//! A plain quorum over redis-rs: what a service would write for itself.
//!
//! It goes on at the third of five answers.
//! The other calls go on in a task of their own, because redis-rs does not send a call that was dropped.
//! A node that does not get a release would keep the key.

use std::{
    process,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use deadpool_redis::redis::{self, Cmd, Value, aio::MultiplexedConnection, cmd};
use futures_util::{
    future::ready,
    stream::{FuturesUnordered, StreamExt},
};
use tokio::runtime::Handle;

use super::{
    locks::Locks,
    raw::{COMPARE_AND_DELETE, load},
};
use crate::failed::Result;

/// One connection to each node, one command per lock and node; a majority of the answers decides.
#[derive(Clone)]
pub(super) struct RedisRs {
    nodes: Vec<MultiplexedConnection>,
    /// The hash of the script that deletes.
    script: String,
    owners: Arc<AtomicU64>,
}

/// A key, and the owner that it was set to.
pub(super) struct Held {
    key: String,
    owner: String,
}

impl RedisRs {
    pub(super) async fn connect(urls: &[String]) -> Result<Self> {
        let mut nodes = Vec::new();
        for url in urls {
            let client = redis::Client::open(url.as_str())?;
            nodes.push(client.get_multiplexed_async_connection().await?);
        }
        Ok(Self {
            nodes,
            script: load(urls, COMPARE_AND_DELETE)?,
            owners: Arc::default(),
        })
    }

    /// Sends a command to all nodes, and returns once a majority says yes, or cannot any more.
    async fn majority(&self, command: Cmd, yes: fn(&Value) -> bool) -> bool {
        let command = Arc::new(command);
        let calls = self.nodes.iter().map(|node| {
            let (mut node, command) = (node.clone(), Arc::clone(&command));
            async move { command.query_async::<Value>(&mut node).await }
        });
        let mut calls: FuturesUnordered<_> = calls.collect();
        let majority = self.nodes.len() / 2 + 1;
        let (mut granted, mut refused) = (0, 0);
        while let Some(answer) = calls.next().await {
            if answer.is_ok_and(|answer| yes(&answer)) {
                granted += 1;
            } else {
                refused += 1;
            }
            let lost = refused > self.nodes.len() - majority;
            if granted >= majority || lost {
                if !calls.is_empty() {
                    Handle::current().spawn(calls.for_each(|_| ready(())));
                }
                return !lost;
            }
        }
        false
    }
}

impl Locks for RedisRs {
    type Held = Held;

    async fn acquire(&self, key: &str, ttl: Duration) -> Option<Held> {
        let number = self.owners.fetch_add(1, Ordering::Relaxed);
        let held = Held {
            key: key.to_owned(),
            owner: format!("{:016x}{number:016x}", process::id()),
        };
        let mut set = cmd("SET");
        set.arg(&held.key).arg(&held.owner).arg("NX");
        set.arg("PX").arg(ttl.as_millis() as u64);
        if self.majority(set, |answer| *answer == Value::Okay).await {
            return Some(held);
        }
        self.release(held).await;
        None
    }

    async fn release(&self, held: Held) -> bool {
        let mut delete = cmd("EVALSHA");
        delete.arg(&self.script).arg(1).arg(&held.key);
        delete.arg(&held.owner);
        let deleted = |answer: &Value| *answer == Value::Int(1);
        self.majority(delete, deleted).await
    }
}
