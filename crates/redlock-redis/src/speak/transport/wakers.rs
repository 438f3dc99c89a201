//! The tasks that wait for answers, woken together: any of them can read for all.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Wake, Waker},
};

/// The waker of the stream: it wakes all tasks that wait.
#[derive(Default)]
pub(super) struct StreamWakers(Mutex<WakersState>);

#[derive(Default)]
struct WakersState {
    wakers: ToWake,
    /// Whether the stream has something to read, or room again, since it was last tried.
    is_due: bool,
    /// Set while a task, which has locked the pipe, tries the stream.
    is_tried: bool,
}

/// The tasks to wake; mostly one, because a client waits for all of its calls in one task.
#[derive(Default)]
#[must_use = "a task that is not woken hangs"]
pub(super) struct ToWake {
    first: Option<Waker>,
    others: Vec<Waker>,
}

impl StreamWakers {
    pub(super) fn add(&self, waker: &Waker) {
        let wakers = &mut self.state().wakers;
        let mut known = wakers.first.iter().chain(&wakers.others);
        if known.any(|known| known.will_wake(waker)) {
            return;
        }
        if wakers.first.is_none() {
            wakers.first = Some(waker.clone());
        } else {
            wakers.others.push(waker.clone());
        }
    }

    /// Has the stream tried when a task looks at it next.
    pub(super) fn set_due(&self) {
        self.state().is_due = true;
    }

    /// Begins to try the stream; returns whether it has become ready since it was last tried.
    ///
    /// Until [`end`](Self::end) no task is woken: a waker may drop a waiting call, which needs the lock that is held.
    pub(super) fn begin(&self) -> bool {
        let mut state = self.state();
        state.is_tried = true;
        std::mem::take(&mut state.is_due)
    }

    /// Ends the try; returns the tasks to wake if the stream has become ready meanwhile.
    pub(super) fn end(&self) -> ToWake {
        let mut state = self.state();
        state.is_tried = false;
        if state.is_due {
            std::mem::take(&mut state.wakers)
        } else {
            ToWake::default()
        }
    }

    fn state(&self) -> MutexGuard<'_, WakersState> {
        // Nothing panics while the lock is held.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wake for StreamWakers {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let mut state = self.state();
        state.is_due = true;
        if state.is_tried {
            return;
        }
        let woken = std::mem::take(&mut state.wakers);
        drop(state);
        woken.wake();
    }
}

impl ToWake {
    /// Wakes the tasks; no lock may be held.
    pub(super) fn wake(self) {
        self.first
            .into_iter()
            .chain(self.others)
            .for_each(Waker::wake);
    }
}
