use std::time::Duration;

use crate::{Delivery, Missed, OnLost, Overlap, Tries};

/// The settings of a job as the application gave them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Settings {
    pub(crate) early: Option<Duration>,
    pub(crate) start_within: Option<Duration>,
    pub(crate) ttl: Option<Duration>,
    pub(crate) overlap: Overlap,
    pub(crate) missed: Missed,
    pub(crate) catch_up_window: Option<Duration>,
    pub(crate) delivery: Delivery,
    pub(crate) retry_within: Option<Duration>,
    pub(crate) on_lost: OnLost,
    pub(crate) max_runtime: Option<Duration>,
    pub(crate) spread: Option<Duration>,
    pub(crate) tries: Option<Tries>,
}
