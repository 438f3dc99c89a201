#![doc = include_str!("../docs/crate.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod builder;
mod client;
mod clock;
mod config;
mod election;
mod engine;
mod error;
mod guard;
pub mod guide;
mod key;
mod keyspace;
mod lease;
mod meter;
mod names;
#[cfg(feature = "metrics")]
pub mod metrics {
    //! The metrics of a client, by name; with the feature `metrics`.
    //!
    //! The application must install a recorder before [`build`](crate::RedlockBuilder::build), because a client
    //! registers its metrics then.

    pub use crate::meter::{ALL, Kind, Metric, describe};
    pub use metrics::Unit;
}
pub mod node;
mod options;
mod printable;
#[cfg_attr(
    not(feature = "test-util"),
    expect(
        dead_code,
        unreachable_pub,
        reason = "only tests make, freeze and thaw a process"
    )
)]
mod process;
mod queue;
mod slots;

pub use self::{
    builder::RedlockBuilder,
    client::{Forgotten, Holder, NodeForgot, Redlock},
    config::{Config, Expert, Guarantee, NodeConfig},
    election::{Election, ElectionBuilder, Leadership, Observer, Term},
    error::{
        AcquireError, AcquireErrorKind, BuildError, BuildErrorKind, ExtendError, ExtendErrorKind,
        InvalidOption, LeaseLost, LossReason, NodeAnswer, NodeReport, NotAVote, ReleaseError,
        ReleaseErrorKind, Unfit,
    },
    guard::{Claim, ClaimOptions, ClaimOutcome, JobReading, LockGuard, Scope},
    key::{InvalidKey, ResourceKey, ResourceKeys},
    keyspace::NodeKeys,
    lease::{Lease, Mode},
    node::MemoryNode,
    options::{AcquireOptions, Renewal, Wait},
    printable::Printable,
    slots::{SlotGuard, Slots},
};
#[cfg(feature = "test-util")]
pub use process::VirtualProcess;

#[cfg(feature = "toml")]
pub use self::config::read_toml;
pub use redlock_redis::Credentials;
// Its types are in this crate's signatures.
#[cfg(feature = "deadpool-redis")]
pub use deadpool_redis;
#[cfg(feature = "test-util")]
pub use redlock_proto::FanOut;
// For `redlock-cron`, whose decisions on ticks are the protocol's.
#[doc(hidden)]
pub use redlock_proto::ledger;
pub use redlock_proto::{
    Fairness, Fence, FencingToken, HolderLabel, InvalidLabel, InvalidToken, JobRecord, JobState,
    Note, Rounded, RunRecord, RunState, Series, StaleToken, Tick, Word,
};

// What the README shows compiles, and runs.
#[cfg(doctest)]
mod readme {
    #![doc = include_str!("../README.md")]
}
