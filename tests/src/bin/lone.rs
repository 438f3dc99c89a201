//! A process of one thread, for tests of processes that are forked and of those that may start no thread.
//!
//! Its arguments are the URLs of new servers; without any, the nodes are in memory.

use std::{io::Write, os::unix::process::parent_id, time::Duration};

use redlock_core::Redlock;
use tokio::{
    runtime::Builder,
    time::{sleep, timeout},
};

fn main() -> std::io::Result<()> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let urls: Vec<String> = std::env::args().skip(1).collect();
    let builder = match urls.as_slice() {
        [] => Redlock::builder().in_memory_nodes(3),
        urls => Redlock::builder().nodes(urls).ttl(TTL),
    };
    let redlock = match runtime.block_on(builder.build()) {
        Ok(redlock) => redlock,
        Err(error) => return writeln!(std::io::stdout(), "{:?}: {error}", error.kind()),
    };
    let guard = runtime.block_on(async {
        redlock.dangerous_bless().await;
        let guard = redlock.acquire("a").await;
        // After these, the runtime drives.
        for _ in 0..50 {
            drop(redlock.acquire("b").await);
        }
        guard
    });
    // The test has put a function in place of the system's, by which this process forks and the child is told 0.
    if parent_id() != 0 {
        let is_held = guard.as_ref().is_ok_and(|guard| guard.lease().is_held());
        writeln!(std::io::stdout(), "held by the parent: {is_held}")?;
        drop(guard);
        runtime.block_on(redlock.close());
        return Ok(());
    }
    if !urls.is_empty() {
        // The child has the runtime, its tasks and the sockets, too.
        runtime.block_on(async { sleep(2 * TTL).await });
        let is_held = guard.as_ref().is_ok_and(|guard| guard.lease().is_held());
        writeln!(std::io::stdout(), "held by the child: {is_held}")?;
    }
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let work = async {
        let acquired = redlock.acquire("b").await.map(drop);
        let acquired = acquired.expect_err("there is no driver");
        let reports = redlock.node_reports().await;
        let released = guard?.release().await.map_err(|error| error.kind());
        redlock.close().await;
        Ok::<_, redlock_core::AcquireError>(format!(
            "{:?}: {acquired}; {} reports; {released:?}",
            acquired.kind(),
            reports.len()
        ))
    };
    let said = runtime.block_on(async { timeout(Duration::from_secs(10), work).await });
    writeln!(std::io::stdout(), "{said:?}")
}

/// How long leases live.
const TTL: Duration = Duration::from_secs(2);
