//! Scheduled ticks, what nodes remember of their runs, and what nodes are asked about them.

mod record;
mod verb;
mod window;

pub use self::{
    record::{JobEntry, Note, RunRecord, RunState, Word},
    verb::{JobVerb, NoClaim},
    window::{Tick, Window},
};
