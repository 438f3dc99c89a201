//! Words to a subscriber of `tracing`, which is an application's code.
//!
//! It runs in the client's own tasks, in drops and at the ends of scopes: a mistake in it costs a line, and no lease.

use std::{
    future::poll_fn,
    mem,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
};

use tracing::{Span, Value, span::Entered};

/// Tells a subscriber something; returns `None` if its code panicked.
pub(crate) fn quietly<T>(work: impl FnOnce() -> T) -> Option<T> {
    // It changes nothing of ours, so nothing can be left half-done.
    catch_unwind(AssertUnwindSafe(work)).ok()
}

/// A span whose subscriber may panic at any word.
#[derive(Debug)]
pub(crate) struct QuietSpan(Span);

impl QuietSpan {
    /// Makes a span; it is a disabled one if the subscriber panics.
    pub(crate) fn new(span: impl FnOnce() -> Span) -> Self {
        Self(quietly(span).unwrap_or_else(Span::none))
    }

    pub(crate) fn is_disabled(&self) -> bool {
        self.0.is_disabled()
    }

    pub(crate) fn record(&self, field: &str, value: impl Value) {
        quietly(|| _ = self.0.record(field, value));
    }

    /// Runs `work` in this span.
    pub(crate) async fn around<F: Future>(&self, mut work: Pin<&mut F>) -> F::Output {
        poll_fn(|cx| {
            let _inside = Inside::of(&self.0);
            work.as_mut().poll(cx)
        })
        .await
    }
}

impl Drop for QuietSpan {
    fn drop(&mut self) {
        let span = mem::replace(&mut self.0, Span::none());
        quietly(|| drop(span));
    }
}

/// Leaves the span also when the work in it panics; a second panic on the way out would end the process.
struct Inside<'a>(Option<Entered<'a>>);

impl<'a> Inside<'a> {
    fn of(span: &'a Span) -> Self {
        Self(quietly(|| span.enter()))
    }
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        let entered = self.0.take();
        quietly(|| drop(entered));
    }
}
