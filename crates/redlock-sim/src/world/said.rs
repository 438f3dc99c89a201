//! The answers about leases, for those that look over the client's shoulder.

use redlock_proto::{Answer, MarkState, NodeVerb, Reply, Request, Standing, Verb};

/// What a node said to a request, if that was one of extension.
#[derive(Clone, Copy, Debug)]
pub(super) struct Said {
    pub(super) owner: u32,
    /// The server that said so.
    pub(super) server: usize,
    pub(super) confirmed: bool,
    pub(super) missing: bool,
    pub(super) is_there: bool,
}

/// Returns what a server's answer says of each request whose result a client is told, if it was asked to extend.
pub(super) fn said(
    server: usize,
    requests: &[Request],
    owners: &[Option<u32>],
    answer: &Answer,
) -> Vec<Option<Said>> {
    let mut votes = is_vote(answer.standing.as_ref());
    let asked = requests.iter().zip(owners).zip(&answer.replies);
    // A release that fails is repeated, as is what is unclear, and nothing is told of it.
    let told = asked.filter(|((request, _), reply)| match reply {
        Ok(reply) => *reply != Reply::Unclear,
        Err(_) => !request.is_release(),
    });
    let said = told.map(|((request, owner), reply)| {
        let reply = reply.as_ref().ok()?;
        // A node that is told to vote does from there on, in the same call already.
        votes |= opens(request) && reply.is_done();
        let is_extension = matches!(
            request,
            Request::Lock {
                verb: Verb::Extend { .. },
                ..
            }
        );
        let owner = owner.filter(|_| is_extension)?;
        Some(Said {
            owner,
            server,
            confirmed: votes && reply.is_done(),
            missing: *reply == Reply::Missing,
            is_there: reply.is_done(),
        })
    });
    said.collect()
}

/// Returns whether a node is told to vote.
pub(super) fn opens(request: &Request) -> bool {
    matches!(request, Request::Node(NodeVerb::Open { .. }))
}

/// Returns whether what a node grants is a vote, by where it stands.
pub(super) fn is_vote(standing: Option<&Standing>) -> bool {
    standing.is_some_and(|standing| standing.state == MarkState::Voting)
}

#[cfg(test)]
mod tests {
    use super::*;
    use redlock_proto::{Lock, LockMode, NodeTime, OwnerId};
    use std::time::Duration;

    /// The checker must know of it as the client does.
    #[test]
    fn a_node_that_is_opened_in_a_call_confirms_in_the_same_call() {
        let open = Request::Node(NodeVerb::Open {
            floor: 0,
            since: NodeTime::default(),
            horizon: None,
        });
        let extend = Request::Lock {
            verb: Verb::Extend {
                ttl: Duration::from_secs(1),
                write_back: None,
            },
            lock: Lock {
                mode: LockMode::Exclusive,
                keys: "a".into(),
                owner: OwnerId::from_random([1; 16]),
            }
            .into(),
        };
        let confirmed = |requests: [&Request; 2]| {
            let owner_of =
                |request: &&Request| matches!(request, Request::Lock { .. }).then_some(7);
            let owners: Vec<_> = requests.iter().map(owner_of).collect();
            let answer = Answer {
                standing: Some(Standing {
                    state: MarkState::Aged {
                        since: NodeTime::default(),
                    },
                    time: NodeTime::default(),
                    run: "a".into(),
                }),
                replies: vec![Ok(Reply::Done); 2],
            };
            let requests = requests.map(Clone::clone);
            let said = said(0, &requests, &owners, &answer).into_iter().flatten();
            said.map(|said| said.confirmed).collect::<Vec<_>>()
        };
        assert_eq!(confirmed([&open, &extend]), [true]);
        assert_eq!(confirmed([&extend, &open]), [false]);
    }
}
