//! Operations on jobs, on the wire; `script/node.lua` says what they mean.

use std::time::Duration;

use deadpool_redis::redis::Value;
use redlock_proto::{JobEntry, JobVerb, Keyspace, NoClaim, NodeKey, Reply, Tick};

use super::{
    codes,
    encoded::Encoded,
    values::{counted, millis, refusal, text},
};

/// Adds the keys of an operation, in the order in which the script expects them.
pub(super) fn add_keys(keyspace: &Keyspace, verb: &JobVerb, job: &NodeKey, to: &mut Encoded) {
    match verb {
        JobVerb::Claim { lock, owner, .. } => {
            to.push_key(keyspace, lock);
            to.push_tombstone(keyspace, **owner);
            to.push_key(keyspace, job);
            to.push_own_key(keyspace.horizon());
        }
        JobVerb::Commit { lock, .. } | JobVerb::Read { lock } => {
            to.push_key(keyspace, lock);
            to.push_key(keyspace, job);
        }
        JobVerb::Record { .. } | JobVerb::Withdraw { .. } => to.push_key(keyspace, job),
    }
}

pub(super) fn operation(verb: &JobVerb, to: &mut Encoded) {
    match verb {
        JobVerb::Claim {
            owner,
            ttl,
            proposal,
            series,
            tick,
            attempt,
            window,
            ..
        } => {
            to.args.push("claim");
            to.push_owner(**owner);
            to.args
                .push_number(millis(*ttl).max(1))
                .push_counter(*proposal)
                .push(run(*tick, *attempt))
                .push_number(millis(window.early()))
                .push_number(millis(window.start_within()));
            to.push_series(*series);
        }
        JobVerb::Commit {
            owner, ttl, entry, ..
        } => {
            to.args.push("commit");
            to.push_owner(**owner);
            to.args
                .push_number(millis(*ttl).max(1))
                .push_counter(entry.token)
                .push(run(entry.tick, entry.attempt))
                .push(&*entry.text);
            to.push_series(entry.series);
        }
        JobVerb::Record { entry, .. } | JobVerb::Withdraw { entry, .. } => {
            let is_record = matches!(verb, JobVerb::Record { .. });
            to.args
                .push(if is_record { "record" } else { "withdraw" })
                .push(run(entry.tick, entry.attempt))
                .push_counter(entry.token)
                .push(&*entry.text);
            to.push_series(entry.series);
        }
        JobVerb::Read { .. } => drop(to.args.push("read")),
    }
}

/// Returns a run as the script compares it.
fn run(tick: Tick, attempt: u8) -> String {
    format!("{:016} {attempt:02}", tick.as_millis())
}

/// Reads the reply to an operation; `None` if that is not what a node sends.
pub(super) fn reply(first: i64, second: Value, verb: &JobVerb) -> Option<Reply> {
    let ms = |value: &Value| match value {
        Value::Int(ms) => u64::try_from(*ms).ok().map(Duration::from_millis),
        _ => None,
    };
    Some(match (verb, first) {
        (JobVerb::Read { .. }, codes::OTHER_POLICY) => Reply::PolicyMismatch,
        (JobVerb::Read { .. }, free_in) => Reply::Runs {
            entries: entries(&text(second).ok()?)?,
            free_in: match free_in {
                codes::NEVER => None,
                ms => Some(Duration::from_millis(u64::try_from(ms).ok()?)),
            },
        },
        (JobVerb::Claim { .. }, codes::DONE) => claimed(&text(second).ok()?)?,
        (_, codes::DONE) => Reply::Done,
        (_, codes::PASSED) => {
            Reply::NoClaim(NoClaim::Passed(JobEntry::from_wire(&text(second).ok()?)?))
        }
        (_, codes::EARLY) => Reply::NoClaim(NoClaim::Early { by: ms(&second)? }),
        (_, codes::LATE) => Reply::NoClaim(NoClaim::Late { by: ms(&second)? }),
        (_, codes::FORGOTTEN) => Reply::NoClaim(NoClaim::Forgot),
        (_, code) => refusal(code, counted(second)?)?,
    })
}

/// Reads the counter, and the newest run if there is one.
fn claimed(text: &str) -> Option<Reply> {
    let (counter, last) = match text.split_once(' ') {
        None => (text, None),
        Some((counter, last)) => (counter, Some(JobEntry::from_wire(last)?)),
    };
    let counter = counter.parse().ok()?;
    Some(Reply::Claimed { counter, last })
}

/// Reads the runs, line by line.
fn entries(text: &str) -> Option<Vec<JobEntry>> {
    text.lines().map(JobEntry::from_wire).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const READ: fn() -> JobVerb = || JobVerb::Read { lock: "l".into() };

    fn bulk(text: &str) -> Value {
        Value::BulkString(text.as_bytes().to_vec())
    }

    fn record() -> JobVerb {
        let entry = JobEntry::from_wire(LINE).unwrap();
        let ttl = Duration::from_secs(1);
        JobVerb::Record { entry, ttl }
    }

    const LINE: &str = "t 0001795226400000 01 0000000000000077 a text";

    #[test]
    fn runs_are_lines() {
        let both = format!("{LINE}\nt 0001795226300000 01 0000000000000076 another");
        let Some(Reply::Runs { entries, free_in }) = reply(0, bulk(&both), &READ()) else {
            panic!("it can be read")
        };
        assert_eq!(entries.len(), 2);
        assert_eq!(Some(entries[0].tick), Tick::from_millis(1_795_226_400_000));
        assert_eq!((entries[1].token, &*entries[1].text), (76, "another"));
        assert_eq!(free_in, Some(Duration::ZERO));
        let never = reply(codes::NEVER, bulk(""), &READ());
        let expected = Reply::Runs {
            entries: vec![],
            free_in: None,
        };
        assert_eq!(never, Some(expected));
    }

    #[test]
    fn a_claim_comes_with_the_newest_run() {
        let expected = |last: Option<&str>| Reply::Claimed {
            counter: 78,
            last: last.and_then(JobEntry::from_wire),
        };
        assert_eq!(claimed("0000000000000078"), Some(expected(None)));
        let both = format!("0000000000000078 {LINE}");
        assert_eq!(claimed(&both), Some(expected(Some(LINE))));
    }

    #[test]
    fn answers_that_make_no_sense_are_refused() {
        assert_eq!(reply(0, bulk("0001 x"), &READ()), None);
        assert_eq!(reply(codes::LATE, bulk("x"), &record()), None);
        assert_eq!(reply(codes::PASSED, bulk("x"), &record()), None);
        assert_eq!(reply(codes::OTHER_SLOTS, Value::Int(0), &record()), None);
        assert_eq!(reply(codes::EARLY, Value::Int(-1), &record()), None);
        assert_eq!(claimed("x"), None);
        assert_eq!(claimed("1 x"), None);
    }
}
