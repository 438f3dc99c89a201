//! The ticks of a job on this replica: found due, claimed, run, and if need be made up for or started again.

mod agreement;
mod backlog;
mod backoff;
mod behind;
mod course;
mod execution;
mod found;
mod missed;
mod pause;
mod progress;
mod random;
mod retry;
mod runner;
mod start;
mod turns;
mod undecided;
mod used;

pub(crate) use self::{
    course::SHORT_WAIT,
    execution::Start,
    pause::{Switch, is_paused_by},
    runner::JobRunner,
};
#[cfg(test)]
pub(crate) use self::{retry::Unclaimed, undecided::Undecided};
