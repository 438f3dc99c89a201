//! Calls and answers as they are on the wire; `node.lua` says what they mean, and `leases.lua` what a short answer does.

mod answer;
mod call;
mod encoded;
mod jobs;
mod request;
mod short_answer;
#[cfg(test)]
mod tests;
mod values;

pub(crate) use self::call::Encoder;
pub(super) use self::{
    answer::{answer, wrong_server},
    call::Order,
    short_answer::done,
};
