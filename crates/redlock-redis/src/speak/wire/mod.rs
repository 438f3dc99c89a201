//! Calls and answers as they are on the wire; `script/node.lua` and `script/keep.lua` say what they mean.

mod answer;
mod call;
mod codes;
mod encoded;
mod jobs;
mod request;
#[cfg(test)]
mod tests;
mod transaction;
mod values;

pub use self::call::Encoder;
pub(crate) use self::{
    answer::read,
    transaction::{Block, transaction},
};
