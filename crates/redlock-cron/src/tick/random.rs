use std::time::Duration;

use uuid::Uuid;

/// Returns a random time, in whole milliseconds.
pub(crate) fn up_to(longest: Duration) -> Duration {
    let millis = longest.as_millis();
    let random = Uuid::new_v4().as_u128() % (millis + 1);
    Duration::from_millis(u64::try_from(random).unwrap_or(0))
}
