use axum::{Json, extract::State};
use serde::{Deserialize, Serialize};

use crate::server::state::App;

/// What one replica has to tell of itself.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Statistics {
    /// Payments that have begun and are not done.
    pub(crate) payments_under_way: usize,
    /// How often a bank was asked since the start.
    pub(crate) banks_asked: u64,
    /// Writes that the fence has refused since the start.
    pub(crate) late_writes_refused: u64,
}

pub(crate) async fn statistics(State(app): State<App>) -> Json<Statistics> {
    Json(Statistics {
        payments_under_way: app.payments.len(),
        banks_asked: app.counters.banks_asked.get(),
        late_writes_refused: app.counters.late_writes_refused.get(),
    })
}
