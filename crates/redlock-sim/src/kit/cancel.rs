use std::{
    future::poll_fn,
    pin::pin,
    task::{Poll, ready},
};

/// Polls `future` up to `polls` times and then drops it, as a cancelled caller does; returns its output if it was ready
/// by then.
///
/// It polls the future once in each turn of the runtime, whether or not the future was woken, so no time passes
/// meanwhile.
///
/// ```
/// # use redlock_sim::kit::after_polls;
/// # futures_executor(async {
/// assert_eq!(after_polls(1, async { 7 }).await, Some(7));
/// assert_eq!(after_polls(3, std::future::pending::<()>()).await, None);
/// # });
/// # fn futures_executor(future: impl Future) {
/// #     tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future);
/// # }
/// ```
pub async fn after_polls<F: Future>(polls: usize, future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    let mut left = polls;
    poll_fn(|cx| {
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        // The runtime polls this again after its other tasks.
        cx.waker().wake_by_ref();
        Poll::Ready(Some(ready!(future.as_mut().poll(cx))))
    })
    .await
}
