//! named
mod check;
mod informants;
mod inquiry;
mod mutation;
mod number;
mod rules;
mod search;
mod server;
mod state;
mod step;

pub use self::{
    check::{NamedCheck, NamedRules, NamedWorld},
    mutation::NamedMutation,
    search::NamedReport,
};
