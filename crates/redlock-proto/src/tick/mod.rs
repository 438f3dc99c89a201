//! Scheduled ticks, what nodes remember of their runs, and what nodes are asked about them.

pub mod ledger;
mod record;
mod series;
mod verb;
mod window;

pub use self::{
    record::{JobEntry, Note, RunRecord, RunState, Word},
    series::Series,
    verb::{JobVerb, NoClaim},
    window::{Tick, Window},
};
