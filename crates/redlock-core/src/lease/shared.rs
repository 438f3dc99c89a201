//! The part that a lease's engine, guard and views share: up to when it is valid, and how it ended.

use std::{
    fmt,
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use redlock_proto::Instant;
use tokio::sync::Notify;

use super::{Mode, Subject};
use crate::{
    FencingToken, LossReason,
    clock::Clock,
    meter::{LockMeter, Stopwatch},
};

/// Something that the holder of a lease has for as long as the lease is held: its turn in the local queue.
pub(crate) trait Kept: fmt::Debug + Send + Sync {
    /// Releases it at the end of the lease, unless the holder has taken it already; dropping the result wakes the next
    /// tasks.
    fn let_go(&self) -> Option<Telling>;
}

/// Wakes other tasks on drop. Hold no lock then: wakers are application code.
pub(crate) type Telling = Box<dyn Send>;

/// What the engine, the guard and the views of a lease share.
#[derive(Debug)]
pub(crate) struct LeaseShared {
    pub(super) client: u64,
    pub(super) subject: Subject,
    pub(super) token: FencingToken,
    clock: Clock,
    validity: Mutex<Validity>,
    /// Why it was lost, if it was, perhaps after its holder had released it: for all holders that it has had one after
    /// the other.
    fate: Arc<OnceLock<LossReason>>,
    began: Stopwatch,
    /// Whether readers may share it; this never becomes false again.
    is_shared: AtomicBool,
    /// Notified when the lease is over for another reason than the clock.
    pub(super) over: Notify,
}

#[derive(Debug)]
struct Validity {
    deadline: Instant,
    /// When it ends however often it is extended, if it does.
    ends: Option<Instant>,
    over: Option<LossReason>,
    /// Whether it was counted that it is over.
    is_counted: bool,
    /// What the holder must not keep beyond a loss, even if it is never polled.
    kept: Option<Arc<dyn Kept>>,
}

impl LeaseShared {
    pub(crate) fn new(
        client: u64,
        subject: Subject,
        clock: Clock,
        deadline: Instant,
        ends: Option<Instant>,
        token: FencingToken,
    ) -> Self {
        let validity = Mutex::new(Validity {
            deadline,
            ends,
            over: None,
            is_counted: false,
            kept: None,
        });
        subject.meter.is_held();
        Self {
            began: Stopwatch::start(),
            is_shared: AtomicBool::new(subject.mode == Mode::Shared),
            client,
            subject,
            token,
            clock,
            validity,
            fate: Arc::default(),
            over: Notify::new(),
        }
    }

    /// Returns the lease of the next holder, which is lost for whatever reason this one is.
    pub(crate) fn handed_over(
        &self,
        subject: Subject,
        deadline: Instant,
        token: FencingToken,
    ) -> Self {
        let next = Self::new(self.client, subject, self.clock, deadline, None, token);
        Self {
            fate: Arc::clone(&self.fate),
            ..next
        }
    }

    /// Returns the subject of the lease.
    pub(crate) const fn subject(&self) -> &Subject {
        &self.subject
    }

    /// Returns the class of the lease, for the log.
    pub(crate) fn class(&self) -> Option<&str> {
        self.subject.class()
    }

    /// Returns whether the lease is exclusive or shared.
    pub(crate) fn mode(&self) -> Mode {
        if self.is_shared.load(Ordering::Acquire) {
            Mode::Shared
        } else {
            Mode::Exclusive
        }
    }

    /// Returns whether its acquire asked for a shared lease.
    pub(crate) fn was_shared_from_the_start(&self) -> bool {
        self.subject.mode == Mode::Shared
    }

    /// Makes it a shared lease.
    pub(crate) fn share(&self) {
        self.is_shared.store(true, Ordering::Release);
    }

    pub(crate) fn token(&self) -> FencingToken {
        self.token
    }

    pub(crate) fn meter(&self) -> &LockMeter {
        &self.subject.meter
    }

    /// Moves the deadline, later only, unless a view has seen the lease end; then `false`.
    ///
    /// A holder acts on a loss that a view has shown, so a lost lease never comes back.
    /// A release is no such end: the lease may have been handed over.
    pub(crate) fn extend(&self, deadline: Instant) -> bool {
        let mut validity = self.look();
        validity.deadline = validity.deadline.max(deadline);
        matches!(validity.over, None | Some(LossReason::Released))
    }

    /// Returns up to when the lease is valid, or was.
    pub(crate) fn deadline(&self) -> Instant {
        self.look().deadline
    }

    /// Ends the lease; the first reason stays.
    pub(crate) fn end(self: &Arc<Self>, reason: LossReason) {
        drop(self.is_over(reason));
    }

    /// Ends the lease, as [`end`](Self::end) does, but notifies no task before the result is dropped.
    pub(crate) fn is_over(self: &Arc<Self>, reason: LossReason) -> Over {
        if reason != LossReason::Released {
            // The first reason stays.
            let _ = self.fate.set(reason);
        }
        let mut validity = self.look();
        let reason = *validity.over.get_or_insert(reason);
        let was_counted = std::mem::replace(&mut validity.is_counted, true);
        // Under the lock, so that a caller that sees the end finds the turn passed on. A guard that passes a lease on
        // takes the queue's lock first and then this one, but has taken its own turn before that.
        let kept = validity.kept.take();
        let next = kept.and_then(|kept| kept.let_go());
        drop(validity);
        Over {
            next,
            shared: Arc::clone(self),
            counted: (!was_counted).then_some(reason),
        }
    }

    /// Releases `kept` when the lease ends, or now if it has ended.
    pub(crate) fn keep(&self, kept: Arc<dyn Kept>) {
        let mut validity = self.look();
        // invariant: something is kept only while the driver may still report a loss
        if validity.over.is_none() {
            validity.kept = Some(kept);
        } else {
            drop(validity);
            drop(kept.let_go());
        }
    }

    pub(crate) fn loss(&self) -> Option<LossReason> {
        self.look().over
    }

    /// Returns whether the lease was lost, also if it was lost after its release or under an earlier holder.
    ///
    /// No caller may take over a lost lease.
    pub(crate) fn was_lost(&self) -> bool {
        self.fate.get().is_some() || !matches!(self.loss(), None | Some(LossReason::Released))
    }

    /// Returns why the lease was lost, if a view has seen that its time was over before the driver did.
    pub(crate) fn loss_that_a_view_has_seen(&self) -> Option<LossReason> {
        let is_its_own = |reason: &LossReason| {
            matches!(reason, LossReason::Expired | LossReason::MaxHold) && self.fate.get().is_none()
        };
        self.look().over.filter(is_its_own)
    }

    /// Returns how much longer the lease is not in danger.
    pub(super) fn safe_for(&self) -> Duration {
        self.remaining()
            .saturating_sub(self.subject.timing.warning())
    }

    pub(crate) fn remaining(&self) -> Duration {
        let validity = self.look();
        match validity.over {
            Some(_) => Duration::ZERO,
            None => validity.deadline.saturating_since(self.clock.now()),
        }
    }

    /// Returns the state as of now; ends the lease if another holder has seen a loss, or if the deadline has passed.
    fn look(&self) -> std::sync::MutexGuard<'_, Validity> {
        // Nothing panics while the lock is held, and a state is whole at every moment.
        let mut validity = self.validity.lock().unwrap_or_else(PoisonError::into_inner);
        if validity.over.is_none() {
            validity.over = self.fate.get().copied();
        }
        if validity.over.is_none() && self.clock.now() >= validity.deadline {
            validity.over = Some(match validity.ends {
                Some(ends) if validity.deadline >= ends => LossReason::MaxHold,
                _ => LossReason::Expired,
            });
        }
        validity
    }
}

/// The end of a lease; dropping it notifies the tasks that wait for the end or for the turn.
#[must_use = "dropping it tells those who wait"]
pub(crate) struct Over {
    next: Option<Telling>,
    shared: Arc<LeaseShared>,
    /// The reason that is counted, unless an end was counted before.
    counted: Option<LossReason>,
}

impl Drop for Over {
    fn drop(&mut self) {
        drop(self.next.take());
        self.shared.over.notify_waiters();
        // A recorder is application code, and must not keep a lease from ending.
        if let Some(reason) = self.counted {
            self.shared.subject.meter.ended(reason, &self.shared.began);
        }
    }
}
