//! The state of a lease: what it is on, up to when it is valid, and how it ended.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak},
    time::Duration,
};

use redlock_proto::{Instant, Ticket};
use tokio::sync::Notify;

use super::{
    Lease,
    request::{LeaseRequest, Mode},
};
use crate::{
    FencingToken, LossReason,
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

/// What all views of a lease share.
#[derive(Debug)]
pub(super) struct LeaseShared {
    pub(super) subject: LeaseRequest,
    pub(super) token: FencingToken,
    validity: Mutex<Validity>,
    /// Why it was lost, if it was, perhaps after its holder had released it: for all holders that it has had one after
    /// the other. It is made when there are two of them, or a loss.
    fate: OnceLock<Arc<OnceLock<LossReason>>>,
    began: Stopwatch,
    /// Notified when the lease is over for another reason than the clock.
    pub(super) over: Notify,
}

impl LeaseShared {
    pub(super) fn now(&self) -> Instant {
        self.subject.site.clock.now()
    }

    fn fate(&self) -> &Arc<OnceLock<LossReason>> {
        self.fate.get_or_init(Arc::default)
    }

    /// Returns why it was lost, if it was, whichever of its holders was told of that.
    fn loss(&self) -> Option<LossReason> {
        self.fate.get()?.get().copied()
    }
}

#[derive(Debug)]
pub(super) struct Validity {
    pub(super) deadline: Instant,
    /// When it ends however often it is extended, if it does.
    ends: Option<Instant>,
    pub(super) over: Option<LossReason>,
    /// Whether it was counted that it is over.
    is_counted: bool,
    /// Whether readers may share it; this never becomes false again.
    pub(super) is_shared: bool,
    /// What the holder must not keep beyond a loss, even if it is never polled.
    kept: Option<Weak<dyn Kept>>,
}

impl Lease {
    /// Makes the view of a lease that was won.
    pub(crate) fn new(
        subject: LeaseRequest,
        deadline: Instant,
        ends: Option<Instant>,
        token: FencingToken,
    ) -> Self {
        Self::with_fate(subject, deadline, ends, token, OnceLock::new())
    }

    fn with_fate(
        subject: LeaseRequest,
        deadline: Instant,
        ends: Option<Instant>,
        token: FencingToken,
        fate: OnceLock<Arc<OnceLock<LossReason>>>,
    ) -> Self {
        let validity = Mutex::new(Validity {
            deadline,
            ends,
            over: None,
            is_counted: false,
            is_shared: subject.mode == Mode::Shared,
            kept: None,
        });
        subject.site.meter.lease_began();
        let shared = LeaseShared {
            began: Stopwatch::start(),
            subject,
            token,
            validity,
            fate,
            over: Notify::new(),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// Returns the lease of the next holder, which is lost for whatever reason this one is.
    pub(crate) fn handed_over(
        &self,
        subject: LeaseRequest,
        deadline: Instant,
        token: FencingToken,
    ) -> Self {
        let fate = Arc::clone(self.shared.fate());
        Self::with_fate(subject, deadline, None, token, OnceLock::from(fate))
    }

    /// Returns the subject of the lease.
    pub(crate) fn subject(&self) -> &LeaseRequest {
        &self.shared.subject
    }

    /// Returns whether its acquire asked for a shared lease.
    pub(crate) fn was_shared_from_the_start(&self) -> bool {
        self.shared.subject.mode == Mode::Shared
    }

    /// Makes it a shared lease.
    pub(crate) fn share(&self) {
        self.state().is_shared = true;
    }

    /// Returns the client that it is of.
    pub(crate) fn client(&self) -> u64 {
        self.shared.subject.site.client
    }

    /// Returns the place of its holder in the client's local queue.
    pub(crate) fn place(&self) -> Option<Ticket> {
        self.shared.subject.place
    }

    pub(crate) fn meter(&self) -> &LockMeter {
        &self.shared.subject.site.meter
    }

    /// Moves the deadline, later only, unless a view has seen the lease end; then `false`.
    ///
    /// A holder acts on a loss that a view has shown, so a lost lease never comes back.
    /// A release is no such end: the lease may have been handed over.
    pub(crate) fn extend_to(&self, deadline: Instant) -> bool {
        let mut validity = self.look();
        validity.deadline = validity.deadline.max(deadline);
        matches!(validity.over, None | Some(LossReason::Released))
    }

    /// Returns up to when the lease is valid, on the client's clock; `None` if it is over at `now`.
    pub(crate) fn held_until(&self, now: Instant) -> Option<Instant> {
        let validity = self.look_at(|| now);
        validity.over.is_none().then_some(validity.deadline)
    }

    /// Returns up to when the lease is valid, or was, on the client's clock.
    pub(crate) fn valid_until(&self) -> Instant {
        self.look().deadline
    }

    /// Ends the lease; the first reason stays.
    pub(crate) fn end(&self, reason: LossReason) {
        drop(self.take_end(reason));
    }

    /// Ends the lease, as [`end`](Self::end) does, but notifies no task before the result is dropped.
    pub(crate) fn take_end(&self, reason: LossReason) -> LeaseEnd {
        self.take_end_at(reason, None)
    }

    /// Does the same, at `now` if the clock was just read.
    pub(crate) fn take_end_at(&self, reason: LossReason, now: Option<Instant>) -> LeaseEnd {
        if reason != LossReason::Released {
            // The first reason stays.
            let _ = self.shared.fate().set(reason);
        }
        let mut validity = self.look_at(|| now.unwrap_or_else(|| self.shared.now()));
        let before = validity.over;
        let reason = *validity.over.get_or_insert(reason);
        let was_counted = std::mem::replace(&mut validity.is_counted, true);
        // Under the lock, so that a caller that sees the end finds the turn passed on. A guard that passes a lease on
        // takes the queue's lock first and then this one, but has taken its own turn before that.
        let kept = validity.kept.take().and_then(|kept| kept.upgrade());
        let next = kept.as_ref().and_then(|kept| kept.let_go());
        // Before `kept`: with it, a guard may go that looks at the lease, and a span, which is application code.
        drop(validity);
        LeaseEnd {
            before,
            next,
            lease: self.clone(),
            counted: (!was_counted).then_some(reason),
        }
    }

    /// Releases `kept` when the lease ends, or now if it has ended.
    pub(crate) fn keep(&self, kept: Weak<dyn Kept>) {
        let mut validity = self.state();
        // invariant: something is kept only while the driver may still report a loss
        if validity.over.is_none() {
            validity.kept = Some(kept);
        } else {
            drop(validity);
            drop(kept.upgrade().and_then(|kept| kept.let_go()));
        }
    }

    /// Returns why it cannot be relied on any more; `None` as long as it can.
    pub(crate) fn loss(&self) -> Option<LossReason> {
        self.look().over
    }

    /// Returns whether the lease was lost, also if it was lost after its release or under an earlier holder.
    ///
    /// No caller may take over a lost lease.
    pub(crate) fn was_lost(&self) -> bool {
        self.shared.loss().is_some() || !matches!(self.loss(), None | Some(LossReason::Released))
    }

    /// Returns why the lease was lost, if a view has seen that its time was over before the driver did.
    pub(crate) fn loss_that_a_view_has_seen(&self) -> Option<LossReason> {
        let is_its_own = |reason: &LossReason| {
            matches!(reason, LossReason::Expired | LossReason::MaxHold)
                && self.shared.loss().is_none()
        };
        self.look().over.filter(is_its_own)
    }

    /// Returns how much longer the lease is not in danger.
    pub(super) fn safe_for(&self) -> Duration {
        self.remaining()
            .saturating_sub(self.shared.subject.site.terms.timing.warning())
    }

    /// Returns the state as of now; ends the lease if another holder has seen a loss, or if the deadline has passed.
    pub(super) fn look(&self) -> MutexGuard<'_, Validity> {
        self.look_at(|| self.shared.now())
    }

    fn look_at(&self, now: impl FnOnce() -> Instant) -> MutexGuard<'_, Validity> {
        let mut validity = self.state();
        if validity.over.is_none() && now() >= validity.deadline {
            validity.over = Some(match validity.ends {
                Some(ends) if validity.deadline >= ends => LossReason::MaxHold,
                _ => LossReason::Expired,
            });
        }
        validity
    }

    /// Returns the state, whatever the clock shows; ends the lease if another holder has seen a loss.
    pub(super) fn state(&self) -> MutexGuard<'_, Validity> {
        // Nothing panics while the lock is held, and a state is whole at every moment.
        let validity = self.shared.validity.lock();
        let mut validity = validity.unwrap_or_else(PoisonError::into_inner);
        if validity.over.is_none() {
            validity.over = self.shared.loss();
        }
        validity
    }
}

/// The end of a lease; dropping it notifies the tasks that wait for the end or for the turn.
#[must_use = "dropping it notifies the tasks that wait"]
pub(crate) struct LeaseEnd {
    /// The reason for which it was over before.
    pub(crate) before: Option<LossReason>,
    next: Option<Telling>,
    lease: Lease,
    /// The reason that is counted, unless an end was counted before.
    counted: Option<LossReason>,
}

impl Drop for LeaseEnd {
    fn drop(&mut self) {
        drop(self.next.take());
        let shared = &self.lease.shared;
        shared.over.notify_waiters();
        // A recorder is application code, and must not keep a lease from ending.
        if let Some(reason) = self.counted {
            shared.subject.site.meter.ended(reason, &shared.began);
        }
    }
}
