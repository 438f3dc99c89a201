//! The documents, the manifests and the prose of the project.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod documents;
mod examples;
mod log_targets;
mod manifests;
mod prose;
mod usage;
