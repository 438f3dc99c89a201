//! An exhaustive check of the decisions about one job's ticks above their claims: retries, backfills, missed ticks and
//! requests.
//!
//! A [`LedgerCheck`] explores every order in which replicas read the job's record, claim lines of it, run, crash and
//! record how their runs ended, in a world of up to three ticks and four replicas, each with one [`LedgerRole`].
//!
//! # What is checked
//!
//! - No tick runs again that has ended well, as far as the record tells that when a backfill is asked for.
//! - No tick has two runs at the same time.
//! - No tick is claimed after one whose run was cut short, unless that was run again or given up, or a backfill made it
//!   good: this is delivery at least once.
//! - Each tick that is passed was claimed, or is reported as missed, once.
//! - Requests for runs are started in order, and none is lost.
//!
//! # What is shared with the protocol
//!
//! The decisions are those of `redlock_proto::ledger`, which the job adapter runs as well: whether a run must be settled
//! before a later tick, the state of a tick's runs, which ticks of a backfill are done before its first claim, the step
//! toward its plan, whether a claimed tick of a backfill starts, and which requests are undecided.
//! A [`LedgerMutation`] leaves one of them out, or the reading before it; the first of them are rules of earlier versions.
//!
//! # What is modelled
//!
//! - **The record** has series of lines for the runs of ticks, for the ticks of backfills, and for requests.
//!   The series of backfills keeps three lines, one more than a backfill has ticks, and that of requests keeps two: each
//!   claim pushes an older line out.
//! - **A look** reads the whole record, and a later step claims by it: what is read may be outdated by then.
//!   What a replica reads under the job's lock cannot be, because every claim of the job's runs needs the lock.
//! - **A claim** of a line after the newest of its series is granted to one replica, in one step; the runs of a tick are
//!   lines of the series of ticks.
//!   The check of [claims](crate::ticks) shows that of ticks.
//! - **A run** ends well, fails, is lost with its lease, or crashes with its replica: then its line stays as claimed.
//!   A replica that crashed begins again and remembers nothing.
//! - **A schedule** claims any tick that is due, at any time after that; so ticks are missed in any pattern.
//!   It settles a run that was cut short before it claims a later tick.
//! - **A retry** looks at the newest tick that was claimed, and may find at any time that it is too late for another run.
//!   A tick has two runs, and is then given up.
//! - **A backfill** plans each range that was asked for, counts the ticks that are done, and claims the others one by one.
//! - **A request** is asked for while fewer than two others are undecided, and claimed by the first replica that comes.
//!
//! # What is assumed
//!
//! - The lock of the job is exclusive, and free as soon as its holder crashed.
//! - A replica reports the missed ticks that its claim passes, or crashes: both are one step here.
//! - At most one backfill follows another: the record forgets what more of them have pushed out.
//!
//! # What is not modelled
//!
//! - Overlap policies: each tick waits for the run before it, and each counts.
//! - Pauses, and backfills that run ticks again although they had ended well.
//! - A run of a backfill that was cut short is not started again; the operator asks again.

mod check;
mod mutation;
mod record;
mod rules;
mod state;
mod step;
mod world;

pub use self::{
    check::{LedgerCheck, LedgerRole},
    mutation::LedgerMutation,
    world::LedgerCounts,
};
