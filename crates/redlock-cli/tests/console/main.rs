//! The page of `redlock console` in a real browser, on real servers.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod acts;
mod amounts;
mod hostile;
mod kit;
mod looks;
mod mounted;
mod pictures;
