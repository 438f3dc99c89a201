//! The names of locks on the nodes, and the owners that hold them.

mod key_set;
mod label;
mod node_key;
mod owner;

pub use self::{
    key_set::{CountedKey, InvalidKeySet, KeySet, SlotCount},
    label::{HolderLabel, InvalidLabel},
    node_key::{NodeKey, Shard},
    owner::{LockMode, OwnerId, OwnerSecret},
};
