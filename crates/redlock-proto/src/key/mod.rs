//! What a lock is called on the nodes, and by whom it is held.

mod label;
mod node_key;
mod owner;

pub use self::{
    label::{HolderLabel, InvalidLabel},
    node_key::NodeKey,
    owner::OwnerId,
};
