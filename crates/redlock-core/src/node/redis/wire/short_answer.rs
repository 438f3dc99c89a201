//! The short answer of a function: all was done as it was asked.

use std::str;

use redlock_proto::{MarkState, NodeTime, RunId, Standing, Verb};

use crate::node::{Answer, Reply, Request};

/// Reads the short answer to a call with these requests; `None` if that is not what a function sends.
///
/// It says where the node stands, unless all requests are releases, which do not look at the mark.
pub(in super::super) fn done(said: &[u8], requests: &[Request]) -> Option<Answer> {
    let standing = if requests.iter().all(Request::is_release) {
        said.is_empty().then_some(None)?
    } else {
        Some(voting(said)?)
    };
    let replies = requests.iter().map(|request| reply(request).map(Ok));
    let replies = replies.collect::<Option<_>>()?;
    Some(Answer { standing, replies })
}

/// Reads where a node stands that votes: its time in seconds, the microseconds behind it, and its run.
fn voting(said: &[u8]) -> Option<Standing> {
    let (seconds, rest) = str::from_utf8(said).ok()?.split_once(' ')?;
    let (micros, run) = rest.split_once(' ')?;
    let (seconds, micros) = (seconds.parse::<u64>().ok()?, micros.parse().ok()?);
    let time = seconds.checked_mul(1_000_000)?.checked_add(micros)?;
    Some(Standing {
        state: MarkState::Voting,
        time: NodeTime::from_micros(time),
        run: RunId::from(run),
    })
}

/// Returns the reply that says that a request was done; `None` if no function does such requests.
fn reply(request: &Request) -> Option<Reply> {
    match request {
        Request::Lock { verb, .. } => match *verb {
            // A token that was taken already would have been left to the script.
            Verb::Acquire { proposal, .. } => Some(Reply::Taken { counter: proposal }),
            // If a caller was refused the key, the node sends a longer answer.
            Verb::Extend {
                write_back: None, ..
            } => Some(Reply::Undisputed),
            Verb::Release { .. } => Some(Reply::Done),
            Verb::Extend { .. } | Verb::Heal { .. } | Verb::Tombstone { .. } => None,
        },
        Request::Node(_) | Request::Job { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use redlock_proto::NodeVerb;

    use super::{
        super::super::fixtures::{RELEASE, TTL, acquire, extend, lock},
        *,
    };

    #[test]
    fn each_request_was_done_with_what_it_proposed() {
        let requests = [acquire(7), lock(RELEASE), extend(None), acquire(40)];
        let answer = done(b"12 345 0f3a", &requests).unwrap();
        let taken = |counter| Ok(Reply::Taken { counter });
        let expected = [taken(7), Ok(Reply::Done), Ok(Reply::Undisputed), taken(40)];
        assert_eq!(answer.replies, expected);
        let standing = answer.standing.unwrap();
        assert_eq!(standing.state, MarkState::Voting);
        assert_eq!(standing.time, NodeTime::from_micros(12_000_345));
        assert_eq!(standing.run.as_str(), "0f3a");
    }

    #[test]
    fn who_only_lets_go_hears_nothing_of_the_mark() {
        let answer = done(b"", &[lock(RELEASE)]).unwrap();
        assert_eq!(answer.standing, None);
        assert_eq!(answer.replies, [Ok(Reply::Done)]);
        assert_eq!(done(b"12 345 0f3a", &[lock(RELEASE)]), None);
        assert_eq!(done(b"", &[acquire(1)]), None, "it must say that it votes");
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let most = format!("{} 0 0f3a", u64::MAX);
        for said in ["12", "12 345", "12 x 0f3a", "-1 345 0f3a", &most] {
            assert_eq!(done(said.as_bytes(), &[acquire(1)]), None, "{said}");
        }
        assert_eq!(done(b"12 345 \xff", &[acquire(1)]), None);
    }

    #[test]
    fn what_no_function_does_is_never_done() {
        let tombstone = lock(Verb::Tombstone { ttl: TTL });
        let heal = lock(Verb::Heal {
            ttl: TTL,
            counter: 1,
        });
        for request in [tombstone, heal, Request::Node(NodeVerb::Look)] {
            let requests = [acquire(1), request];
            assert_eq!(done(b"12 345 0f3a", &requests), None, "{requests:?}");
        }
    }
}
