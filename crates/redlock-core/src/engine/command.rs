use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use redlock_proto::{
    Acquire, JobState, LeaseTerms, NodeAnswer, NodeKey, NodeTime, NotClaimed, TickClaim, Word,
};
use tokio::sync::{mpsc, oneshot};

use super::{common::Common, hand_overs::HandOvers, look::IsUndisputed, patience};
use crate::{AcquireError, ExtendError, NodeReport, ReleaseError, lease::Subject};

/// What callers ask of the driver; an acquisition that wins is answered with a `W`.
#[derive(Debug)]
pub(super) enum Command<W> {
    Acquire {
        id: u64,
        request: AcquireRequest,
        answer: oneshot::Sender<AcquireAnswer<W>>,
    },
    /// An exclusive lease beside a shared one of the same holder.
    Upgrade {
        id: u64,
        lease: u64,
        subject: Box<Subject>,
        terms: LeaseTerms,
        answer: oneshot::Sender<AcquireAnswer<W>>,
    },
    Abandon {
        id: u64,
    },
    /// What came of the run under a lease.
    Finish {
        lease: u64,
        outcome: Word,
        took: Duration,
    },
    ReadJob {
        job: NodeKey,
        lock: NodeKey,
        answer: oneshot::Sender<JobAnswer>,
    },
    Extend {
        lease: u64,
        answer: oneshot::Sender<Result<(), ExtendError>>,
    },
    /// Extends a lease to learn whether nodes have refused its key to another caller meanwhile.
    Look {
        lease: u64,
        answer: oneshot::Sender<IsUndisputed>,
    },
    /// Readers may share it from now on.
    Downgrade {
        lease: u64,
        answer: oneshot::Sender<Result<(), ExtendError>>,
    },
    Release {
        lease: u64,
        answer: Option<oneshot::Sender<Result<(), ReleaseError>>>,
    },
    Leave {
        lease: u64,
    },
    /// Leases have changed hands, and the driver must learn of it now.
    SeeHandOvers,
    Bless {
        answer: oneshot::Sender<Vec<NodeAnswer>>,
    },
    Standing {
        answer: oneshot::Sender<Vec<NodeAnswer>>,
    },
    NodeTime {
        answer: oneshot::Sender<Option<NodeTime>>,
    },
    Close {
        answer: oneshot::Sender<()>,
    },
}

/// An acquisition: the attempts that one caller makes until it wins, or its wait ends.
#[derive(Debug)]
pub(crate) struct AcquireRequest {
    pub(crate) subject: Subject,
    pub(crate) acquire: Box<Acquire>,
    /// Whether it is made in a scope, whose end takes its leases away: others must not join them.
    pub(crate) is_scoped: bool,
    /// Whether it is one of several by which one caller looks for a slot: none of them is counted by itself.
    pub(crate) is_part: bool,
    /// The tick that is to be claimed together with the lease.
    pub(crate) claim: Option<Box<TickClaim>>,
}

/// An acquisition that has not won.
#[derive(Debug)]
pub(crate) enum NotWon {
    Failed(AcquireError),
    /// The tick was not won, and there is no use in another attempt.
    Refused(NotClaimed, Vec<NodeReport>),
}

impl NotWon {
    /// Says how many callers of this process would be ahead of another attempt.
    pub(crate) fn ahead(self, callers: usize) -> Self {
        match self {
            Self::Failed(error) => Self::Failed(error.with_ahead(callers)),
            refused @ Self::Refused(..) => refused,
        }
    }

    /// Returns the error of an acquisition without a tick.
    pub(crate) fn into_error(self) -> AcquireError {
        match self {
            Self::Failed(error) => error,
            // invariant: nodes refuse only ticks that were claimed
            Self::Refused(..) => AcquireError::closed(),
        }
    }
}

/// After how many attempts an acquisition is over, and what came of it.
pub(super) type AcquireAnswer<W> = (u32, Result<W, NotWon>);

/// What nodes remember of a job, if a majority said, and what each said.
pub(super) type JobAnswer = (Option<JobState>, Vec<NodeAnswer>);

/// The callers' end of the driver; the driver ends when the last one is gone and nothing is left to
/// clean up.
#[derive(Debug)]
pub(crate) struct EngineHandle<W> {
    client: u64,
    /// How long the driver may take to answer.
    patience: Duration,
    commands: mpsc::UnboundedSender<Command<W>>,
    common: Arc<Common>,
}

/// The driver's own handle, from which it makes one for each lease that it hands out.
#[derive(Debug)]
pub(super) struct WeakEngineHandle<W> {
    client: u64,
    patience: Duration,
    commands: mpsc::WeakUnboundedSender<Command<W>>,
    common: Arc<Common>,
}

impl<W> WeakEngineHandle<W> {
    /// `None` if no caller is left.
    pub(super) fn upgrade(&self) -> Option<EngineHandle<W>> {
        let commands = self.commands.upgrade()?;
        Some(EngineHandle {
            client: self.client,
            patience: self.patience,
            commands,
            common: Arc::clone(&self.common),
        })
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

impl<W> EngineHandle<W> {
    /// Makes the handle of a driver whose rounds have this limit.
    pub(super) fn new(node_timeout: Duration) -> (Self, mpsc::UnboundedReceiver<Command<W>>) {
        let (commands, received) = mpsc::unbounded_channel();
        (
            Self {
                client: NEXT_CLIENT.fetch_add(1, Ordering::Relaxed),
                patience: patience::of(node_timeout),
                commands,
                common: Arc::default(),
            },
            received,
        )
    }

    /// Returns how many numbers of acquisitions and leases are in use.
    #[cfg(test)]
    pub(crate) fn numbers_in_use(&self) -> usize {
        self.common.numbers().len()
    }

    /// Returns how long the driver may take to answer what needs a few rounds.
    pub(super) fn patience(&self) -> Duration {
        self.patience
    }

    /// Returns a number that no other client of this process has.
    pub(crate) fn client(&self) -> u64 {
        self.client
    }

    /// Returns the error of every acquire in a process that was forked after the driver was started.
    pub(crate) fn in_another_process(&self) -> Option<AcquireError> {
        (!self.common.has_driver()).then(AcquireError::forked)
    }

    /// Attempts to win the lease, and the tick if one is claimed, until its `wait_until`, which is in `wait`.
    ///
    /// Dropping the future at any point leaves nothing behind, but nodes may remember the tick then.
    pub(crate) async fn acquire(
        &self,
        request: AcquireRequest,
        wait: Duration,
    ) -> AcquireAnswer<W> {
        let limit = wait + request.acquire.timing.key_ttl();
        let acquire = |id, answer| Command::Acquire {
            id,
            request,
            answer,
        };
        self.win(limit, acquire).await
    }

    /// Attempts once to win an exclusive lease on `subject` beside a shared one on it, which has this number and these terms.
    ///
    /// Dropping the future at any point leaves the shared lease as it is, and nothing else behind.
    pub(super) async fn upgrade(
        &self,
        lease: u64,
        subject: Subject,
        terms: LeaseTerms,
    ) -> AcquireAnswer<W> {
        let limit = subject.timing.key_ttl();
        let upgrade = |id, answer| Command::Upgrade {
            id,
            lease,
            subject: Box::new(subject),
            terms,
            answer,
        };
        self.win(limit, upgrade).await
    }

    /// Sends a command that begins an acquisition, which the protocol ends within `limit` and a little more.
    pub(super) async fn win(
        &self,
        limit: Duration,
        command: impl FnOnce(u64, oneshot::Sender<AcquireAnswer<W>>) -> Command<W>,
    ) -> AcquireAnswer<W> {
        if let Some(error) = self.in_another_process() {
            return (0, Err(NotWon::Failed(error)));
        }
        let id = self.common.numbers().add(());
        let (answer, answered) = oneshot::channel();
        if self.commands.send(command(id, answer)).is_err() {
            // The driver is gone, and gives nothing back any more.
            self.common.numbers().remove(id);
        }
        let mut pending = Pending {
            engine: self,
            id,
            answered: false,
        };
        let error = match patience::answer_of(answered, limit + self.patience).await {
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

    /// Returns what nodes remember of a job.
    pub(crate) async fn read_job(&self, job: NodeKey, lock: NodeKey) -> JobAnswer {
        let (answer, answered) = oneshot::channel();
        self.send(Command::ReadJob { job, lock, answer });
        patience::answer(answered, self.patience)
            .await
            .unwrap_or_default()
    }

    /// Lets every node vote that is only quarantined; says where each node stands then.
    pub(crate) async fn bless(&self) -> Vec<NodeAnswer> {
        let (answer, answered) = oneshot::channel();
        self.send(Command::Bless { answer });
        patience::answer(answered, self.patience)
            .await
            .unwrap_or_default()
    }

    /// Returns where each node stands.
    pub(crate) async fn standing(&self) -> Vec<NodeAnswer> {
        let (answer, answered) = oneshot::channel();
        self.send(Command::Standing { answer });
        patience::answer(answered, self.patience)
            .await
            .unwrap_or_default()
    }

    /// Returns what the nodes' wall clocks show.
    pub(crate) async fn node_time(&self) -> Option<NodeTime> {
        let (answer, answered) = oneshot::channel();
        self.send(Command::NodeTime { answer });
        patience::answer(answered, self.patience)
            .await
            .unwrap_or_default()
    }

    /// Ends every acquisition and waits until all clean-up is done, which takes `limit` and a little more at most.
    pub(crate) async fn close(&self, limit: Duration) {
        let (answer, answered) = oneshot::channel();
        self.send(Command::Close { answer });
        // An error means that the driver is gone, and so is everything it had to do.
        let _ = patience::answer_of(answered, limit + self.patience).await;
    }

    /// Returns a handle that does not keep the driver alive.
    pub(super) fn downgrade(&self) -> WeakEngineHandle<W> {
        WeakEngineHandle {
            client: self.client,
            patience: self.patience,
            commands: self.commands.downgrade(),
            common: Arc::clone(&self.common),
        }
    }

    /// Returns the leases that have changed hands, of which the driver learns when it wakes.
    pub(super) fn hand_overs(&self) -> &HandOvers {
        &self.common.hand_overs
    }

    pub(super) fn send(&self, command: Command<W>) {
        if !self.common.has_driver() {
            // Nothing takes it, and its sender sees that it was dropped.
            return;
        }
        // The driver outlives every handle, unless its runtime was shut down under it; then the
        // command is dropped, which its sender sees as an answer that never comes.
        let _ = self.commands.send(command);
    }
}

// Not derived, because what is won need not be cloned.
impl<W> Clone for EngineHandle<W> {
    fn clone(&self) -> Self {
        Self {
            client: self.client,
            patience: self.patience,
            commands: self.commands.clone(),
            common: Arc::clone(&self.common),
        }
    }
}

/// An acquisition that has not been answered; dropping it abandons the acquisition.
///
/// If the answer is on its way at that moment it carries what was won, whose drop releases the lease.
struct Pending<'a, W> {
    engine: &'a EngineHandle<W>,
    id: u64,
    answered: bool,
}

impl<W> Drop for Pending<'_, W> {
    fn drop(&mut self) {
        if !self.answered {
            self.engine.send(Command::Abandon { id: self.id });
        }
    }
}

/// The number of the next client.
static NEXT_CLIENT: AtomicU64 = AtomicU64::new(0);

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_acquire_without_a_driver_keeps_no_number() {
        let (engine, received) = EngineHandle::<()>::new(Duration::ZERO);
        drop(received);
        let abandon = |id, _| Command::Abandon { id };
        let (_, result) = engine.win(Duration::ZERO, abandon).await;
        assert!(matches!(result, Err(NotWon::Failed(_))), "{result:?}");
        assert_eq!(engine.numbers_in_use(), 0);
    }
}
