//! One round of requests to every node: its votes, and what they come to.

mod attempt;
mod extension;
mod release;
mod retry;
mod votes;

pub use self::{
    attempt::{Attempt, AttemptVerdict, Failure, FailureKind, Grant},
    extension::{Extension, ExtensionVerdict},
    release::{Release, ReleaseVerdict},
    retry::{Next, RetryPolicy},
    votes::{Vote, Votes},
};
