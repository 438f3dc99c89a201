//! Calls and answers as they are on the wire; `node.lua` says what they mean.

mod answer;
mod call;
mod jobs;
mod keys;
#[cfg(test)]
mod tests;
mod values;

pub(super) use self::{answer::answer, call::call};
