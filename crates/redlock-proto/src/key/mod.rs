//! The names of locks on the nodes, and the owners that hold them.

mod key_set;
mod label;
mod mode;
mod node_key;
mod owner;
mod printable;
mod shard;

pub use self::{
    key_set::{CountedKey, InvalidKeySet, KeySet, SlotCount},
    label::{HolderLabel, InvalidLabel},
    mode::Mode,
    node_key::NodeKey,
    owner::OwnerId,
    printable::Printable,
    shard::Shard,
};
