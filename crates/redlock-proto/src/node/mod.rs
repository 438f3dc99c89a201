//! A node: what it can be asked and what it answers, and a model of what it does.

mod answer;
mod keyspace;
mod outcome;
mod quarantine;
mod request;
mod server_info;
mod standing;
mod store;

pub use self::{
    answer::Answer,
    keyspace::Keyspace,
    outcome::{GiveBack, NodeOutcome, RequestError},
    quarantine::Quarantine,
    request::{Lock, NodeVerb, Reply, Request, Verb},
    server_info::{RunId, ServerInfo, Unfit},
    standing::{MarkState, Standing},
    store::Store,
};
