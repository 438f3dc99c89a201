//! The replies that leases and claims rest on.

use redlock_proto::{
    InLine, JobEntry, JobVerb, LinePlace, NodeTime, NodeVerb, Reply, Request, Series, Store, Tick,
    Verb,
};

use super::{EXTEND, RELEASE, TTL, acquire, ask, at, owner, request, voting};

const HEAL: Verb = Verb::Heal {
    ttl: TTL,
    counter: 1,
};
const TOMBSTONE: Verb = Verb::Tombstone { ttl: TTL };

/// An acquire of a caller of client 7, which waits in line.
fn in_line() -> Verb {
    let entry = InLine {
        place: LinePlace {
            came: NodeTime::from_micros(1),
            client: 7,
        },
        round: 1,
        grant: TTL,
        stay: TTL,
        at_once: true,
        signs: false,
    };
    match acquire(1) {
        Verb::Acquire {
            ttl,
            proposal,
            block,
            wish,
            ..
        } => Verb::Acquire {
            ttl,
            proposal,
            block,
            wish,
            line: Some(entry),
        },
        other => other,
    }
}

fn job(verb: JobVerb) -> Request {
    Request::Job {
        verb,
        job: "job".into(),
    }
}

/// Returns the node's reply, and whether a lease may rest on it.
fn asked(store: &mut Store, verb: Verb, by: u8) -> (Reply, bool) {
    let request = request(verb, by);
    let reply = ask(store, request.clone(), at(1_000));
    let grants = reply.grants(&request);
    (reply, grants)
}

// Shows: R8.3.
#[test]
fn a_release_that_gives_the_key_to_a_caller_in_line_is_a_grant() {
    for release in [RELEASE, TOMBSTONE] {
        let mut store = voting();
        assert!(asked(&mut store, acquire(1), 1).1);
        let (reply, grants) = asked(&mut store, release, 1);
        assert!(!grants, "no caller waits: {reply:?}");

        assert!(asked(&mut store, acquire(1), 2).1);
        let (reply, grants) = asked(&mut store, in_line(), 3);
        assert!(
            matches!(reply, Reply::InLine { .. }) && !grants,
            "{reply:?}"
        );
        let (reply, grants) = asked(&mut store, release, 2);
        assert!(
            matches!(reply, Reply::Passed { client: 7, .. }) && grants,
            "{reply:?}"
        );
        assert!(asked(&mut store, EXTEND, 3).1, "the caller has the key");
        assert!(!asked(&mut store, EXTEND, 2).1);
    }
}

#[test]
fn what_a_node_has_done_is_a_grant_if_it_keeps_a_key() {
    let entry = JobEntry {
        series: Series::TICKS,
        tick: Tick::from_millis(1_000).unwrap(),
        attempt: 1,
        token: 1,
        text: "text".into(),
    };
    let commit = JobVerb::Commit {
        lock: "lock".into(),
        owner: Box::new(owner(1)),
        ttl: TTL,
        entry: entry.clone(),
    };
    let keep = [request(EXTEND, 1), request(HEAL, 1), job(commit)];
    let record = JobVerb::Record {
        entry: entry.clone(),
        ttl: TTL,
    };
    let withdraw = JobVerb::Withdraw { entry, ttl: TTL };
    let others = [
        request(RELEASE, 1),
        request(TOMBSTONE, 1),
        job(record),
        job(withdraw),
        Request::Node(NodeVerb::Look),
    ];
    assert!(keep.iter().all(|request| Reply::Done.grants(request)));
    assert!(!others.iter().any(|request| Reply::Done.grants(request)));
    for reply in [Reply::Missing, Reply::Unclear, Reply::Tombstoned] {
        assert!(
            !keep.iter().any(|request| reply.grants(request)),
            "{reply:?}"
        );
    }
}
