#![doc = include_str!("../docs/crate.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod answers;
#[cfg(feature = "axum")]
mod axum;
mod body;
mod builder;
mod config_error;
mod exclusive;
mod future;
pub mod generic;
mod grpc;
#[cfg(doc)]
pub mod guide;
mod held;
mod hold;
mod hold_time;
mod key;
mod layer;
mod lease;
mod locks;
mod meter;
#[cfg(feature = "metrics")]
pub mod metrics;
mod on_lost;
mod owned;
mod pace;
mod placement;
mod problem;
mod protocol;
mod rejection;
mod service;
mod shared;
mod slot;
mod terms;

#[cfg(feature = "axum")]
pub use self::{
    axum::{Locked, LockedRejection, MissingLease},
    key::PathKey,
};
pub use self::{
    body::ResponseBody,
    builder::RedlockLayerBuilder,
    config_error::{ConfigError, ConfigErrorKind},
    future::ResponseFuture,
    hold::Hold,
    key::{BoxedKey, ExtensionKey, HeaderKey, InHandler, KeyError, KeyExtractor, LockKey},
    layer::RedlockLayer,
    lease::RequestLease,
    on_lost::OnLost,
    owned::{LeaseTaken, OwnedLease},
    rejection::{Rejection, RejectionKind},
    service::RedlockService,
};

// Its types are in this crate's signatures.
pub use redlock_core;

// What the README shows compiles, and runs.
#[cfg(doctest)]
mod readme {
    #![doc = include_str!("../README.md")]
}

/// The target of all events.
const TARGET: &str = "redlock::http";
