//! One round of requests to every node: its votes, and what they come to.

mod attempt;
mod ballot;
mod extension;
mod release;
mod retry;
mod votes;

pub use self::{
    attempt::{Attempt, AttemptVerdict, Failure, FailureKind, Grant, Winning},
    ballot::{Ballot, Rule},
    extension::{Extending, Extension, ExtensionVerdict},
    release::{Release, ReleaseVerdict, Releasing},
    retry::{RetryDecision, RetryPolicy},
    votes::{Vote, Votes},
};
