//! The nodes that vote: the quorum, what is known of each node, their clocks and their counters.

mod clock_reading;
mod clocks;
mod members;
mod node_answer;
mod not_a_vote;
mod quorum;
mod standstill;
mod survey;

pub use self::{
    clock_reading::ClockReading,
    clocks::Clocks,
    members::Membership,
    node_answer::NodeAnswer,
    not_a_vote::NotAVote,
    quorum::Quorum,
    survey::{Counters, Floor, Survey},
};
pub(crate) use self::{clocks::Agreement, standstill::Baseline};
