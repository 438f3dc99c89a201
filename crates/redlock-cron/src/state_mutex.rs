use std::sync::{Mutex, MutexGuard, PoisonError};

/// The mutex of a state that is whole at every moment: nothing panics while it is held.
#[derive(Debug, Default)]
pub(crate) struct StateMutex<T>(Mutex<T>);

impl<T> StateMutex<T> {
    pub(crate) const fn new(state: T) -> Self {
        Self(Mutex::new(state))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
