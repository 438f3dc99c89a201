//! Servers that others name: two for each node, its informants, and the sessions of clients with the server that they
//! name.
//!
//! What a client concludes from answers is decided by [`redlock_proto::Hearing`], as in production; this is the rest.
//!
//! | file | role |
//! |---|---|
//! | `informants` | which pair each informant names, and what it tells the others |
//! | `failover` | elections, promotions, and masters that are made replicas |
//! | `messages` | what is on its way |
//! | `inquiry` | questions of clients, and what is answered |
//! | `session` | what a client knows of the server that it has a connection to |
//! | `begin` | the beginning of a session: the pair, the mark, the first call |
//! | `watch` | the confirmation of a session, once a second |
//! | `marks` | the marks of servers, as clients read and replace them beside their calls |

mod begin;
mod failover;
mod informants;
mod inquiry;
mod marks;
mod messages;
mod session;
mod watch;

pub(super) use self::session::Session;
use self::{informants::Informants, messages::Messages};
use super::World;
use crate::setup::{Micros, SECOND, Setup};

/// The informants of all nodes, and what they and clients tell each other; nothing if no others name servers.
#[derive(Debug, Default)]
pub(super) struct Naming {
    /// By node.
    nodes: Vec<Informants>,
    messages: Messages,
}

impl Naming {
    pub(super) fn new(setup: &Setup) -> Self {
        let nodes = if setup.named.is_some() {
            setup.nodes
        } else {
            0
        };
        let nodes = (0..nodes).map(|node| Informants::new(node, setup.clients));
        Self {
            nodes: nodes.collect(),
            messages: Messages::default(),
        }
    }
}

impl World {
    /// The informants begin to tell each other which servers they name.
    pub(super) fn begin_naming(&mut self) {
        for node in 0..self.naming.nodes.len() {
            self.begin_hellos(node);
        }
    }

    /// Returns how long it takes, once everything is repaired, until every client has a session under the last pair.
    ///
    /// For five seconds, calls under older pairs may begin the quarantine again.
    pub(super) const fn naming_takes(&self) -> Micros {
        match self.setup.named {
            Some(_) => 10 * SECOND,
            None => 0,
        }
    }
}
