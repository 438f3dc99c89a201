//! Servers that others name: which of two servers has the vote of a node.
//!
//! Sentinels name the master of a node, and the nodes of a Cluster name the owner of a slot.
//! These *informants* say it together with an epoch, which grows with each failover.
//! A client counts on a server only while more than half of the informants name it under one epoch.
//! The mark of a server lists the informants that count, by their own ids: the [`Roll`].
//! An informant that lost its file has another id, and does not count until it is on the roll.
//!
//! | file | role |
//! |---|---|
//! | `roll` | the informants that count, and the term of a mark |
//! | `hearing` | the answers of one inquiry, and what follows from them |
//!
//! `docs/named.md` has the argument, R7, and `redlock-model` explores its worlds.

mod hearing;
mod roll;

pub use self::{
    hearing::{Confirms, Hearing, Judgement, Pair, Shortfall, Statement},
    roll::{InformantId, NamedMark, Roll},
};
