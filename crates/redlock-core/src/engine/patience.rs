//! The callers' own limit of the time that they wait for the driver, which ends their waits if its thread hangs.

use std::time::Duration;

use tokio::{
    runtime::Handle,
    sync::oneshot::{Receiver, error::RecvError},
    time::timeout,
};

/// Awaits the driver's answer for up to `limit`; `None` if there is none, because the driver hangs or is gone.
pub(super) async fn answer<T>(answered: Receiver<T>, limit: Duration) -> Option<T> {
    answer_of(answered, limit).await?.ok()
}

/// Awaits the driver's answer for up to `limit`; `None` if the driver hangs.
///
/// # Errors
///
/// The driver is gone.
pub(super) async fn answer_of<T>(
    answered: Receiver<T>,
    limit: Duration,
) -> Option<Result<T, RecvError>> {
    if Handle::try_current().is_err() {
        // The timer is the runtime's.
        return Some(answered.await);
    }
    timeout(limit, answered).await.ok()
}

/// Returns how long a driver whose rounds have this limit may take to answer what needs a few rounds.
pub(super) const fn of(node_timeout: Duration) -> Duration {
    node_timeout.saturating_mul(4).saturating_add(LEAST)
}

/// How long a driver may take that waits for no node: its thread may wait for a processor, as all others do.
const LEAST: Duration = Duration::from_secs(20);

#[cfg(test)]
mod tests {
    use super::{
        super::command::{Command, EngineHandle, NotWon},
        *,
    };

    #[tokio::test(start_paused = true)]
    async fn a_driver_that_answers_nothing_keeps_no_caller_waiting_for_ever() {
        let (engine, _commands) = EngineHandle::<()>::new(Duration::ZERO);
        let mut kept = None;
        let command = |id, answer| {
            kept = Some(answer);
            Command::Abandon { id }
        };
        let (_, result) = engine.win(Duration::from_secs(5), command).await;
        let error = result.err().map(NotWon::into_error);
        let said = error.map(|error| error.to_string()).unwrap_or_default();
        assert!(said.contains("does not answer"), "{said}");
        assert_eq!(engine.standing().await, []);
        assert_eq!(engine.node_time().await, None);
        engine.close(Duration::from_secs(5)).await;
    }
}
