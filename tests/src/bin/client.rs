//! A client in a process of its own, for tests to freeze and to kill.

use std::io::Write;

use redlock_tests::{Work, work};

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> std::io::Result<()> {
    let told = std::env::args().nth(1).unwrap_or_default();
    let told: Work = serde_json::from_str(&told).map_err(std::io::Error::other)?;
    let report = work(told).await;
    writeln!(std::io::stdout(), "{report}")
}
