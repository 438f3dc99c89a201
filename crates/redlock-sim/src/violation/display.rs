//! Broken promises, in words.

use std::fmt;

use super::Violation;

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Overlap {
                key,
                earlier,
                later,
                until,
            } => write!(
                f,
                "two holders of key {key}: lease {later} while lease {earlier} is valid until {until}"
            ),
            Self::Stillborn { lease, until } => {
                write!(f, "lease {lease} was handed out, and had ended at {until}")
            }
            Self::LateLoss { lease, until } => write!(
                f,
                "the holder of lease {lease} was not told that it ended at {until}"
            ),
            Self::NoRest {
                key,
                earlier,
                later,
                until,
            } => write!(
                f,
                "key {key} had to rest after lease {earlier} until {until}, and lease {later} was handed out"
            ),
            Self::TokenOrder {
                key,
                lease,
                token,
                greatest,
            } => write!(
                f,
                "token {token} of lease {lease} on key {key} is not greater than {greatest}, an earlier lease's"
            ),
            Self::StartedAgain { job, tick } => {
                write!(f, "tick {tick} of job {job} was started twice")
            }
            Self::StartedAfter { job, tick, after } => {
                write!(f, "tick {tick} of job {job} was started after tick {after}")
            }
            Self::Overtaken { job, tick, after } => write!(
                f,
                "tick {tick} of job {job} was started after tick {after}, and claimed after it too"
            ),
            Self::Untimely { job, tick } => write!(
                f,
                "tick {tick} of job {job} was started, and too few nodes' clocks were in its window"
            ),
            Self::FollowsCutShort { job, tick, after } => write!(
                f,
                "tick {tick} of job {job} was started after that of tick {after}, which was cut short and is not settled"
            ),
            Self::NeverClaimed { job, watermark } => write!(
                f,
                "somebody was told that tick {watermark} of job {job} was claimed, and nobody has"
            ),
            Self::TickLost { job, tick } => write!(
                f,
                "nodes were asked to remember tick {tick} of job {job}, and nobody was told what became of it"
            ),
            Self::NotRemembered { job, tick } => write!(
                f,
                "tick {tick} of job {job} was started, and no majority remembers it"
            ),
            Self::FreedUntold { node, job, tick } => write!(
                f,
                "node {node} freed the lock of job {job}, and had not heard of the end of the run of tick {tick}"
            ),
            Self::StatusBehind {
                job,
                watermark,
                known,
            } => write!(
                f,
                "somebody was told of watermark {watermark} of job {job}, and a majority knew {known} before"
            ),
            Self::FalseRecord { job, tick } => write!(
                f,
                "it is remembered of a run of tick {tick} of job {job} that it ended as it did not"
            ),
            Self::FalselyFree { job, lease } => write!(
                f,
                "somebody was told that the lock of job {job} is free, and lease {lease} was valid all the time"
            ),
            Self::Unreasoned { job, tick } => write!(
                f,
                "tick {tick} of job {job} was not won, and nothing was in the way"
            ),
            Self::StaleExtension { key, lease, newer } => write!(
                f,
                "lease {lease} on key {key} was extended after lease {newer} had been handed out"
            ),
            Self::Revived { lease, until } => {
                write!(f, "lease {lease} was extended, and had ended at {until}")
            }
            Self::Unbacked {
                lease,
                until,
                promised,
            } => write!(
                f,
                "lease {lease} is believed in until {until}, and a majority keeps its key until {promised} only"
            ),
            Self::LostInVain { lease } => {
                write!(
                    f,
                    "lease {lease} was lost although a majority of the nodes had its key"
                )
            }
            Self::FailedInVain { client, key } => write!(
                f,
                "client {client} failed to acquire key {key} while a majority of the nodes was well"
            ),
            Self::OwnSlowness { client, what } => {
                write!(
                    f,
                    "{what} of client {client} failed because the client was slow, though all nodes were well"
                )
            }
            Self::FalselyContended { client } => write!(
                f,
                "client {client} was told that another holds a key that a majority had granted it"
            ),
            Self::LateAttempt { waiter } => {
                write!(f, "an attempt for waiter {waiter} began after the wait")
            }
            Self::Unanswered { waiter, due } => {
                write!(f, "waiter {waiter} had to be answered by {due}")
            }
            Self::EarlyVote { node, forgot } => write!(
                f,
                "node {node} votes, though it lost data at {forgot} and leases from before may be valid"
            ),
            Self::UnconfirmedHeal { node } => write!(
                f,
                "node {node} was given a key again without a majority that confirmed the lease"
            ),
            Self::ForeignKey { node, key, what } => write!(f, "key {key} on node {node}: {what}"),
            Self::Resurrected { node, key } => write!(
                f,
                "node {node} took key {key} for an owner that had been told to be gone"
            ),
            Self::Forgotten { node, key } => write!(
                f,
                "a client gave key {key} up and did not tell node {node}, which has it or may take it"
            ),
            Self::KeyLeft { node, key, due } => write!(
                f,
                "node {node} has key {key} of an owner that gave it up, and it was due to be gone at {due}"
            ),
            Self::Starved { key, due } => {
                write!(f, "nobody acquired key {key}, as somebody had to by {due}")
            }
            Self::Leak { client, requests } => write!(
                f,
                "client {client} was closed and does not come to rest; it believes {requests} requests to be under way"
            ),
            Self::OutOfTurn { client, key, what } => {
                write!(
                    f,
                    "among the callers of client {client} for key {key}, {what}"
                )
            }
            Self::Spins { waiter } => {
                write!(f, "waiter {waiter} is served by attempts without a pause")
            }
            Self::Endless => f.write_str("so much happens that the world does not end"),
            Self::Panics => f.write_str("a panic"),
        }
    }
}
