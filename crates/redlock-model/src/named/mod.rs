//! An exhaustive check of a node whose server others name, in small worlds.
//!
//! A node has one vote and two servers, A and B.
//! Informants, which are Sentinels or the nodes of a Cluster, name one of them under an epoch.
//! A [`NamedCheck`] explores every order of elections, promotions, hellos, losses of files, restarts, inquiries and requests,
//! in a world of three or five informants and two clients, x and y.
//!
//! # What is checked
//!
//! No two clients have a lease of the node at the same time.
//!
//! # What is shared with the protocol
//!
//! `redlock-proto`'s `Hearing` decides which pair of server and epoch is the candidate, whether a client counts on its server,
//! whether a roll begins, whether a session is confirmed, and which informants join a roll.
//! A [`NamedMutation`] changes what a client hears, or what it does where the protocol refuses; it never breaks these functions.
//! [`NamedRules::Server`] has the rules without terms, which break in four ways:
//! by a failover back, by one lost file, by views that differ in size, and by a mixed majority.
//!
//! # What is modelled
//!
//! - **An election** takes a majority of the informants that the leader knows.
//!   Its epoch follows the greatest one of which the voters know.
//! - **A promotion** makes a replica a master with other data and no keys.
//!   It does nothing on a server that takes itself for a master: run, data and mark stay as they are.
//! - **A leader** that has promoted a server may name the old one under the new epoch until its failover is over.
//!   With a lost file, one epoch may be elected twice, and two such leaders then make majorities for both servers.
//!   So a client counts no leader that says that its failover goes on: the worlds with `flagged` leaders.
//! - **A hello** lets an informant take the pair of another one, if the epoch is greater. It comes at any time or never.
//! - **The old master** becomes a replica at any time or never. A replica gets the mark of its master at any time or never.
//! - **A lost file** makes an informant name A under epoch 0, with another id.
//!   One that was replaced names under epoch 0 the server that it has named before.
//! - **A reset** makes an informant know only those that were reset, so views shrink and grow.
//! - **A client** hears any of the informants, connects, and begins a session with a pair and a roll.
//!   It sends while its last confirmation is fresh, and goes on with an old session at any later time.
//! - **Slow answers** reach a client one after the other, and it may act on them later.
//!   It begins a session and extends a roll only by answers of one moment:
//!   informants that named the same pair under the same id in the inquiry before, too, have all done so in between.
//! - **A request** is carried out at once, or takes any time.
//! - **Time** goes on in steps. A lease is for a few of them, and a quarantine lasts for a lease and a confirmation.
//!
//! # What is assumed
//!
//! - The clients name the same informants, all of them.
//! - An informant that has its file names no smaller epoch later, and no other server under the same one.
//! - All clocks run alike. The error of clocks is in the length of the quarantine.
//!
//! # What is not modelled
//!
//! - Keys that replicas get: a promoted server has none, which is the worst case.
//! - Slow answers in two inquiries at a time, and more than two clients.
//! - Informants that join or leave for good, and rolls that count them differently.
//! - A slot on its way. `redlock-proto` has tests of it.
//! - The other votes of a client: a lease of this node alone counts.

mod check;
mod informants;
mod inquiry;
mod mutation;
mod number;
mod rules;
mod server;
mod state;
mod step;
mod valid_world;

pub use self::{
    check::{NamedCheck, NamedRules, NamedWorld},
    mutation::NamedMutation,
    rules::NamedCounts,
};
