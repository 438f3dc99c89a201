//! A node: what it can be asked and what it answers, and a model of what it does.

mod grant;
mod keyspace;
mod line;
mod mark;
mod outcome;
mod quarantine;
mod request;
mod server_info;
mod store;
mod transaction;

pub use self::{
    keyspace::Keyspace,
    line::{Gift, InLine, LineCaller, LinePlace},
    mark::Mark,
    outcome::{GiveBack, NodeOutcome, RequestError},
    quarantine::Quarantine,
    request::{Answer, Lock, NodeVerb, Reply, Request, Verb, last_of_block},
    server_info::{MarkState, RunId, ServerInfo, Standing, Unfit},
    store::Store,
    transaction::{Done, Look, Transaction},
};
