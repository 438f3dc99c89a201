//! `cargo xtask bench`: what is fast is measured, side by side with what it is compared with.
//!
//! The client is needed for this and for nothing else here, so it is behind the feature `bench`: every other
//! verb is built without it.

#[cfg(feature = "bench")]
mod lock;
#[cfg(feature = "bench")]
mod script;
#[cfg(feature = "bench")]
mod site;
#[cfg(feature = "bench")]
mod table;
#[cfg(feature = "bench")]
mod tower;

use crate::step::Failed;

/// Measures what `name` stands for; fails if a goal is missed.
#[cfg(feature = "bench")]
pub(crate) fn run(name: &str) -> Result<(), Failed> {
    match name {
        "script" => script::run(),
        "tower" => tower::run(),
        other => Err(Failed(format!(
            "there is no bench {other}; type: script or tower"
        ))),
    }
}

/// Builds this program again, with the client and as it is released.
#[cfg(not(feature = "bench"))]
pub(crate) fn run(name: &str) -> Result<(), Failed> {
    let again = "run --locked --quiet --release --package xtask --features bench -- bench";
    crate::step::Step::cargo("bench", again)
        .arguments(&[name])
        .run_last()
}
