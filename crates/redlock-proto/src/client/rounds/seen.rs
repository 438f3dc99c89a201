use crate::{ClockReading, RunId};

/// Which server has answered, and what its clock showed.
#[derive(Clone, Debug)]
pub(in super::super) struct Seen {
    pub(in super::super) run: RunId,
    pub(in super::super) reading: ClockReading,
}
