//! An exhaustive check of shared and exclusive leases in small worlds.
//!
//! It checks that no client has a key beside an exclusive holder, and that fencing tokens are in order.
//!
//! A [`LeaseCheck`] explores every order in which acquires, confirmations, extensions, healings and releases arrive, keys
//! end, writers share what they had alone, readers are upgraded, and nodes lose their data, in a world of three nodes and
//! a few clients.
//!
//! # What is checked
//!
//! - No client gets a lease while another has one, unless both share the key then.
//! - Of two leases of which one was acquired alone, the later one has the greater token.
//! - No client has the key alone between the shared lease of a reader and the exclusive one that upgrades it.
//! - A client that asks for the key after another has got its lease gets a greater token than that one, also if both
//!   share the key.
//!
//! # What is shared with the protocol
//!
//! What a node does with a request is what `redlock-proto`'s `Store` does with it: it is asked for every state of a
//! node that comes up.
//! Whether nodes are a majority is decided by `Votes`, what their counters come to by `settle`, and the floor of a node
//! that lost its data by `Survey`.
//! A [`LeaseMutation`] breaks a rule of the model, or what it assumes, never these.
//!
//! # What is modelled
//!
//! - **A client** has a [`Role`], and makes one attempt.
//!   It may settle with any majority of its votes, and has its lease once a majority has stored its token.
//!   It may give up, or lose its lease, at any moment.
//! - **Requests** take any time, overtake each other, or never arrive.
//!   Extensions, write-backs, healings and releases may arrive as often as they like, and also when the client has no
//!   lease any more; each may be answered or not.
//! - **A downgrade** comes at any moment of a lease that was acquired alone.
//!   From then on others may share the key, as its holder sees it.
//!   Nodes hear of it by whatever comes first, and extensions and healings of before it may still arrive at any time.
//! - **An upgrade** is the attempt of another client, over the shared lease of the reader before it.
//!   The reader's lease ends when the upgrade has its lease; an upgrade that has its lease later than that is given up.
//! - **A lease** rests on the nodes whose votes were counted, or on a majority that has confirmed a round of extension
//!   since.
//! - **A key** may end on any node on which no lease and no attempt of its owner rests.
//!   It does so when another client asks: before that, its end would make no difference.
//! - **A wish** of a writer that readers keep out ends at once: it can only refuse requests, and never for good.
//! - **A crash** is the loss of all that a node knows, at any moment.
//!   It takes no requests with it.
//! - **A node in quarantine** grants and confirms as any other, but these are no votes.
//!
//! # What is assumed
//!
//! - A key lasts as long as the leases and attempts that rest on it: this is what clocks are for.
//!   [`LeaseMutation::KeyEndsBeforeItsLease`] shows that it is needed.
//! - A quarantine lasts until no lease and no attempt rests on what the node has forgotten.
//!   [`LeaseMutation::QuarantineTooShort`] shows that it is needed.
//! - A survey reads all nodes in one step; the check of tokens reads them one by one.
//!
//! # What is not modelled
//!
//! - Tombstones, which refuse late requests whose client no longer waits for the grant.
//! - Sets of several keys, and more than one proposal.

mod check;
mod mutation;
mod node;
mod rules;
mod state;
mod step;

pub use self::{
    check::{LeaseCheck, Role},
    mutation::LeaseMutation,
    rules::LeaseCounts,
};
