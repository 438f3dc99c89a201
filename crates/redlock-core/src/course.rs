//! The course of one acquire, for those who look on: its span and its metrics.

use std::{pin::Pin, sync::Arc};

use tracing::field::Empty;

use crate::{
    AcquireErrorKind, FencingToken,
    engine::NotWon,
    meter::{LockMeter, Stopwatch},
    quiet::QuietSpan,
};

/// An acquire that is under way; one that is dropped was abandoned.
#[derive(Debug)]
pub(crate) struct Course {
    /// None if it is a part of another, which is counted.
    meter: Option<LockMeter>,
    began: Stopwatch,
    span: QuietSpan,
    is_over: bool,
}

impl Course {
    pub(crate) fn begin(meter: Option<LockMeter>, span: QuietSpan) -> Self {
        if let Some(meter) = &meter {
            meter.begins_to_wait();
        }
        Self {
            meter,
            began: Stopwatch::start(),
            span,
            is_over: false,
        }
    }

    /// Runs the work of the acquire in its span.
    pub(crate) async fn around<F: Future>(&self, work: Pin<&mut F>) -> F::Output {
        self.span.around(work).await
    }

    /// The caller has its turn in this process.
    pub(crate) fn has_its_turn(&self) {
        if let Some(meter) = &self.meter {
            meter.has_its_turn(&self.began);
        }
    }

    /// The nodes were asked, in so many attempts.
    pub(crate) fn attempted(&self, attempts: u32) {
        self.span.record("attempts", attempts);
    }

    /// It has won a lease, which may be over already.
    pub(crate) fn won(mut self, token: FencingToken, is_held: bool) {
        self.span.record("token", token.get());
        self.end(if is_held { "acquired" } else { "expired" });
    }

    pub(crate) fn failed(mut self, why: &NotWon) {
        if let NotWon::Failed(error) = why
            && let Some(holder) = error.holder()
        {
            self.span.record("holder", tracing::field::display(holder));
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
                _ => "closed",
            },
        });
    }

    fn end(&mut self, result: &'static str) {
        self.is_over = true;
        self.span.record("result", result);
        if let Some(meter) = &self.meter {
            meter.is_over(result, &self.began);
        }
    }
}

impl Drop for Course {
    fn drop(&mut self) {
        if !self.is_over {
            self.end("abandoned");
        }
    }
}

/// Returns the span of an acquire.
pub(crate) fn acquire(client: u64, namespace: &Arc<str>, class: Option<&str>) -> QuietSpan {
    QuietSpan::new(|| {
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
    })
}

/// Returns the span of a lease, from its acquire to the end of its guard.
pub(crate) fn hold(client: u64, class: Option<&str>, token: FencingToken) -> QuietSpan {
    QuietSpan::new(
        || tracing::info_span!(target: LEASE, "redlock.hold", client, class, token = token.get(), lost = Empty),
    )
}

const LEASE: &str = "redlock::lease";
