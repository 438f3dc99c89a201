//! The layer for HTTP.

mod body;
mod builder;
mod future;
mod layer;
mod rules;

pub use self::{
    body::{ResponseBody, read_to_end},
    builder::RedlockLayerBuilder,
    future::ResponseFuture,
    layer::{RedlockLayer, RedlockService},
};
