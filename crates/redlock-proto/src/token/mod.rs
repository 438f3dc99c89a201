//! Fencing tokens: how they are counted, agreed upon and checked.

mod fence;
mod fencing;

pub use self::{
    fence::{Fence, StaleToken},
    fencing::{FencingToken, InvalidToken, Settled, TokenBlock, next_counter, settle},
};
