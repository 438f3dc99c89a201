//! Where it is measured: nodes, and contenders in processes of their own.

mod machine;
mod nodes;
mod process;
mod relay;

pub(crate) use self::{
    machine::Machine,
    nodes::Nodes,
    process::{Contender, Program},
    relay::Relays,
};
