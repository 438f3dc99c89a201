//! A process of one thread, for tests of processes that are forked and of those that may start no thread.

use std::{io::Write, os::unix::process::parent_id, time::Duration};

use redlock_core::Redlock;
use tokio::{runtime::Builder, time::timeout};

fn main() -> std::io::Result<()> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let built = runtime.block_on(Redlock::builder().in_memory_nodes(3).build());
    let redlock = match built {
        Ok(redlock) => redlock,
        Err(error) => return writeln!(std::io::stdout(), "{:?}: {error}", error.kind()),
    };
    let guard = runtime.block_on(redlock.acquire("a"));
    // The test has put a function in place of the system's, by which this process forks and the child is told 0.
    if parent_id() != 0 {
        drop(guard);
        runtime.block_on(redlock.close());
        return Ok(());
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
