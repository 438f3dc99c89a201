//! The counts and times of the feature `metrics`; nothing without it.
//!
//! Both forms have the same types, of which those without the feature are empty.

#[cfg(not(feature = "metrics"))]
mod off;
#[cfg(feature = "metrics")]
mod on;
#[cfg(feature = "metrics")]
mod recorder;
#[cfg(feature = "metrics")]
mod standing;
#[cfg(feature = "metrics")]
mod table;

#[cfg(not(feature = "metrics"))]
pub(crate) use self::off::{LockMeter, Meter, NodeMeter, Stopwatch};
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
