//! The Redlock protocol, pure and deterministic.
//!
//! This crate reads no clock, opens no socket, draws no random number and has no `async`.
//! Time and randomness are arguments: the same inputs give the same outputs, so everything that can
//! be wrong about the protocol is wrong here and is found in microseconds.
//! `redlock-core` is the shell around it: it owns sockets, timers and tasks, and decides nothing.
//!
//! # The story
//!
//! A lock is a *lease* over N independent *nodes*.
//! An [`Attempt`] asks every node at once, or a majority first ([`FanOut`]), and is decided as soon as a strict majority
//! ([`Quorum::majority`]) has granted it, or no longer can.
//! A granted attempt becomes a [`LeaseState`]: the lease is valid up to a deadline that counts from before the first
//! request was sent ([`Timing::deadline`]).
//! Only a confirmed [`Extension`] moves that deadline, and only later.
//! An attempt that fails frees what it took at once, and its caller waits in line at the nodes: one that frees the key
//! gives it to the first caller in the same step.
//! Where the caller may not wait there, another attempt with a fresh [`OwnerId`] follows, after a random delay that
//! [`RetryPolicy`] chooses.
//! A [`Release`] frees the lease on every node that may hold it.
//!
//! A claim of a scheduled tick is an acquisition that nodes grant by their own clocks, and only of ticks after
//! the newest one that they remember; it is won once a majority remembers it ([`Client::claim`]).
//!
//! A node carries a [`Request`] out in one of three ways: by the script that real servers run, by a transaction of their
//! own commands for plain requests, or as [`Store`], the model that in-memory nodes run.
//! Tests compare them.
//!
//! # Where the rules come from
//!
//! The algorithm is the one described in the Redis documentation ("Distributed Locks with Redis", the Redlock
//! algorithm).
//! The deadline is taken from the client's own clock before the first byte, as Gray and Cheriton's *Leases* (1989) ask.
//! Clean-up follows wherever a node is not known to have refused.
//!
//! # Assumptions
//!
//! Exclusion rests on the rates of clocks ([`Timing::drift`]).
//! It rests on nodes whose wall clocks are not stepped forward and which lose no single keys while they vote.
//! It rests on clients that agree about all of these.
//! `docs/safety.md` of the repository states each promise with its assumptions, and has the argument and its tests.

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
    client::{
        Acquire, Ask, Backlog, Client, ClientConfig, Effect, Entropy, FanOut, Forgot, JobRecord,
        JobState, Majority, NotAfter, NotClaimed, NotExtended, NotReleased, Notice, Now, TickClaim,
    },
    key::{
        CountedKey, HolderLabel, InvalidKeySet, InvalidLabel, KeySet, LockMode, NodeKey, OwnerId,
        Printable, Shard, SlotCount,
    },
    lease::{Fairness, LeaseAction, LeaseState, LeftOver, Loss},
    link::{Call, HELLO, Link, LinkConfig, LinkEvent, Op},
    local::{Departure, LeaseTerms, LocalQueue, NoPlace, OpenLease, ParkedLease, Ticket},
    membership::{
        ClockReading, Clocks, Counters, Floor, KeyVerdict, NodeAnswer, NotAVote, Quorum, Survey,
    },
    naming::{Confirms, Hearing, InformantId, Judgement, Pair, Roll, Shortfall, Statement, Term},
    node::{
        Answer, ClusterVote, Done, Gift, GiveBack, InLine, Keyspace, LineCaller, LinePlace, Lock,
        Look, Mark, MarkState, NodeOutcome, NodeVerb, Quarantine, Reply, Request, RequestError,
        RunId, ServerInfo, Standing, Store, Transaction, Unfit, Verb, last_of_block, slot_of,
    },
    round::{
        Attempt, AttemptVerdict, Ballot, Extending, Extension, ExtensionVerdict, Failure,
        FailureKind, Grant, Release, ReleaseVerdict, Releasing, RetryDecision, RetryPolicy, Rule,
        Vote, Votes, Winning,
    },
    slab::{Places, Slab},
    tick::{
        JobEntry, JobVerb, NoClaim, Note, RunRecord, RunState, Series, Tick, Window, Word, ledger,
    },
    time::{Instant, NodeTime, Rounded, Timing},
    token::{
        Fence, FencingToken, InvalidToken, Settled, StaleToken, TokenBlock, next_counter, settle,
    },
};
