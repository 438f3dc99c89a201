//! Other companies' services: all that matters here is that they take a few milliseconds to answer.

use std::time::Duration;

use tokio::time::sleep;

use super::error::AppError;

/// A test card, such as payment providers have them, whose bank takes its time.
pub(crate) const SLOW_CARD: &str = "slow";

/// Asks the card's bank; asking twice for one order is asking for the same money.
pub(crate) async fn authorise(order_id: i64, card: &str) -> Result<(), AppError> {
    tracing::debug!(order_id, "the bank is asked");
    sleep(if card == SLOW_CARD { SLOW } else { USUAL }).await;
    match card {
        "declined" => Err(AppError::Declined),
        _ => Ok(()),
    }
}

/// Asks the warehouse whether one can be sent.
pub(crate) async fn confirm_delivery() {
    sleep(USUAL).await;
}

/// Asks what some articles cost at present.
pub(crate) async fn fetch_prices() {
    sleep(USUAL).await;
}

const USUAL: Duration = Duration::from_millis(5);
const SLOW: Duration = Duration::from_secs(1);
