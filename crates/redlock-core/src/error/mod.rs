//! The errors: opaque, with a kind that says who must act.

mod acquire;
mod build;
mod extend;
mod lost;
mod nodes;
mod option;
mod release;

pub use self::{
    acquire::{AcquireError, AcquireErrorKind},
    build::{BuildError, BuildErrorKind},
    extend::{ExtendError, ExtendErrorKind},
    lost::{LeaseLost, LossReason},
    nodes::{NodeAnswer, NodeReport, NotAVote, Unfit},
    option::InvalidOption,
    release::{ReleaseError, ReleaseErrorKind},
};
