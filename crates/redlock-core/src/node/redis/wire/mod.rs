//! Calls and answers as they are on the wire; `node.lua` says what they mean, and `leases.lua` what a short answer does.

mod answer;
mod call;
mod done;
mod jobs;
mod keys;
#[cfg(test)]
mod tests;
mod values;

pub(super) use self::{answer::answer, call::call, done::done};
