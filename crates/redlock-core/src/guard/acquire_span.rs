//! The span and the metrics of one acquire.

use std::{
    future::poll_fn,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
};

use tracing::{Span, field::Empty};

use crate::{
    AcquireErrorKind, FencingToken,
    engine::NotWon,
    meter::{LockMeter, Stopwatch},
};

/// An acquire that is under way; one that is dropped was abandoned.
///
/// The parts of a search for a slot share one.
#[derive(Debug)]
pub(crate) struct AcquireSpan {
    meter: LockMeter,
    /// Whether it is for several keys.
    is_several: bool,
    began: Stopwatch,
    span: Span,
    had_a_turn: AtomicBool,
    attempts: AtomicU32,
    is_over: AtomicBool,
}

impl AcquireSpan {
    pub(crate) fn begin(meter: LockMeter, is_several: bool, span: Span) -> Self {
        meter.begins_to_wait(is_several);
        Self {
            meter,
            is_several,
            began: Stopwatch::start(),
            span,
            had_a_turn: AtomicBool::new(false),
            attempts: AtomicU32::new(0),
            is_over: AtomicBool::new(false),
        }
    }

    /// Runs the work of the acquire in its span.
    pub(crate) async fn around<F: Future>(&self, mut work: Pin<&mut F>) -> F::Output {
        poll_fn(|cx| self.span.in_scope(|| work.as_mut().poll(cx))).await
    }

    /// Reports that the caller has its turn in this process; only the first turn counts.
    pub(crate) fn turn_began(&self) {
        if !self.had_a_turn.swap(true, Ordering::Relaxed) {
            self.meter.turn_began(self.is_several, &self.began);
        }
    }

    /// Adds attempts at the nodes.
    pub(crate) fn attempted(&self, attempts: u32) {
        self.attempts.fetch_add(attempts, Ordering::Relaxed);
    }

    /// Reports that the acquire has won a lease, which may be over already.
    pub(crate) fn won(&self, token: FencingToken, is_held: bool) {
        self.tell_attempts();
        self.span.record("token", token.get());
        self.end(if is_held { "acquired" } else { "expired" });
    }

    pub(crate) fn failed(&self, why: &NotWon) {
        self.tell_attempts();
        if let NotWon::Failed(error) = why
            && let Some(holder) = error.holder()
        {
            self.span.record("holder", holder.as_str());
        }
        self.end(match why {
            NotWon::Refused(..) => "refused",
            NotWon::Failed(error) => match error.kind() {
                AcquireErrorKind::Contended => "contended",
                AcquireErrorKind::NoQuorum => "no_quorum",
                AcquireErrorKind::Quarantined => "quarantined",
                AcquireErrorKind::Expired => "expired",
                AcquireErrorKind::Overloaded => "overloaded",
                AcquireErrorKind::Deadlock => "deadlock",
                AcquireErrorKind::OtherSlots => "other_slots",
                AcquireErrorKind::Closed => "closed",
                AcquireErrorKind::AlreadyHeld => return self.end_uncounted("already_held"),
                AcquireErrorKind::Misuse => return self.end_uncounted("misuse"),
            },
        });
    }

    /// Records the number of attempts in the span, which has each field once.
    fn tell_attempts(&self) {
        let attempts = self.attempts.load(Ordering::Relaxed);
        if attempts > 0 {
            self.span.record("attempts", attempts);
        }
    }

    /// Ends an acquire that was refused for what the caller is or asks for; most such acquires are refused before they
    /// begin.
    fn end_uncounted(&self, result: &'static str) {
        self.is_over.store(true, Ordering::Relaxed);
        self.span.record("result", result);
        self.meter.stops_waiting(self.is_several);
    }

    fn end(&self, result: &'static str) {
        self.is_over.store(true, Ordering::Relaxed);
        self.span.record("result", result);
        self.meter
            .acquire_ended(self.is_several, result, &self.began);
    }
}

impl Drop for AcquireSpan {
    fn drop(&mut self) {
        if !*self.is_over.get_mut() {
            self.end("abandoned");
        }
    }
}

/// Returns the span of an acquire.
pub(crate) fn acquire(client: u64, namespace: &Arc<str>, class: Option<&str>) -> Span {
    tracing::info_span!(
        target: LEASE,
        "redlock.acquire",
        client,
        namespace = &**namespace,
        class,
        result = Empty,
        attempts = Empty,
        token = Empty,
        holder = Empty,
    )
}

/// Returns the span of a lease, from its acquire to the end of its guard.
pub(crate) fn hold(client: u64, class: Option<&str>, token: FencingToken) -> Span {
    tracing::info_span!(target: LEASE, "redlock.hold", client, class, token = token.get(), lost = Empty)
}

const LEASE: &str = "redlock::lease";
