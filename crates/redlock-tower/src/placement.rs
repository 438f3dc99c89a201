use std::sync::atomic::{AtomicBool, Ordering};

use http::StatusCode;

/// Whether the layer seems to be where it also locks requests that no handler serves.
///
/// A layer cannot know that before it calls the inner service: what axum puts into `MethodRouter::layer` is one opaque
/// route for each method and one for all others.
#[derive(Debug, Default)]
pub(crate) struct Placement {
    told: AtomicBool,
}

impl Placement {
    /// Warns, once for a layer, of a request that has held the lock though no handler served its method.
    pub(crate) fn look_at(&self, answer: StatusCode) {
        if answer == StatusCode::METHOD_NOT_ALLOWED && !self.told.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                target: crate::TARGET,
                "a request has waited for and held its lock to be answered with 405: put the layer by \
                 `MethodRouter::route_layer` around handlers only, or name the methods that it locks with `only`"
            );
        }
    }
}
