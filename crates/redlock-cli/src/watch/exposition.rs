//! The measurements of the client of `watch`, for Prometheus.

use std::{convert::Infallible, time::Duration};

use metrics_exporter_prometheus::{BuildError, PrometheusBuilder, PrometheusHandle};

/// All that was measured since the beginning.
#[derive(Clone)]
pub(super) struct Exposition(PrometheusHandle);

impl Exposition {
    /// Begins to measure; clients that are built later are part of it.
    ///
    /// # Errors
    ///
    /// Something else in this process measures already.
    pub(super) fn begin() -> Result<Self, BuildError> {
        let builder = PrometheusBuilder::new().set_buckets(&BUCKETS)?;
        builder.install_recorder().map(Self)
    }

    /// Returns it in Prometheus' text format.
    pub(super) fn text(&self) -> String {
        self.0.render()
    }

    /// Sums up the measurements now and then, so that their memory does not grow while no request asks for them.
    pub(super) async fn keep_small(&self) -> Infallible {
        loop {
            tokio::time::sleep(EVERY).await;
            self.0.run_upkeep();
        }
    }
}

/// In seconds; the alerts ask for the one that ends at a second.
const BUCKETS: [f64; 14] = [
    0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0,
];

const EVERY: Duration = Duration::from_secs(5);
