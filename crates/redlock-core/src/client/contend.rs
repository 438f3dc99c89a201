//! From a request to its lease: the turn in this process, what the holder before has left, the nodes.

use std::{pin::pin, sync::Arc};

use redlock_proto::{Acquire, Fairness, LeaseTerms, NoPlace, RunRecord};
use tokio::select;

use super::ClientShared;
use crate::{
    AcquireError, InvalidKey, LockGuard, Mode, Wait,
    engine::{AcquireAnswer, AcquireRequest, NotWon, Parked},
    guard::acquire_span::{self, AcquireSpan},
    guard::scope::{self, Scopes},
    lease::{CallSite, LeaseRequest, OwnLabel},
    meter::LockMeter,
    queue::Turn,
};

impl ClientShared {
    /// Wins the lease as [`contend`](Self::contend) does, and reports it by a span and metrics.
    ///
    /// An attempt of a search reports to the span and the metrics of the whole search.
    pub(super) async fn win(
        &self,
        request: AcquireRequest,
        wait: Wait,
        most_waiting: usize,
        search: Option<&AcquireSpan>,
    ) -> Result<(LockGuard, Option<RunRecord>), NotWon> {
        if let Some(error) = self.engine.in_another_process() {
            return Err(NotWon::Failed(error));
        }
        let subject = &request.subject;
        let own;
        let span = match search {
            Some(search) => search,
            None => {
                let is_several = subject.keys.is_several();
                let class = subject.site.class.as_deref();
                own = self.span(class, is_several, subject.site.meter.clone());
                &own
            }
        };
        let won = match subject.mode {
            Mode::Exclusive => {
                let contend = self.contend(request, wait, most_waiting, span);
                span.around(pin!(contend)).await
            }
            Mode::Shared => {
                // In a box of its own, because every acquire has to carry the room that this takes.
                let mut share = Box::pin(self.share(request, wait, most_waiting, span));
                let won = span.around(share.as_mut()).await;
                won.map(|guard| (guard, None))
            }
        };
        match &won {
            _ if search.is_some() => {}
            Ok((guard, _)) => span.won(guard.token(), guard.lease().is_held()),
            Err(why) => span.failed(why),
        }
        let (guard, last) = won?;
        let client = self.engine.client();
        guard.watch(|| acquire_span::hold(client, guard.lease().class(), guard.token()));
        Ok((guard, last))
    }

    /// Returns what leases of this class on these terms have in common; they share it, unless they have a label or a
    /// meter of their own.
    pub(super) fn site(
        &self,
        class: Option<&str>,
        terms: LeaseTerms,
        label: Option<Arc<OwnLabel>>,
        meter: Option<LockMeter>,
    ) -> Arc<CallSite> {
        let is_like_others = label.is_none() && meter.is_none();
        let new = || CallSite {
            client: self.engine.client(),
            clock: self.clock,
            guarantee: self.settings.guarantee,
            class: class.map(Arc::from),
            label,
            terms,
            meter: meter.unwrap_or_else(|| self.meter.lock(class)),
        };
        match is_like_others {
            true => self.sites.get(class, &terms, new),
            false => Arc::new(new()),
        }
    }

    /// Starts the span and the metrics of an acquire.
    pub(super) fn span(
        &self,
        class: Option<&str>,
        is_several: bool,
        meter: LockMeter,
    ) -> AcquireSpan {
        let span = acquire_span::acquire(self.engine.client(), &self.namespace, class);
        AcquireSpan::begin(meter, is_several, span)
    }

    /// Waits for the turn of its key in this process and wins the lease, from the previous holder or from the nodes.
    ///
    /// The lease may be over already: the answer may have waited for this caller, whose thread was blocked or paused
    /// meanwhile.
    async fn contend(
        &self,
        mut request: AcquireRequest,
        wait: Wait,
        most_waiting: usize,
        span: &AcquireSpan,
    ) -> Result<(LockGuard, Option<RunRecord>), NotWon> {
        let turn = self.turn(&request, wait, most_waiting).await;
        let mut turn = turn.map_err(|error| {
            let callers = self.queue.callers_of(&request.subject.keys);
            NotWon::Failed(error).ahead(callers)
        })?;
        span.turn_began();
        request.subject.place = turn.ticket();
        let parked = turn.inherit();
        if request.subject.site.terms.fairness == Fairness::Strict {
            request.before = parked;
        } else {
            // A claim takes no parked lease over: that was acquired without the tick. Nor does a holder with a label of
            // its own: the nodes have another one.
            let fits = request.claim.is_none() && request.subject.site.label.is_none();
            if let Some(parked) = parked.filter(|_| fits)
                && let Some(held) = parked.take_over(request.subject.clone())
            {
                return Ok((LockGuard::new(held.with_turn(turn)), None));
            }
        }
        let (attempts, won) = self.ask_nodes(request, wait).await;
        span.attempted(attempts);
        let (held, last) = won.map_err(|why| why.ahead(turn.behind()))?;
        turn.won();
        Ok((LockGuard::new(held.with_turn(turn)), last))
    }

    /// Wins a shared lease: joins a lease of this process, or asks the nodes.
    ///
    /// Callers that come after a writer wait behind it in the local queue.
    /// The turn ends as soon as the lease is won, so that the callers behind can join it.
    async fn share(
        &self,
        request: AcquireRequest,
        wait: Wait,
        most_waiting: usize,
        span: &AcquireSpan,
    ) -> Result<LockGuard, NotWon> {
        let keys = request.subject.keys.clone();
        let ahead = |why: NotWon| why.ahead(self.queue.callers_of(&keys));
        // A single attempt takes no turn: it does not wait, and other readers do not block it.
        let turn = match wait {
            Wait::Never if self.closing.is_cancelled() => Err(AcquireError::closed()),
            Wait::Never => Ok(None),
            Wait::UpTo(_) => {
                let turn = self.turn(&request, wait, most_waiting);
                turn.await.map(Some)
            }
        };
        let mut turn = turn.map_err(|error| ahead(NotWon::Failed(error)))?;
        span.turn_began();
        if let Some(turn) = &mut turn {
            // A parked lease is exclusive; dropping it releases it.
            drop(turn.inherit());
        }
        let terms = request.subject.site.terms;
        // The end of a scope releases its leases, so callers outside of the scope do not join them.
        let is_joined = !request.is_scoped;
        if is_joined && let Some(guard) = self.readers.join(&keys, &terms, self.clock.now()) {
            return Ok(guard);
        }
        let (attempts, won) = self.ask_nodes(request, wait).await;
        span.attempted(attempts);
        let (held, _) = won.map_err(ahead)?;
        let guard = LockGuard::new(Arc::new(held));
        if is_joined {
            self.readers.open(&keys, &guard, terms, self.clock.now());
        }
        Ok(guard)
    }

    /// Waits for the turn of all keys in this process.
    async fn turn(
        &self,
        request: &AcquireRequest,
        wait: Wait,
        most_waiting: usize,
    ) -> Result<Turn<Parked>, AcquireError> {
        if self.closing.is_cancelled() {
            return Err(AcquireError::closed());
        }
        let keys = &request.subject.keys;
        let enter = |held, most_waiting| {
            let place = (self.queue).enter(keys, held, most_waiting);
            place.map_err(|why| match why {
                NoPlace::Full => AcquireError::overloaded("the resource's local queue is full"),
                NoPlace::Deadlock => AcquireError::deadlock(),
            })
        };
        if let Wait::Never = wait {
            // A single attempt waits for no other caller: it does not count against the limit, and it closes no circle,
            // whichever turns it holds.
            let place = enter(Vec::new(), usize::MAX)?;
            return place.try_turn().ok_or_else(AcquireError::contended_locally);
        }
        let client = self.engine.client();
        let mut held = scope::places(client);
        match Scopes::current(client) {
            Some(scopes) if request.is_scoped => held.extend(scopes.places_beside(keys)),
            Some(scopes) => held.extend(scopes.places()),
            None => {}
        }
        let place = enter(held, most_waiting)?;
        let turn = select! {
            biased;
            turn = place.turn() => turn,
            () = tokio::time::sleep(wait.duration()) => return Err(AcquireError::contended_locally()),
        };
        let turn = turn.filter(|_| !self.closing.is_cancelled());
        turn.ok_or_else(AcquireError::closed)
    }

    /// Attempts to win the lease from the nodes.
    async fn ask_nodes(&self, request: AcquireRequest, wait: Wait) -> AcquireAnswer {
        match self.acquire_of(&request) {
            Ok(acquire) => {
                let acquire = Box::new(acquire);
                self.engine.acquire(acquire, request, wait.duration()).await
            }
            Err(invalid) => (0, Err(NotWon::Failed(invalid.into()))),
        }
    }

    /// Returns what the driver is asked; most turns on a busy key never come to that.
    fn acquire_of(&self, request: &AcquireRequest) -> Result<Acquire, InvalidKey> {
        let LeaseRequest {
            keys, mode, site, ..
        } = &request.subject;
        let terms = &site.terms;
        Ok(Acquire {
            label: match &site.label {
                Some(label) => Some(label.label),
                None => self.settings.label_for(site.class.as_deref()),
            },
            mode: (*mode).into(),
            keys: match &request.slots {
                Some(slots) => self.key_space.encode_slot(keys.first(), slots)?,
                None => self.key_space.encode_all(keys)?,
            },
            timing: terms.timing,
            renew: terms.renew,
            max_hold: terms.max_hold,
            tokens: request.tokens,
            fairness: terms.fairness,
            came: request.asked_at,
            wait_until: request.wait_until,
            quorum_wait: request.quorum_wait,
        })
    }
}
