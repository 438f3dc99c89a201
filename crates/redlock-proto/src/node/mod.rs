//! A node: what it can be asked and what it answers, and a model of what it does.

mod answer;
mod facts;
mod outcome;
mod quarantine;
mod request;
mod space;
mod standing;
mod store;

pub use self::{
    answer::Answer,
    facts::{Facts, RunId, Unfit},
    outcome::{GiveBack, Outcome},
    quarantine::Quarantine,
    request::{NodeVerb, Reply, Request, Verb},
    space::Space,
    standing::{MarkState, Standing},
    store::Store,
};
