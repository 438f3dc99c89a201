use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use tokio::time::{Instant, Sleep, sleep_until};

/// The one timer of a task whose next deadline mostly moves later.
///
/// It is set again only if it was reached or would come too late, so that a task that is woken by its work leaves the
/// runtime's timers alone.
pub(super) struct Alarm(Pin<Box<Sleep>>);

impl Alarm {
    /// Returns an alarm that is due `wait` from now.
    pub(super) fn new(wait: Duration) -> Self {
        Self(Box::pin(sleep_until(Instant::now() + wait)))
    }

    /// Sets the alarm to `wait` from now, unless it is due earlier; the task that it wakes checks what is due.
    pub(super) fn set(&mut self, wait: Duration) {
        let due = Instant::now() + wait;
        let sleep = &mut self.0;
        if sleep.is_elapsed() || due < sleep.deadline() {
            sleep.as_mut().reset(due);
        }
    }

    /// Becomes ready when the alarm is due.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.0.as_mut().poll(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::poll;
    use std::{future::poll_fn, pin::pin};

    const SECOND: Duration = Duration::from_secs(1);

    impl Alarm {
        async fn at_most(&mut self, wait: Duration) {
            self.set(wait);
            poll_fn(|cx| self.poll(cx)).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_deadline_that_moves_later_is_told_early_once_and_then_in_time() {
        let start = Instant::now();
        let mut alarm = Alarm::new(2 * SECOND);
        assert!(poll!(pin!(alarm.at_most(5 * SECOND))).is_pending());
        alarm.at_most(5 * SECOND).await;
        assert_eq!(start.elapsed(), 2 * SECOND);
        alarm.at_most(3 * SECOND).await;
        assert_eq!(start.elapsed(), 5 * SECOND);
    }

    #[tokio::test(start_paused = true)]
    async fn a_deadline_that_moves_earlier_is_told_in_time() {
        let start = Instant::now();
        let mut alarm = Alarm::new(9 * SECOND);
        alarm.at_most(SECOND).await;
        assert_eq!(start.elapsed(), SECOND);
    }
}
