//! The protocol in a simulated world: many clients and nodes, and everything that can go wrong between them.
//!
//! A world follows from its seed.
//! Its clients are [`redlock_proto::Client`] and its nodes [`redlock_proto::Store`], the same code that runs in
//! production; its clocks run fast and slow, its network delays, cuts, repeats and holds back, its nodes crash,
//! forget and stand still, and so do its clients.
//! A minute is enough for tens of thousands of worlds, and each that goes wrong can be run again, exactly.
//!
//! # The story
//!
//! [`run`] makes a world of a seed and a [`Plan`], and lets it go wrong for some seconds of its time.
//! Then everything is repaired, and what was broken must mend: nodes vote again, keys that were given up
//! are gone, somebody acquires every key, and clients that are closed come to rest.
//! [`Campaign`] does so with many seeds.
//!
//! Some worlds are odd besides: operations of a call fail while others succeed, a node stands still in the middle of a
//! call, rates of clocks change on the way, clients stand still for minutes or see to their timers before they read
//! what has come, the clock of a node jumps by seconds, nodes that know the newest tokens are lost or out of reach, an
//! address leads to the server of another over a connection that stands, or there are twice as many clients and keys.
//!
//! Whatever happens is told to a [`Checker`], which knows nothing of how leases are won and looks for
//! each [`Violation`] of what was promised.
//! It takes a history from anywhere: an [`Event`] is plain data with a [`Moment`] of true time.
//!
//! # What is checked
//!
//! | what must never happen | how it would be called |
//! |---|---|
//! | two clients believe in leases on one key at once | [`Violation::Overlap`] |
//! | a holder believes in a lease for longer than a majority keeps its key | [`Violation::Unbacked`] |
//! | a lease is handed out when it has ended already | [`Violation::Stillborn`] |
//! | a holder is not told in time that its lease has ended | [`Violation::LateLoss`] |
//! | a key does not rest after a lease that was not released | [`Violation::NoRest`] |
//! | a later lease has a smaller fencing token | [`Violation::TokenOrder`] |
//! | a lease is extended after a newer one was handed out | [`Violation::StaleExtension`] |
//! | a lease is extended after it has ended | [`Violation::Revived`] |
//! | a node votes within `max_ttl` of a loss of data | [`Violation::EarlyVote`] |
//! | a node is given a key again without a majority that confirmed the lease | [`Violation::UnconfirmedHeal`] |
//! | a key is changed for somebody who does not have it | [`Violation::ForeignKey`] |
//! | a late request takes a key for an owner that is gone | [`Violation::Resurrected`] |
//! | a key is given up, and a node that may have it is not told | [`Violation::Forgotten`] |
//! | a key that was given up stays | [`Violation::KeyLeft`] |
//! | a wait does not end | [`Violation::Unanswered`] |
//! | nobody acquires a key that nothing keeps them from | [`Violation::Starved`] |
//! | a client that was closed believes that something is under way | [`Violation::Leak`] |
//! | callers of one process overtake each other, or get a lease that they did not ask for, that is hardly valid or that is extended while nobody holds it | [`Violation::OutOfTurn`] |
//! | attempts follow each other without a pause | [`Violation::Spins`] |
//! | a tick of a job is started twice | [`Violation::StartedAgain`] |
//! | a tick is started after a later one | [`Violation::StartedAfter`] |
//! | a tick is claimed and started after a later one | [`Violation::Overtaken`] |
//! | a tick is started too early or too late by the nodes' clocks | [`Violation::Untimely`] |
//! | a tick is started after a run that was cut short and is not settled, by somebody who wants none such | [`Violation::FollowsCutShort`] |
//! | a tick is refused because of one that nobody has claimed | [`Violation::NeverClaimed`] |
//! | a tick is not started, and nobody was told so | [`Violation::TickLost`] |
//! | a tick is started, and forgotten though nodes keep their data | [`Violation::NotRemembered`] |
//! | a tick is not won though nothing is in the way | [`Violation::Unreasoned`] |
//! | a job's status is older than what a majority knew | [`Violation::StatusBehind`] |
//! | a run is said to have ended as it did not | [`Violation::FalseRecord`] |
//! | a job's lock is said to be free while it is held | [`Violation::FalselyFree`] |
//! | so much happens that the world does not end | [`Violation::Endless`] |
//! | a client or a node panics | [`Violation::Panics`] |
//!
//! `docs/safety.md` of the repository says which step of which proof each of them belongs to.

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
