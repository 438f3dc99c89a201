//! A simulation of the protocol: many clients and nodes, and everything that can go wrong between them.
//!
//! A seed determines a world.
//! The clients of a world are [`redlock_proto::Client`] and its nodes are [`redlock_proto::Store`], the same code that
//! runs in production.
//! Its clocks run fast and slow.
//! Its network delays, cuts, repeats and holds back requests.
//! Its nodes crash, lose their data and stand still, and so do its clients.
//! A minute suffices for tens of thousands of worlds, and each world that goes wrong can be run again, exactly.
//!
//! For tests of your own service, the module `kit` has nodes and links that fail when a test tells them to; it needs the
//! feature `client`.
//!
//! # The course of a world
//!
//! [`run`] makes a world from a seed and a [`Plan`], and makes it fail for some seconds of its time.
//! Then everything is repaired, and the world must recover: nodes vote again, keys that were given up are gone, a
//! client acquires every key, and clients that are closed come to rest.
//! [`Campaign`] runs many seeds.
//!
//! Some worlds have further faults.
//! Operations of a call fail while others succeed.
//! A node stands still in the middle of a call.
//! Rates of clocks change.
//! Clients stand still for minutes, or run their timers before they read their replies.
//! The clock of a node jumps by seconds.
//! Nodes that know the newest tokens are lost or out of reach.
//! An address leads to the server of another address over an existing connection.
//! There are twice as many clients and keys.
//!
//! In the worlds of [`Plan::Named`], each node has two servers, and informants name one of them under an epoch, as
//! Sentinels and the nodes of a Cluster do.
//! Masters fail over and back, also to one that no informant has made a replica meanwhile.
//! Informants are cut off from each other and from clients, and lose their files.
//! Clients decide by [`redlock_proto::Hearing`] on which server they count.
//!
//! A [`Checker`] gets everything that happens.
//! It knows nothing of how leases are won, and reports each [`Violation`] of a promise.
//! It accepts a history from any source: an [`Event`] is plain data with a [`Moment`] of true time.
//!
//! # What is checked
//!
//! | what must never happen | violation |
//! |---|---|
//! | two clients believe in leases on one key at once | [`Violation::Overlap`] |
//! | a holder believes in a lease for longer than a majority keeps its key | [`Violation::Unbacked`] |
//! | a lease is handed out when it has already ended | [`Violation::Stillborn`] |
//! | a holder is not told in time that its lease has ended | [`Violation::LateLoss`] |
//! | a key does not rest after a lease that was not released | [`Violation::NoRest`] |
//! | a later lease has a smaller fencing token | [`Violation::TokenOrder`] |
//! | a lease is extended after a newer one was handed out | [`Violation::StaleExtension`] |
//! | a lease is extended after it has ended | [`Violation::Revived`] |
//! | a node votes within `max_ttl` of a loss of data | [`Violation::EarlyVote`] |
//! | a node is given a key again without a majority that confirmed the lease | [`Violation::UnconfirmedHeal`] |
//! | a key is changed for a client that does not have it | [`Violation::ForeignKey`] |
//! | a late request takes a key for an owner that is gone | [`Violation::Resurrected`] |
//! | a client gives up a key, and does not tell a node that may have it | [`Violation::Forgotten`] |
//! | a key that was given up stays | [`Violation::KeyLeft`] |
//! | a lease is lost although a majority of the nodes has its key | [`Violation::LostInVain`] |
//! | an acquire fails while a majority of the nodes is well and no other holder is in the way | [`Violation::FailedInVain`] |
//! | an acquire or a lease fails because its client gets its CPU in slices, though all nodes are well | [`Violation::OwnSlowness`] |
//! | an acquire fails as contended although a majority has granted it | [`Violation::FalselyContended`] |
//! | another attempt begins after the wait | [`Violation::LateAttempt`] |
//! | a wait does not end | [`Violation::Unanswered`] |
//! | no client acquires a key although nothing prevents it | [`Violation::Starved`] |
//! | a client that was closed believes that a request is under way | [`Violation::Leak`] |
//! | callers of one process overtake each other, or get a lease that they did not ask for, that is hardly valid or that is extended while no caller holds it | [`Violation::OutOfTurn`] |
//! | attempts follow each other without a pause | [`Violation::Spins`] |
//! | a tick of a job is started twice | [`Violation::StartedAgain`] |
//! | a tick is started after a later one | [`Violation::StartedAfter`] |
//! | a tick is claimed and started after a later one | [`Violation::Overtaken`] |
//! | a tick is started too early or too late by the nodes' clocks | [`Violation::Untimely`] |
//! | a tick is started after a run that was cut short and is not settled, by a replica that asked to refuse that | [`Violation::FollowsCutShort`] |
//! | a tick is refused because of a tick that no replica has claimed | [`Violation::NeverClaimed`] |
//! | a tick is not started, and no replica was told so | [`Violation::TickLost`] |
//! | a tick is started, and forgotten although the nodes keep their data | [`Violation::NotRemembered`] |
//! | a node frees the lock of a run that was released, and does not know its end | [`Violation::FreedUntold`] |
//! | a tick is not won although nothing prevents it | [`Violation::Unreasoned`] |
//! | a job's status is older than the knowledge of a majority | [`Violation::StatusBehind`] |
//! | a run is reported to have ended in a way in which it did not | [`Violation::FalseRecord`] |
//! | a job's lock is reported as free while it is held | [`Violation::FalselyFree`] |
//! | the world has too many events to end | [`Violation::Endless`] |
//! | a client or a node panics | [`Violation::Panics`] |
//!
//! `docs/safety.md` of the repository lists the step of the argument to which each of them belongs.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod campaign;
mod checker;
mod clock;
mod counters;
mod fault;
mod history;
#[cfg(feature = "client")]
pub mod kit;
mod moment;
mod plan;
mod random;
mod setup;
mod trace;
mod violation;
mod world;

pub use self::{
    campaign::{Campaign, CampaignReport, Finding},
    checker::{Checker, Rules},
    counters::Counters,
    history::Event,
    moment::Moment,
    plan::{Plan, UnknownPlan},
    violation::Violation,
    world::{Report, run},
};
