//! Calls of which some operations fail, as they do on a node whose memory is full or whose disk cannot be written.

use std::sync::Arc;

use redlock_proto::{Answer, JobVerb, Keyspace, NodeTime, NodeVerb, Request, Store};

use crate::{fault::Failing, random::Random};

impl Failing {
    /// Returns whether an operation fails.
    pub(super) fn concerns(self, request: &Request, random: &mut Random) -> bool {
        let reads = matches!(
            request,
            Request::Node(NodeVerb::Look | NodeVerb::Inspect | NodeVerb::Survey)
        );
        match self {
            Self::Some => !reads && random.chance(300),
            Self::Growth => !reads && (!request.is_release() || is_record(request)),
            Self::All => !reads,
        }
    }
}

/// Returns whether a request stores the end of a run, which may take more room than the run without it.
const fn is_record(request: &Request) -> bool {
    matches!(
        request,
        Request::Job {
            verb: JobVerb::Record { .. },
            ..
        }
    )
}

/// Returns what a node does with a call if the operations for which `fails` is true fail and change nothing.
pub(super) fn call_but(
    store: &mut Store,
    keyspace: &Keyspace,
    requests: &[Request],
    fails: impl FnMut(&Request) -> bool,
    time: NodeTime,
) -> Answer {
    let failed: Vec<bool> = requests.iter().map(fails).collect();
    let others = requests.iter().zip(&failed).filter(|(_, failed)| !**failed);
    let mut others: Vec<Request> = others.map(|(request, _)| request.clone()).collect();
    // A node looks where it stands unless it is asked for nothing but to let keys go.
    let looks = !requests.iter().all(Request::is_release);
    if looks {
        others.push(Request::Node(NodeVerb::Look));
    }
    let (standing, replies) = if others.is_empty() {
        (None, Vec::new())
    } else {
        let answer = store.call(keyspace, &others, time);
        (answer.standing, answer.replies)
    };
    let mut replies = replies.into_iter();
    let reason: Arc<str> = "the operation failed".into();
    let replies = failed.into_iter().map(|failed| {
        if failed {
            Err(Arc::clone(&reason))
        } else {
            replies.next().unwrap_or_else(|| Err(Arc::clone(&reason)))
        }
    });
    let replies = replies.collect();
    Answer { standing, replies }
}
