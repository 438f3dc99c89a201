//! The one place where tasks are started.

use tokio::task::AbortHandle;

/// A task, which ends when this is dropped.
pub(crate) struct Task(AbortHandle);

impl Task {
    /// Starts a task on the runtime of the caller.
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the module that starts tasks"
    )]
    pub(crate) fn start(task: impl Future<Output = ()> + Send + 'static) -> Self {
        Self(tokio::spawn(task).abort_handle())
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}
