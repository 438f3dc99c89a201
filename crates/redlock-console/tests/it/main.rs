//! The console over HTTP, without a browser.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod access;
mod actions;
mod kit;
mod looks;
mod sizes;
mod snapshot;
mod streams;
