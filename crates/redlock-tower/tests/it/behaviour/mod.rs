//! What the layer promises, as a user of tower, axum and hyper sees it.
//!
//! The nodes are in memory; a socket is there where a socket matters.

mod kit;

mod answers;
mod arguments;
mod bad_input;
mod cancellation;
mod contract;
mod crowd;
mod extractors;
mod generic;
mod grpc;
mod hold;
mod http2;
mod isolation;
mod keys;
mod leader_only;
mod limits;
mod locked;
mod locked_refusals;
mod loss;
mod observing;
mod owned;
mod pace;
mod per_request;
mod places;
mod positions;
mod read_body;
mod refusals;
mod reuse;
mod scopes;
mod secrets;
mod serving;
mod sets;
mod shared;
mod shutdown;
mod signal;
mod slots;
mod stale;
mod values;
