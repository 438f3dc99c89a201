use redlock_core::{AcquireOptions, Redlock};

use crate::OnLost;

/// How a layer locks.
#[derive(Clone, Debug)]
pub(crate) struct Terms {
    pub(crate) redlock: Redlock,
    pub(crate) options: AcquireOptions,
    pub(crate) on_lost: OnLost,
}
