#![doc = include_str!("../docs/crate.md")]

mod acquire;
mod body;
#[cfg(feature = "axum")]
mod extract;
mod future;
mod header_key;
mod held;
mod key;
mod layer;
mod lease;
mod named;
#[cfg(feature = "axum")]
mod path_key;
mod problem;
mod rejection;
mod service;

pub use self::{
    body::ResponseBody,
    future::ResponseFuture,
    header_key::HeaderKey,
    key::{KeyError, KeyExtractor},
    layer::{ConfigError, Hold, RedlockLayer, RedlockLayerBuilder},
    lease::Lease,
    rejection::{Rejection, RejectionKind},
    service::RedlockService,
};
#[cfg(feature = "axum")]
pub use self::{extract::MissingLease, path_key::PathKey};

// Its types are in this crate's signatures.
pub use redlock_core;
