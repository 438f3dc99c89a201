//! An exhaustive check of claims in small worlds: that no tick starts twice.
//!
//! A [`TickCheck`] explores every order in which claims and commits arrive, locks expire, clocks go on, nodes lose
//! their data, are read and told to vote again, in a world of three nodes and a few claimants.
//!
//! # What is shared with the protocol
//!
//! What a node does with a claim, a commit and an opening is what `redlock-proto`'s `Store` does with it: it is
//! asked for every state of a node that comes up.
//! Whether votes are a majority is decided by `Votes`, and whether confirmations are one by `Extension`.
//! A [`TickMutation`] breaks a rule of the model, or what it assumes, never these.
//!
//! # What is modelled
//!
//! - **A claimant** makes one claim, of any of the ticks.
//!   Its requests take any time, overtake each other, or never arrive, also after it has started or lost interest.
//!   It may settle with any majority of its votes, and starts once a majority of these has confirmed its commit,
//!   in whichever rounds.
//!   A vote that comes later may join them.
//!   It may give up at any moment before it starts, and then tells nodes to forget its tick, as often as it likes and
//!   also while its requests are on their way.
//!   A replica that claims again is another claimant.
//! - **A lock** of anybody on any node may expire at any moment; a release is the same.
//!   So leases may overlap here, and nothing is said about the order of starts.
//! - **A clock** of a node goes on at any moment, up to one step further than those behind it.
//!   It may be astray: then it shows its least, and agrees with no other clock, so its node's grants are no votes.
//! - **A crash** is the loss of all that a node knows, at any moment.
//!   It takes no requests with it.
//! - **A node in quarantine** grants and remembers as any other, but these are no votes.
//!   A client reads its clock whenever that is right, and tells it to vote at any time after, also while the clock is
//!   astray.
//!
//! # What is assumed
//!
//! - A clock that is right never shows less than it did: that is A5, and more than the protocol asks for, whose
//!   quarantine bears a clock that is set back by as much.
//!   [`TickMutation::ClockSetBack`] shows that it cannot do without.
//! - All claimants have the same `early`, of one step: that is A6, and [`TickMutation::EarlyDiffers`] breaks it.
//! - Windows never close.

mod check;
mod mutation;
mod node;
mod rules;
mod state;
mod step;

pub use self::{check::TickCheck, mutation::TickMutation, rules::TickCounts};
