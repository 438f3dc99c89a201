//! The parts that all requests of a replica share.

use std::time::Duration;

use axum::http::HeaderName;
use redlock_core::Redlock;

use crate::hotel::Hotel;

/// The parts that all requests share.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Service {
    /// The data.
    pub hotel: Hotel,
    /// The client of the nodes.
    pub redlock: Redlock,
    /// The time that the bank takes for a charge.
    pub bank_takes: Duration,
}

impl Service {
    /// Makes the service of one replica.
    pub fn new(hotel: Hotel, redlock: Redlock) -> Self {
        Self {
            hotel,
            redlock,
            bank_takes: BANK_TAKES,
        }
    }
}

/// The header by which a client says that it sends a payment again.
pub(crate) const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// The time that the bank takes, unless the environment says otherwise.
const BANK_TAKES: Duration = Duration::from_millis(50);
