//! A caller in a process of its own: it comes for the key, holds it for a while, and comes again.

use redlock_core::{AcquireOptions, Fairness, Redlock, Wait};
use tokio::time::sleep;

use crate::{APART, BoxError, LONGEST, VISITS};

/// What it says when it comes, and when it has the key.
pub(crate) const COMES: &str = "comes";
pub(crate) const SERVED: &str = "is served";

pub(crate) async fn run(name: &str, nodes: &str) -> Result<(), BoxError> {
    let redlock = Redlock::builder().nodes(nodes.split(',')).build().await?;
    // The place in a line is the time at which a caller came, by the clocks of the nodes: a client learns it from answers.
    redlock
        .acquire(format!("warm-up:{name}"))
        .await?
        .release()
        .await?;
    for _ in 0..VISITS {
        println!("{COMES}");
        let options = AcquireOptions::new()
            .wait(Wait::UpTo(LONGEST))
            .fairness(Fairness::Strict);
        let guard = redlock.acquire_with("counter", options).await?;
        println!("{SERVED}");
        sleep(APART).await;
        guard.release().await?;
    }
    redlock.close().await;
    Ok(())
}
