//! Work that needs no request.

use std::time::Duration;

use redlock_core::{AcquireOptions, Redlock, ResourceKey, Wait};
use redlock_cron::{
    BoxError, Delivery, Missed, Run, SetupError, SingletonJob, SingletonScheduler,
    SingletonSchedulerBuilder,
};

use crate::hotel::Hotel;

/// Returns the scheduler of one replica, without jobs yet; a test gives it a clock.
pub fn scheduler(redlock: Redlock) -> SingletonSchedulerBuilder {
    SingletonScheduler::standalone(redlock).namespace("bookings")
}

/// Adds the jobs, and starts them.
pub async fn start(
    jobs: &SingletonScheduler,
    redlock: &Redlock,
    hotel: &Hotel,
) -> Result<(), SetupError> {
    jobs.add(expiry(redlock.clone(), hotel.clone())).await?;
    jobs.add(closing(hotel.clone())).await?;
    jobs.start().await
}

/// Gives up bookings that were not paid in time, each minute. A minute that is missed does not matter: the next one does its work.
fn expiry(redlock: Redlock, hotel: Hotel) -> SingletonJob {
    SingletonJob::every("expire", Duration::from_secs(60), move |run: Run| {
        expire(redlock.clone(), hotel.clone(), run)
    })
}

/// The lock of the job keeps other replicas' jobs away, and no request: one that is being paid has the lock of its booking.
async fn expire(redlock: Redlock, hotel: Hotel, run: Run) -> Result<(), BoxError> {
    let mut expired = 0;
    for booking in hotel.unpaid_too_long(run.tick()) {
        let resource = ResourceKey::new("booking", booking)?;
        let options = AcquireOptions::new().wait(Wait::Never);
        // A request that holds the lock pays the booking, or the next minute finds it again.
        if let Ok(guard) = redlock.acquire_with(resource, options).await {
            expired += u32::from(hotel.expire(booking));
            drop(guard);
        }
    }
    tracing::info!(expired, "bookings that nobody paid");
    Ok(())
}

/// Closes the day before, each night; also days on which no replica was up, and again if a replica dies in a run.
fn closing(hotel: Hotel) -> SingletonJob {
    let closing = SingletonJob::cron("close-day", "0 0 3 * * *", "Europe/Berlin", move |run| {
        close(hotel.clone(), run)
    });
    closing
        .missed(Missed::All { max: 31 })
        .catch_up_window(Duration::from_secs(31 * 24 * 3_600))
        .delivery(Delivery::AtLeastOnce { max_attempts: 5 })
        .max_runtime(Duration::from_secs(3_600))
}

async fn close(hotel: Hotel, run: Run) -> Result<(), BoxError> {
    let token = run.fencing_token();
    let refused = |refused| format!("{refused:?}");
    hotel.begin_closing(token).map_err(refused)?;
    let day = run
        .local_date()
        .pred_opt()
        .ok_or("there is no day before")?;
    // Reports are written, letters are sent.
    tokio::time::sleep(Duration::from_secs(60)).await;
    hotel.close_day(day, token).map_err(refused)?;
    tracing::info!(%day, "closed");
    Ok(())
}
