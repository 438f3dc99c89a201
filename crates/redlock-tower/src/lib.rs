#![doc = include_str!("../docs/crate.md")]

mod answers;
#[cfg(feature = "axum")]
mod axum;
mod body;
mod builder;
mod exclusive;
mod future;
pub mod generic;
mod grpc;
mod held;
mod key;
mod layer;
mod lease;
mod locks;
mod on_lost;
mod owned;
mod placement;
mod problem;
mod rejection;
mod service;
mod shared;

#[cfg(feature = "axum")]
pub use self::{
    axum::{Locked, LockedRejection, MissingLease},
    key::PathKey,
};
pub use self::{
    body::ResponseBody,
    builder::{ConfigError, RedlockLayerBuilder},
    future::ResponseFuture,
    key::{BoxedKey, ExtensionKey, HeaderKey, InHandler, KeyError, KeyExtractor, LockKey},
    layer::{Hold, RedlockLayer},
    lease::{Lease, LeaseTaken},
    on_lost::OnLost,
    owned::OwnedLease,
    rejection::{Rejection, RejectionKind},
    service::RedlockService,
};

// Its types are in this crate's signatures.
pub use redlock_core;
