use std::{fmt::Debug, future::poll_fn, pin::pin, task::Poll, time::Duration};

use crate::now;

/// Looks at something again and again until it is as wanted; returns what it was then.
///
/// # Panics
///
/// If it is not so within `limit`; the message has what it was last.
pub async fn eventually<T: Debug>(
    what: &str,
    limit: Duration,
    mut look: impl FnMut() -> T,
    wanted: impl Fn(&T) -> bool,
) -> T {
    let until = now() + limit;
    loop {
        let seen = look();
        if wanted(&seen) {
            return seen;
        }
        assert!(
            now() < until,
            "{what}: not within {limit:?}, at last {seen:?}"
        );
        tokio::time::sleep(POLL).await;
    }
}

/// Looks at something again and again for as long as `time`.
pub async fn for_as_long_as(time: Duration, look: impl Fn()) {
    let until = now() + time;
    while now() < until {
        look();
        tokio::time::sleep(POLL).await;
    }
}

/// Awaits `future`, which must not take longer than `limit`.
///
/// # Panics
///
/// If it does.
pub async fn within<F: Future>(what: &str, limit: Duration, future: F) -> F::Output {
    match tokio::time::timeout(limit, future).await {
        Ok(output) => output,
        Err(_) => panic!("{what}: not within {limit:?}"),
    }
}

/// Polls `future` this many times, whenever it wakes up, and drops it then.
///
/// `None` if it had not ended.
pub async fn polled<F: Future>(future: F, times: u64) -> Option<F::Output> {
    let mut future = pin!(future);
    let mut left = times;
    poll_fn(|cx| {
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        match future.as_mut().poll(cx) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending if left == 0 => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

const POLL: Duration = Duration::from_millis(5);
