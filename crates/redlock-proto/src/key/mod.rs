//! What a lock is called on the nodes, and by whom it is held.

mod node_key;
mod owner;

pub use self::{node_key::NodeKey, owner::OwnerId};
