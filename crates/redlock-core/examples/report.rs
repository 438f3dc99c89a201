//! A report that one process writes at a time, to a store that refuses late writes: `cargo run --example report`.

use std::error::Error;

use redlock_core::{AcquireErrorKind, Fence, MemoryNode, Redlock};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    // Two clients, as in two processes; on servers: `.nodes(["redis://10.0.0.1", "redis://10.0.0.2", "redis://10.0.0.3"])`.
    let nodes = [MemoryNode::new(), MemoryNode::new(), MemoryNode::new()];
    let one = Redlock::builder().nodes(nodes.clone()).build().await?;
    let other = Redlock::builder().nodes(nodes).build().await?;
    // In production, the store keeps it beside the report.
    let mut fence = Fence::new();

    let guard = one.acquire("report:2026-11").await?;
    let late = guard.token();
    let refused = other.try_acquire("report:2026-11").await.map(drop);
    let refused = refused.expect_err("the first client holds the lease");
    assert_eq!(refused.kind(), AcquireErrorKind::Contended);
    eprintln!("the other client: {refused}");
    // The work is dropped if the lease is lost.
    let report = guard.run(async { "the report" }).await?;
    guard.release().await?;

    let guard = other.acquire("report:2026-11").await?;
    fence.write(guard.token())?;
    eprintln!(
        "{report} of the other client is stored, with token {}",
        guard.token()
    );
    drop(guard); // released in the background

    // The first client was paused before its write, which comes now.
    let refused = fence.write(late).expect_err("the token is older");
    eprintln!("the first client's write: {refused}");

    one.close().await;
    other.close().await; // the nodes confirm the last release
    Ok(())
}

#[test]
fn it_runs() -> Result<(), Box<dyn std::error::Error>> {
    main()
}
