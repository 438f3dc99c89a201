//! The counts and times of the feature `metrics`; nothing without it.
//!
//! Without it, one empty type stands for all of its types.

#[cfg(not(feature = "metrics"))]
mod off;
#[cfg(feature = "metrics")]
mod on;
#[cfg(feature = "metrics")]
mod standing;
#[cfg(feature = "metrics")]
mod table;

#[cfg(not(feature = "metrics"))]
pub(crate) use self::off::{
    NoMetrics as LockMeter, NoMetrics as Meter, NoMetrics as NodeMeter, NoMetrics as Stopwatch,
};
#[cfg(feature = "metrics")]
pub(crate) use self::on::{LockMeter, Meter, NodeMeter, Stopwatch};
#[cfg(feature = "metrics")]
pub use self::table::{ALL, Kind, Metric, describe};

/// How far wall clocks are ahead of that of a majority of the nodes, in seconds, as far as it is known.
#[derive(Clone, Debug)]
#[cfg_attr(not(feature = "metrics"), expect(dead_code, reason = "nobody looks"))]
pub(crate) struct Offsets {
    /// That of this machine.
    pub(crate) own: Option<f64>,
    pub(crate) nodes: Vec<Option<f64>>,
}

/// Tells the recorder something.
///
/// A recorder is an application's code, and it runs in the driver too: a mistake in it costs a figure, and no lease.
#[cfg(feature = "metrics")]
fn tell(work: impl FnOnce()) {
    // No state of ours is behind a handle, so none can be left half-done.
    let _: Result<(), _> = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
}
