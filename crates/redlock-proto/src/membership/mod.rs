//! What makes a vote of a node's answer: the quorum, the clocks and the counters of the nodes.

mod clock_reading;
mod clocks;
mod node_answer;
mod not_a_vote;
mod quorum;
mod standstill;
mod survey;

pub use self::{
    clock_reading::ClockReading,
    clocks::Clocks,
    node_answer::NodeAnswer,
    not_a_vote::NotAVote,
    quorum::Quorum,
    survey::{Counters, Floor, Survey},
};
pub(crate) use self::{clocks::Agreement, standstill::Baseline};
