//! An exhaustive check of the order of fencing tokens in small worlds, of claims of ticks, of the ledger of a job, of
//! shared leases, of callers in line, and of a node whose server others name.
//!
//! A [`Check`] explores *every* order in which requests, replies, expiries, crashes and surveys can come in
//! a world of a few nodes and clients ([`Scope`]), and finds the shortest way to a [`Breach`] if there is
//! one.
//! What is wrong with a protocol of this kind shows in small worlds, but only in the oddest of orders, which
//! tests and simulations hardly ever meet.
//!
//! ```
//! use redlock_model::{Check, Mutation, Scope};
//!
//! // Three nodes of which one loses its memory, two clients, proposals 1 and 2.
//! let check = Check::new(Scope::new(3, 2, 1, 2).unwrap());
//! assert!(check.run().holds());
//!
//! // Without its floor, a node that lost its counters hands out a token again.
//! let report = check.mutation(Mutation::NoSeed).run();
//! assert_eq!(report.trace().unwrap().steps(), 10);
//! ```
//!
//! A [`TickCheck`] does so for claims, a [`LedgerCheck`] for retries, backfills and requests above them, a [`LeaseCheck`]
//! for leases that are had alone or shared, a [`LineCheck`] for callers that wait in line, and a [`NamedCheck`] for a node
//! whose server others name.
//! The pages of [ticks], [ledger], [leases], [lines] and [named] say how, and the rest of this one is about tokens.
//!
//! # What is checked
//!
//! - No two clients finish with the same token.
//! - A client that starts after another has finished gets a greater token than that one.
//!
//! Clients that overlap may get their tokens in either order.
//!
//! `docs/safety.md` of the repository has the theorems that this is a part of.
//!
//! # What is shared with the protocol
//!
//! Whatever `redlock-proto` decides is decided by `redlock-proto` here too, so that a bug in it is found:
//! what a grant makes of a counter (`next_counter`), whether votes and confirmations are a majority (`Quorum`,
//! `Votes`), what the counters of a majority come to (`settle`, `Settled`), and which floor a survey finds
//! (`Survey`, `Floor`).
//! A [`Mutation`] breaks a rule of the model, never these functions.
//!
//! # What is modelled
//!
//! Time is not: there are no clocks, and things happen in any order that these rules allow.
//!
//! - **Requests and replies** take any time, overtake those to other nodes, or never arrive; so attempts that ask only
//!   some of the nodes are among these.
//!   An acquire may arrive after its client has settled, finished or failed, and even after the node lost its
//!   memory and votes again.
//! - **A key** of any client on any node may expire at any moment, also while its client still counts on it.
//!   A release is the same.
//! - **A grant** is made if the node has no key; it raises the counter, and it is a vote if the node votes.
//! - **A client** makes one attempt, with any proposal from 1 up, the same for all nodes.
//!   It may settle at any time with any majority of its votes, or fail at any time.
//!   A process that makes several attempts is several clients.
//! - **A write-back** is sent to the nodes whose votes the client counted, and to those whose votes come later with
//!   a counter that is no greater than the token.
//!   It is stored and confirmed if the node still has the attempt's key, and counts if the node also votes.
//!   The client finishes once a majority has confirmed; that a vote came with the token already does not count
//!   as a confirmation.
//! - **A crash** is the loss of all that a node knows, at any moment, also in quarantine: its key, its
//!   counter, its floor and what was read on its behalf.
//!   It takes no requests with it.
//! - **A node in quarantine** grants keys and stores counters as any other, but these are no votes.
//! - **A survey** begins when the quarantine has ended.
//!   It reads the nodes one by one, at any time and in any order, each with whether it votes then: also nodes
//!   that do not vote, and the node itself.
//!   Once the floor is known the node may take it, and votes again.
//!
//! # What is assumed
//!
//! - When a node's quarantine ends, no undecided client counts a vote or a confirmation from before the node
//!   lost its memory.
//!   This is all that the model takes from clocks: the quarantine is longer than the longest lease, and
//!   nothing is counted after the deadline.
//!   It asks for less than the protocol gives: an attempt that has an answer from before may go on without it.
//! - A node does what is asked of it in one step, as a script does.
//! - At first all nodes vote, and their counters agree on 0.
//! - A survey ends with the node's memory: what was read before the last loss opens no node.
//!   The script must compare the run that the survey began with.
//!
//! # What is not modelled
//!
//! - Exclusion, which rests on clocks and is in the check of [leases]; and that anything happens at all, apart from the numbers of times that
//!   a [`Report`] has.
//! - A floor that fewer than a majority of voting nodes stand for (`Floor::Degraded`): there the clock must
//!   stand in. The model leaves such a node without a vote.
//! - A node that comes back with old data instead of none, or loses single keys.
//! - Two surveys on behalf of one node at a time; the model has the one that opens the node.
//! - Extensions after the token is known, which change no counter; the repair of lost keys; tokens reserved in
//!   blocks; shared leases, which have a [check](leases) of their own.
//! - Several resources that share a counter, which only raises it.
//! - The limit of counters at 2^53.
//!
//! # How it is kept small
//!
//! States that differ only in which client is which and which node is which are one state, and steps that
//! open no new possibility are left out: the modules `symmetry` and `pruning` say how.
//! Either can be turned off, and the tests compare what comes of it.
//! A state takes 16 bytes, and about 40 with all that is kept about it.

mod breach;
mod check;
mod clients;
mod explore;
mod layout;
pub mod leases;
pub mod ledger;
pub mod lines;
mod liveness;
mod mutation;
mod name;
pub mod named;
mod nodes;
mod protocol;
mod pruning;
mod report;
mod rules;
mod scope;
mod search;
mod seen;
mod state;
mod step;
mod store;
mod symmetry;
mod three_nodes;
pub mod ticks;
mod trace;
mod valid_scope;
mod variants;

pub use crate::{
    breach::Breach,
    check::Check,
    leases::{LeaseCheck, LeaseCounts, LeaseMutation, Role},
    ledger::{LedgerCheck, LedgerCounts, LedgerMutation, LedgerRole},
    lines::{LineCheck, LineCounts, LineMutation},
    mutation::Mutation,
    named::{NamedCheck, NamedCounts, NamedMutation, NamedRules, NamedWorld},
    report::{Report, Verdict},
    scope::Scope,
    search::TokenCounts,
    ticks::{TickCheck, TickCounts, TickMutation},
    trace::Trace,
    valid_scope::InvalidScope,
    variants::UnknownName,
};
