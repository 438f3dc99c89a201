use std::panic::{AssertUnwindSafe, catch_unwind};

/// Tells the recorder something.
///
/// A recorder is an application's code, and it runs in the driver too: a mistake in it costs a figure, and no lease.
pub(super) fn tell(work: impl FnOnce()) {
    // No state of ours is behind a handle, so none can be left half-done.
    let _: Result<(), _> = catch_unwind(AssertUnwindSafe(work));
}
