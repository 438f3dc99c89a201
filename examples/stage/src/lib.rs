//! What the examples share that show something: the story that they tell, the servers of their locks, and their end.
#![expect(clippy::print_stdout, reason = "it tells a story on the terminal")]

mod end;
mod nodes;
mod story;

pub use self::{
    end::{asked_to_end, limited},
    nodes::{Nodes, become_ready},
    story::Story,
};

/// The error of a show, which is printed as it is.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;
