//! Opens sessions: where a node's server is at the moment, and one connection to it.

mod place;
mod session;

pub(crate) use self::{
    place::{Guarded, NamedPlace, Place, Server},
    session::SessionParts,
};
