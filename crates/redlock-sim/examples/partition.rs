//! A replica that is cut off from a majority while it holds a lock: `cargo run --features client --example partition`.
//!
//! No real time passes: a lease of ten seconds ends in a few milliseconds.

use std::error::Error;

use redlock_core::LossReason;
use redlock_sim::kit::SimNodes;

#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() -> Result<(), Box<dyn Error>> {
    let nodes = SimNodes::new(3);
    let (here, there) = (nodes.links(), nodes.links());
    let first = here.client().dangerous_seed(1).build().await?;
    let second = there.client().dangerous_seed(2).build().await?;

    let guard = first.acquire("order:42").await?;
    here.cut_off(&[0, 1]);
    assert_eq!(guard.lease().lost().await, LossReason::Expired);
    eprintln!("the first replica knows that its lease is lost");
    let other = second.acquire("order:42").await?;
    assert!(other.token() > guard.token());
    eprintln!("the second replica has the lock, with a greater token");
    Ok(())
}

#[test]
fn it_runs() -> Result<(), Box<dyn std::error::Error>> {
    main()
}
