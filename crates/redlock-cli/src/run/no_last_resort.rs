//! The end of the warden by the kernel, on systems that have no such timer.

/// A timer that never ends.
pub(super) struct LastResort;

impl LastResort {
    /// Makes it.
    pub(super) const fn new() -> Self {
        Self
    }

    /// Does nothing.
    #[expect(clippy::unused_self, reason = "as where there is one")]
    pub(super) fn set(&mut self, _: u64) {}
}
