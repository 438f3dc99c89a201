//! Nodes that answer and do not do what they are asked.

use redlock_proto::{NodeAnswer, RequestError};

use crate::clients::bench::Bench;

/// Returns a client to which the last node has ended a request with an error, and has then said where it stands without
/// writing anything.
fn looked_at_after(error: RequestError) -> Bench {
    let mut bench = Bench::new(3);
    bench.acquire(1);
    bench.answer_all(1);
    bench.acquire_key(0, "free");
    bench.fail(0, 2, error);
    assert_ne!(bench.standing(0)[2], NodeAnswer::Reachable);
    bench.answer_all(0);
    bench.acquire(0);
    assert!(bench.has_sent(0, 2));
    bench.answer_all_once(0);
    bench
}

#[test]
fn a_call_that_was_refused_as_a_whole_is_trouble_until_something_is_written() {
    let mut bench = looked_at_after(RequestError {
        refuses_writes: true,
        ..RequestError::not_executed("OOM".into())
    });
    let failing = NodeAnswer::Failing {
        reason: "OOM".into(),
    };
    assert_eq!(bench.standing(0)[2], failing);
    bench.acquire_key(0, "free too");
    bench.answer_all_once(0);
    assert_eq!(bench.standing(0)[2], NodeAnswer::Reachable);
}

#[test]
fn any_other_error_is_over_when_the_node_says_where_it_stands() {
    let bench = looked_at_after(RequestError::not_executed("BUSY".into()));
    assert_eq!(bench.standing(0)[2], NodeAnswer::Reachable);
}
