//! The protocol of `redlock-core`: pure, deterministic, and an internal part of it.
//!
//! **Services use [`redlock-core`](https://docs.rs/redlock-core), `redlock-tower` or `redlock-cron`.**
//! This crate has no interface of its own that stays: it changes with `redlock-core`, which re-exports the few types that
//! users meet.
//! This page lists these types only; the other items are for `redlock-core`, the simulation and the model.
//!
//! A node of your own, by [`redlock_core::node::Node`](https://docs.rs/redlock-core/latest/redlock_core/node/),
//! gets [`Request`]s and returns an [`Answer`] with a [`Reply`] to each.
//! [`Store`] executes all of them, as the nodes in memory do.
//!
//! The crate reads no clock, opens no socket, draws no random number and has no `async`.
//! Time and randomness are arguments: the same inputs give the same outputs.
//! So the simulation runs the code that production runs.
//!
//! The algorithm is the one in the Redis documentation ("Distributed Locks with Redis", the Redlock algorithm).
//! The deadline is taken from the client's own clock before the first byte, as Gray and Cheriton's *Leases* (1989)
//! ask.
//! `docs/safety.md` of the repository states each promise with its assumptions, and has the argument and its tests;
//! `ARCHITECTURE.md` follows an acquire through the parts.

mod client;
mod key;
mod lease;
mod link;
mod local;
mod membership;
mod naming;
mod node;
mod round;
mod slab;
mod tick;
mod time;
mod token;

pub use self::{
    client::{JobRecord, JobState},
    key::{HolderLabel, InvalidLabel, NodeKey},
    lease::Fairness,
    node::{Answer, Gift, Keyspace, Reply, Request, RunId, Standing, Store},
    tick::{Note, RunRecord, RunState, Series, Tick, Word},
    time::{NodeTime, Rounded},
    token::{Fence, FencingToken, InvalidToken, StaleToken},
};
// For the shell, the simulation and the model.
#[doc(hidden)]
pub use self::{
    client::{
        Acquire, Ask, Backlog, Client, ClientConfig, Effect, Entropy, FanOut, Forgot, Majority,
        NotAfter, NotClaimed, NotExtended, NotReleased, Notice, Now, TickClaim,
    },
    key::{CountedKey, InvalidKeySet, KeySet, LockMode, OwnerId, OwnerSecret, Shard, SlotCount},
    lease::{LeaseAction, LeaseState, LeftOver, Loss},
    link::{Call, HELLO, Link, LinkConfig, LinkEvent},
    local::{Departure, LeaseTerms, LocalQueue, NoPlace, OpenLease, ParkedLease, Ticket},
    membership::{
        ClockReading, Clocks, Counters, Floor, KeyVerdict, NodeAnswer, NotAVote, Quorum, Survey,
    },
    naming::{
        Confirms, Hearing, InformantId, Judgement, NamedMark, Pair, Roll, Shortfall, Statement,
    },
    node::{
        Done, GiveBack, InLine, LineCaller, LinePlace, Lock, Look, Mark, MarkState, NodeOutcome,
        NodeVerb, Quarantine, RequestError, ServerInfo, Transaction, Unfit, Verb, last_of_block,
    },
    round::{
        Attempt, AttemptVerdict, Ballot, Extending, Extension, ExtensionVerdict, Failure,
        FailureKind, Grant, Release, ReleaseVerdict, Releasing, RetryDecision, RetryPolicy, Rule,
        Vote, Votes, Winning,
    },
    slab::{Slab, SlabMap},
    tick::{JobEntry, JobVerb, NoClaim, Window, ledger},
    time::{Instant, Timing},
    token::{Settled, TokenBlock, next_counter, settle},
};
