use std::time::Duration;

use tokio::signal::{
    ctrl_c,
    unix::{SignalKind, signal},
};

use crate::BoxError;

/// Waits until the process is asked to end: by Ctrl-C or, as service managers do, by SIGTERM.
pub async fn asked_to_end() {
    // Where it cannot be listened to, the signal ends the process by itself.
    let Ok(mut term) = signal(SignalKind::terminate()) else {
        return std::future::pending().await;
    };
    tokio::select! {
        pressed = ctrl_c() => if pressed.is_err() { std::future::pending().await },
        _ = term.recv() => {}
    }
}

/// Ends the work early when it takes too long or Ctrl-C is pressed: dropped, it takes its processes along.
///
/// # Errors
///
/// The work fails, takes longer than `longest`, or is interrupted.
pub async fn limited<T>(
    longest: Duration,
    work: impl Future<Output = Result<T, BoxError>>,
) -> Result<T, BoxError> {
    tokio::select! {
        ended = tokio::time::timeout(longest, work) => {
            ended.unwrap_or_else(|_| Err(format!("not done after {longest:?}").into()))
        }
        () = asked_to_end() => Err("interrupted".into()),
    }
}
