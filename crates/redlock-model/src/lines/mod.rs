//! An exhaustive check of callers that wait in line for a key, in small worlds.
//!
//! A [`LineCheck`] explores every order in which callers ask, ask again and end, and in which acquires, releases and
//! messages of nodes arrive, keys end, and nodes lose their data, in a world of three nodes and a few callers.
//!
//! # What is checked
//!
//! - No caller gets a lease while another has one.
//! - Each lease has a greater token than the one before, where tokens are counted.
//! - No node gives its key to a caller while another waits there that is before it in line.
//! - While two nodes vote, there is a way from every state to a lease of the first of the callers that wait, and to no other
//!   lease before.
//!   On this way, callers ask again, and a holder ends its lease.
//!   The way needs neither a caller that gives up, nor the release of a caller that is over, nor the end of an entry.
//!
//! # What is shared with the protocol
//!
//! `redlock-proto`'s `Store` decides what a node does with a request, also in the line: it names the caller that gets the key,
//! and the round in the message.
//! `Votes` decides whether nodes are a majority, `settle` what their counters come to, and `Survey` the floor of a node that
//! lost its data.
//! A [`LineMutation`] breaks a rule of the model, never these.
//!
//! # What is modelled
//!
//! - **A caller** waits for one lease.
//!   Its place is its number, and callers begin in any order: a caller may come later than one that is behind it in line.
//! - **An acquire** takes any time, or never arrives.
//!   The caller hears the answer at once, or never counts it.
//! - **A message** takes any time, or never arrives.
//!   It counts if the caller has not asked again since.
//! - **A caller asks again** at any moment, as a fresh owner at the same place.
//!   What it has as the owner before is released behind the new acquire.
//!   Acquires that have not arrived by then are lost, as they are when the caller ends.
//! - **A lease** rests on the nodes whose votes were counted, or on a majority that has confirmed an extension since.
//!   A holder may ask a node that lacks its key for it, and is the first in line there.
//! - **A caller that is over** has released its lease, has given up, or was killed: its releases arrive at any time or never,
//!   and its entries may end at any node.
//! - **A key** ends at any moment on a node on which no lease and no attempt of its owner rests.
//! - **A crash** is the loss of all that a node knows, at any moment.
//!   A node in quarantine grants as any other, but this is no vote; it gives nothing to callers in line.
//!
//! # What is assumed
//!
//! - A key lasts as long as the leases and attempts that rest on it.
//!   An attempt rests on a node that has given it the key as soon as it is given, before the caller hears of it: its window
//!   began before. [`LineMutation::WindowFromTheMessage`] shows that this is needed.
//! - A quarantine lasts until no lease and no attempt rests on what the node has forgotten.
//!
//! # What is not modelled
//!
//! - Readers, transactions, healings and late requests of earlier owners, which the check of [leases](crate::leases) has.
//! - Callers that are not in line: they may take a free key before those that wait.
//! - A caller that rechecks: that changes no key of another owner, and only prolongs its own, which here may last for any
//!   time.
//! - A line that is full, and clients that hear no messages.
//! - Tokens with more than two callers, and tokens in worlds in which callers ask again without end.

mod broken;
mod check;
mod mutation;
mod node;
mod rules;
mod state;
mod step;
mod way;

pub use self::{check::LineCheck, mutation::LineMutation, rules::LineCounts};
