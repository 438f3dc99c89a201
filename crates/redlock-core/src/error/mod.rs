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
mod lease;
mod nodes;

pub use self::{
    acquire::{AcquireError, AcquireErrorKind},
    build::{BuildError, BuildErrorKind, InvalidOption},
    lease::{ExtendError, ExtendErrorKind, LeaseLost, LossReason, ReleaseError, ReleaseErrorKind},
    nodes::{NodeAnswer, NodeReport, NotAVote, Unfit},
};
