//! The errors: opaque, with a kind that says whether the caller, the operator or the program must act.

/// Shows an error by `Debug` as by `Display`: a `main` that returns it prints it in this form.
macro_rules! debug_as_display {
    ($error:ty) => {
        impl std::fmt::Debug for $error {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Display::fmt(self, f)
            }
        }
    };
}

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
