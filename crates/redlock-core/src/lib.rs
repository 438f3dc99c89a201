#![doc = include_str!("../docs/crate.md")]

mod builder;
mod claim;
mod client;
mod clock;
mod config;
mod engine;
mod error;
mod guard;
mod holder;
mod key;
mod keyspace;
mod lease;
pub mod node;
mod options;
mod process;
mod queue;
mod settings;
mod variables;
mod within;

pub use self::{
    builder::RedlockBuilder,
    claim::{Claim, ClaimOptions, ClaimOutcome, JobReading},
    client::Redlock,
    config::{Config, NodeConfig},
    error::{
        AcquireError, AcquireErrorKind, BuildError, BuildErrorKind, ExtendError, ExtendErrorKind,
        InvalidOption, LeaseLost, LossReason, NodeAnswer, NodeReport, NotAVote, ReleaseError,
        ReleaseErrorKind, Unfit,
    },
    guard::LockGuard,
    key::{InvalidKey, ResourceKey},
    keyspace::NodeKeys,
    lease::Lease,
    node::MemoryNode,
    options::{AcquireOptions, Renewal, Wait},
    process::VirtualProcess,
};
// Its types are in this crate's signatures.
pub use deadpool_redis;
pub use redlock_proto::{
    FanOut, Fence, FencingToken, HolderLabel, InvalidLabel, InvalidToken, JobState, RunRecord,
    RunState, StaleToken, Tick, Word,
};
