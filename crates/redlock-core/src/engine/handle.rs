//! The callers' end of the driver.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use redlock_proto::{Acquire, NodeAnswer, NodeKey, NodeTime, Slab};
use tokio::{
    runtime::Handle,
    sync::{
        mpsc,
        oneshot::{self, Receiver, Sender, error::RecvError},
    },
    time::timeout,
};

use super::{
    AcquireAnswer, AcquireCaller, AcquireRequest, DriverCommand, JobAnswer, NotWon,
    hand_overs::HandOvers,
};
use crate::{AcquireError, clock::Clock, lease::LeaseRequest};

/// A handle to the driver; the driver ends when the last one is gone and nothing is left to clean up.
#[derive(Clone, Debug)]
pub(crate) struct EngineHandle(Arc<CallersEnd>);

/// The callers' end of the channel to the driver, which all handles share.
#[derive(Debug)]
struct CallersEnd {
    commands: mpsc::UnboundedSender<DriverCommand>,
    common: Arc<EngineCommon>,
}

/// The driver's own handle, from which it makes one for each lease that it hands out.
#[derive(Debug)]
pub(super) struct WeakEngineHandle {
    callers: Weak<CallersEnd>,
    common: Arc<EngineCommon>,
}

/// The state that all handles of a driver share.
#[derive(Debug)]
struct EngineCommon {
    client: u64,
    clock: Clock,
    /// How long the driver may take to answer.
    patience: Duration,
    /// Callers take the numbers of acquisitions, so that they can abandon one before the driver has heard of it.
    /// The driver returns a number once neither an acquisition nor a lease uses it.
    numbers: Mutex<Slab<()>>,
    hand_overs: HandOvers,
    /// The process that has the driver: one that was forked from it has none.
    process: u32,
}

impl EngineCommon {
    /// Returns whether this is the process in which the driver runs.
    fn has_driver(&self) -> bool {
        self.process == std::process::id()
    }

    fn numbers(&self) -> MutexGuard<'_, Slab<()>> {
        // Nothing panics while the lock is held.
        self.numbers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WeakEngineHandle {
    /// `None` if no caller is left.
    pub(super) fn upgrade(&self) -> Option<EngineHandle> {
        self.callers.upgrade().map(EngineHandle)
    }

    /// Returns the leases that have changed hands.
    pub(super) fn hand_overs(&self) -> &HandOvers {
        &self.common.hand_overs
    }

    /// Gives back the numbers of acquisitions and leases that are over.
    pub(super) fn give_back(&self, over: &mut Vec<u64>) {
        if over.is_empty() {
            return;
        }
        let mut numbers = self.common.numbers();
        for number in over.drain(..) {
            numbers.remove(number);
        }
    }
}

impl EngineHandle {
    /// Makes the handle of a driver whose rounds have this limit, and which keeps time by `clock`.
    pub(super) fn new(
        node_timeout: Duration,
        clock: Clock,
    ) -> (Self, mpsc::UnboundedReceiver<DriverCommand>) {
        let (commands, received) = mpsc::unbounded_channel();
        let common = EngineCommon {
            client: NEXT_CLIENT.fetch_add(1, Ordering::Relaxed),
            clock,
            patience: node_timeout.saturating_mul(4).saturating_add(LEAST),
            numbers: Mutex::default(),
            hand_overs: HandOvers::default(),
            process: std::process::id(),
        };
        let common = Arc::new(common);
        (Self(Arc::new(CallersEnd { commands, common })), received)
    }

    /// Returns how many numbers of acquisitions and leases are in use.
    #[cfg(test)]
    pub(crate) fn numbers_in_use(&self) -> usize {
        self.0.common.numbers().len()
    }

    /// Returns a number that no other client of this process has.
    pub(crate) fn client(&self) -> u64 {
        self.0.common.client
    }

    /// Returns the error of every acquire in a process that was forked after the driver was started.
    pub(crate) fn in_another_process(&self) -> Option<AcquireError> {
        (!self.0.common.has_driver()).then(AcquireError::forked)
    }

    /// Attempts to win the lease, and the tick if one is claimed, until its `wait_until`, which is in `wait`.
    ///
    /// Dropping the future at any point leaves nothing behind, but nodes may remember the tick then.
    pub(crate) async fn acquire(
        &self,
        acquire: Box<Acquire>,
        request: AcquireRequest,
        wait: Duration,
    ) -> AcquireAnswer {
        let AcquireRequest {
            subject,
            is_part,
            before,
            claim,
            ..
        } = request;
        let limit = wait + acquire.timing.key_ttl();
        let command = |id, caller| DriverCommand::Acquire {
            id,
            acquire,
            claim,
            caller,
        };
        let then = || drop(before);
        self.win(limit, subject, is_part, command, then).await
    }

    /// Attempts once to win an exclusive lease on `subject` beside a shared one on it, which has this number.
    ///
    /// Dropping the future at any point leaves the shared lease as it is, and nothing else behind.
    pub(super) async fn upgrade(&self, lease: u64, subject: LeaseRequest) -> AcquireAnswer {
        let limit = subject.site.terms.timing.key_ttl();
        let command = |id, caller| DriverCommand::Upgrade { id, lease, caller };
        self.win(limit, subject, false, command, || ()).await
    }

    /// Sends a command that begins an acquisition, which the protocol ends within `limit` and a little more.
    ///
    /// The driver learns of what `then` does after that.
    async fn win(
        &self,
        limit: Duration,
        subject: LeaseRequest,
        is_part: bool,
        command: impl FnOnce(u64, AcquireCaller) -> DriverCommand,
        then: impl FnOnce(),
    ) -> AcquireAnswer {
        let (answer, answered) = oneshot::channel();
        let caller = AcquireCaller {
            subject,
            attempts: 1,
            is_part,
            answer,
        };
        if let Some(error) = self.in_another_process() {
            return (0, Err(NotWon::Failed(error)));
        }
        let id = self.0.common.numbers().add(());
        if self.0.commands.send(command(id, caller)).is_err() {
            // The driver is gone, and gives nothing back any more.
            self.0.common.numbers().remove(id);
        }
        then();
        let mut pending = PendingAcquire {
            engine: self,
            id,
            answered: false,
        };
        let error = match self.answer_within(answered, limit).await {
            Some(Ok(answer)) => {
                pending.answered = true;
                return answer;
            }
            Some(Err(_)) => {
                pending.answered = true;
                AcquireError::closed()
            }
            None => AcquireError::unanswered(),
        };
        (0, Err(NotWon::Failed(error)))
    }

    /// Returns what all nodes remember of a job, or one of them.
    pub(crate) async fn read_job(
        &self,
        job: &NodeKey,
        lock: &NodeKey,
        at: Option<usize>,
    ) -> JobAnswer {
        let (job, lock) = (job.clone(), lock.clone());
        let read = self.ask(|answer| DriverCommand::ReadJob {
            job,
            lock,
            at,
            answer,
        });
        read.await.unwrap_or_default()
    }

    /// Lets every node vote that is only quarantined; says where each node stands then.
    pub(crate) async fn bless(&self) -> Vec<NodeAnswer> {
        let blessed = self.ask(|answer| DriverCommand::Bless { answer });
        blessed.await.unwrap_or_default()
    }

    /// Returns where each node stands.
    pub(crate) async fn standing(&self) -> Vec<NodeAnswer> {
        let standing = self.ask(|answer| DriverCommand::Standing { answer });
        standing.await.unwrap_or_default()
    }

    /// Returns what the nodes' wall clocks show.
    pub(crate) async fn node_time(&self) -> Option<NodeTime> {
        let time = self.ask(|answer| DriverCommand::NodeTime { answer });
        time.await.flatten()
    }

    /// Ends every acquisition and waits until all clean-up is done, which takes `limit` and a little more at most.
    pub(crate) async fn close(&self, limit: Duration) {
        let (answer, answered) = oneshot::channel();
        self.send(DriverCommand::Close { answer });
        // An error means that the driver is gone, and so is everything it had to do.
        let _ = self.answer_within(answered, limit).await;
    }

    /// Sends a command now; the future awaits its answer, and is `None` if the driver hangs or is gone.
    pub(super) fn ask<T>(
        &self,
        command: impl FnOnce(Sender<T>) -> DriverCommand,
    ) -> impl Future<Output = Option<T>> {
        let (answer, answered) = oneshot::channel();
        self.send(command(answer));
        let answer = self.answer_within(answered, Duration::ZERO);
        async move { answer.await?.ok() }
    }

    /// Returns a handle that does not keep the driver alive.
    pub(super) fn downgrade(&self) -> WeakEngineHandle {
        WeakEngineHandle {
            callers: Arc::downgrade(&self.0),
            common: Arc::clone(&self.0.common),
        }
    }

    /// Returns the leases that have changed hands, of which the driver learns when it wakes.
    pub(super) fn hand_overs(&self) -> &HandOvers {
        &self.0.common.hand_overs
    }

    pub(super) fn send(&self, command: DriverCommand) {
        if !self.0.common.has_driver() {
            // Nothing takes it, and its sender sees that it was dropped.
            return;
        }
        // The driver outlives every handle, unless its runtime was shut down under it; then the
        // command is dropped, which its sender sees as an answer that never comes.
        let _ = self.0.commands.send(command);
    }

    /// Awaits the driver's answer for `limit` and the time that a few rounds take; `None` if the driver hangs.
    ///
    /// # Errors
    ///
    /// The driver is gone.
    fn answer_within<T>(
        &self,
        mut answered: Receiver<T>,
        limit: Duration,
    ) -> impl Future<Output = Option<Result<T, RecvError>>> + use<T> {
        let (clock, limit) = (self.0.common.clock, limit + self.0.common.patience);
        async move {
            if Handle::try_current().is_err() {
                // The timer is the runtime's.
                return Some(answered.await);
            }
            let until = clock.now() + limit;
            loop {
                match timeout(limit, &mut answered).await {
                    Ok(answer) => return Some(answer),
                    Err(_) if clock.now() >= until => return None,
                    // A test has paused tokio's clock since, which jumps ahead of the driver's.
                    Err(_) => {}
                }
            }
        }
    }
}

/// An acquisition that has not been answered; dropping it abandons the acquisition.
///
/// If the answer is on its way at that moment it carries what was won, whose drop releases the lease.
struct PendingAcquire<'a> {
    engine: &'a EngineHandle,
    id: u64,
    answered: bool,
}

impl Drop for PendingAcquire<'_> {
    fn drop(&mut self) {
        if !self.answered {
            self.engine.send(DriverCommand::Abandon { id: self.id });
        }
    }
}

/// The number of the next client.
static NEXT_CLIENT: AtomicU64 = AtomicU64::new(0);

/// How long a driver may take that waits for no node: its thread may wait for a processor, as all others do.
const LEAST: Duration = Duration::from_secs(20);

#[cfg(test)]
mod tests {
    use super::{super::HeldLease, *};

    fn clock() -> Clock {
        let (.., clock) = HeldLease::for_tests();
        clock
    }

    /// Asks for an upgrade of a lease without a driver.
    async fn upgrade(engine: &EngineHandle) -> String {
        let (held, ..) = HeldLease::for_tests();
        let subject = held.lease().subject().clone();
        let (_, result) = engine.upgrade(7, subject).await;
        let error = result.map(drop).map_err(NotWon::into_error);
        error.unwrap_err().to_string()
    }

    #[tokio::test(start_paused = true)]
    async fn an_acquire_without_a_driver_keeps_no_number() {
        let (engine, received) = EngineHandle::new(Duration::ZERO, clock());
        drop(received);
        upgrade(&engine).await;
        assert_eq!(engine.numbers_in_use(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_driver_that_answers_nothing_keeps_no_caller_waiting_for_ever() {
        let (engine, _commands) = EngineHandle::new(Duration::ZERO, clock());
        let text = upgrade(&engine).await;
        assert!(text.contains("does not answer"), "{text}");
        assert_eq!(engine.standing().await, []);
        assert_eq!(engine.node_time().await, None);
        engine.close(Duration::from_secs(5)).await;
    }
}
