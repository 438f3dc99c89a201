//! Three replicas with one job, each of whose ticks starts on one of them: `cargo run --example billing`.

use std::{
    error::Error,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use redlock_core::{MemoryNode, Redlock};
use redlock_cron::{Run, SingletonJob, SingletonScheduler};
use tokio::time::sleep;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let nodes = [MemoryNode::new(), MemoryNode::new(), MemoryNode::new()];
    let ticks = Arc::new(Mutex::new(Vec::new()));
    let mut replicas = Vec::new();
    for replica in 1..=3 {
        let redlock = Redlock::builder().nodes(nodes.clone()).build().await?;
        let jobs = SingletonScheduler::standalone(redlock)
            .namespace("billing")
            .build()?;
        let ticks = Arc::clone(&ticks);
        let close_books = move |run: Run| {
            eprintln!("replica {replica} closes the books for {}", run.tick());
            let mut ticks = ticks.lock().unwrap_or_else(PoisonError::into_inner);
            ticks.push(run.tick());
            async { Ok::<(), std::io::Error>(()) }
        };
        // In production, by a pattern: `SingletonJob::cron("close-books", "0 0 2 * * *", Berlin, close_books)`.
        let job = SingletonJob::every("close-books", Duration::from_secs(1), close_books);
        jobs.add(job).await?;
        jobs.start().await?;
        replicas.push(jobs);
    }
    let so_far = || ticks.lock().unwrap_or_else(PoisonError::into_inner).clone();
    while so_far().len() < 3 {
        sleep(Duration::from_millis(50)).await;
    }
    for jobs in replicas {
        // No new run starts, and those in flight get ten seconds.
        let report = jobs.shutdown(Duration::from_secs(10)).await;
        assert_eq!(report.unfinished().len(), 0, "all runs have finished");
    }
    let all = so_far();
    let mut once = all.clone();
    once.sort();
    once.dedup();
    assert_eq!(once.len(), all.len(), "each tick starts once: {all:?}");
    Ok(())
}

#[test]
fn it_runs() -> Result<(), Box<dyn std::error::Error>> {
    main()
}
