//! The code in the README compiles: it stands here again, and a test compares the two.

#![expect(
    dead_code,
    reason = "what the README shows is compiled here and run by the crates' own examples"
)]

use std::time::Duration;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

async fn a_handler(listener: tokio::net::TcpListener) -> Result<(), BoxError> {
    use axum::{Router, extract::Path, routing::post};
    use redlock_core::Redlock;
    use redlock_tower::{PathKey, RedlockLayer, RequestLease};

    let nodes = ["redis://10.0.0.1", "redis://10.0.0.2", "redis://10.0.0.3"];
    let redlock = Redlock::builder().nodes(nodes).build().await?;
    let order = PathKey::new("order", "order_id").parsed::<u64>(); // as the handler reads it
    let one_per_order = RedlockLayer::new(redlock.clone(), order);
    #[rustfmt::skip] // one line there
    let app: Router = Router::new().route("/orders/{order_id}/pay", post(pay).route_layer(one_per_order));
    axum::serve(listener, app).await?;

    async fn pay(Path(order_id): Path<u64>, lease: RequestLease) -> String {
        // No other request for this order runs now, on any replica.
        format!(
            "order {order_id} is paid, with {:?} to spare\n",
            lease.remaining()
        )
    }
    Ok(())
}

async fn close_books(_: redlock_cron::chrono::NaiveDate) -> Result<(), BoxError> {
    Ok(())
}

async fn a_job(redlock: redlock_core::Redlock) -> Result<(), BoxError> {
    use redlock_cron::{Run, SingletonJob, SingletonScheduler, chrono_tz::Europe::Berlin};

    let jobs = SingletonScheduler::standalone(redlock)
        .namespace("billing")
        .build()?;
    let close_day = SingletonJob::cron("close-day", "0 0 2 * * *", Berlin, |run: Run| async move {
        close_books(run.local_date()).await // returns a `Result`; dropped if its lease is lost
    });
    jobs.add(close_day).await?;
    jobs.start().await?;
    // When the process is asked to end: no new run starts, and those in flight get half a minute.
    let report = jobs.shutdown(Duration::from_secs(30)).await;
    drop(report);
    Ok(())
}

async fn send_report() -> usize {
    1
}

async fn anything_else(redlock: redlock_core::Redlock) -> Result<(), BoxError> {
    #[rustfmt::skip] // one line there
    let guard = redlock.acquire_all(["account:7", "account:9"]).await?; // or acquire("report")
    let sent = guard.run(send_report()).await?; // dropped if the lease is lost
    guard.release().await?; // or drop the guard
    #[rustfmt::skip] // one line there
    let slot = redlock.slots("exports", 4)?.acquire().await?; // at most four at once, on all replicas
    #[rustfmt::skip] // one line there
    let report = redlock.acquire_shared("accounts").await?; // readers together, writers alone
    assert!(report.is_held());
    assert_eq!((sent, slot.slot() < 4), (1, true));
    Ok(())
}

async fn from_the_environment() -> Result<redlock_core::Redlock, BoxError> {
    use redlock_core::{Config, Redlock};

    #[rustfmt::skip] // one line there
    let redlock = Redlock::builder().config(Config::from_env()?).build().await?;
    Ok(redlock)
}

#[test]
fn every_line_of_code_in_the_readme_is_compiled_here() {
    // White space aside: what is one line there may be laid out otherwise here.
    let squeeze = |text: &str| text.split_whitespace().collect::<String>();
    let here = squeeze(include_str!("readme.rs"));
    let readme = include_str!("../../README.md");
    let blocks: Vec<_> = readme.split("```rust\n").skip(1).collect();
    assert_eq!(blocks.len(), 4);
    for line in blocks
        .iter()
        .filter_map(|block| block.split("```").next())
        .flat_map(str::lines)
    {
        assert!(
            here.contains(&squeeze(line)),
            "the README has a line of its own: {line}"
        );
    }
}
