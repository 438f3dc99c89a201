//! Requests that travel as a transaction, and those that such a call leaves unclear.

use super::*;

/// Returns the answer of a node that votes.
fn voting(replies: Vec<Reply>) -> Answer {
    let Answer { standing, .. } = hello();
    Answer {
        standing,
        replies: replies.into_iter().map(Ok).collect(),
    }
}

fn kinds(calls: &[Call]) -> Vec<(usize, bool)> {
    let kinds = calls.iter();
    kinds
        .map(|call| (call.requests.len(), call.is_transaction))
        .collect()
}

const TAKEN: Reply = Reply::Taken { counter: 1 };

#[test]
fn a_transaction_is_for_different_keys_of_a_node_that_votes() {
    let mut link = up(config(), at(0));
    push(
        &mut link,
        1,
        vec![acquire(1), acquire(2), release(1), release(2)],
        at(0),
    );
    let calls = sent(&mut link, at(0));
    assert_eq!(kinds(&calls), [(2, true), (2, true)]);
    // It does not vote any more.
    link.on_answer(calls[0].id, answer(vec![Ok(Reply::Unclear); 2]), at(1));
    push(&mut link, 5, vec![acquire(3), release(4)], at(1));
    assert_eq!(kinds(&sent(&mut link, at(1))), [(1, false), (1, true)]);
}

#[test]
fn what_a_transaction_leaves_unclear_is_asked_again_in_a_call_that_looks_first() {
    let mut link = up(config(), at(0));
    push(&mut link, 1, vec![acquire(1), acquire(2)], at(0));
    let calls = sent(&mut link, at(0));
    push(&mut link, 3, vec![acquire(3)], at(0));
    link.on_answer(calls[0].id, voting(vec![Reply::Unclear, TAKEN]), at(1));
    assert_eq!(events(&mut link), [("answered", 2)]);
    let calls = sent(&mut link, at(1));
    assert_eq!(kinds(&calls), [(1, false), (1, true)]);
    assert_eq!(calls[0].requests, [acquire(1)]);
    // No third time: the reply counts as it is.
    link.on_answer(calls[0].id, voting(vec![Reply::Unclear]), at(2));
    assert_eq!(events(&mut link), [("answered", 1)]);
    assert_eq!(sent(&mut link, at(2)).len(), 0);
}

/// A holder asks for the key of a node that it lacks, and has its lease extended, at once.
// Shows: R9.4.
#[test]
fn an_acquire_that_an_extension_follows_is_asked_again() {
    let mut link = up(config(), at(0));
    push(&mut link, 1, vec![acquire(1)], at(0));
    let calls = sent(&mut link, at(0));
    let extend = Verb::Extend {
        ttl: TTL,
        write_back: None,
    };
    push(&mut link, 2, vec![lock(extend, 1)], at(1));
    assert_eq!(sent(&mut link, at(1)).len(), 1);
    link.on_answer(calls[0].id, voting(vec![Reply::Unclear]), at(2));
    assert_eq!(asked(&sent(&mut link, at(2))), [acquire(1)]);
}

// Shows: T5.3.
#[test]
fn a_key_that_its_owner_lets_go_is_not_asked_for_again() {
    for is_sent in [false, true] {
        let mut link = up(config(), at(0));
        push(&mut link, 1, vec![acquire(1)], at(0));
        let calls = sent(&mut link, at(0));
        push(&mut link, 2, vec![release(1)], at(1));
        if is_sent {
            sent(&mut link, at(1));
        }
        link.on_answer(calls[0].id, voting(vec![Reply::Unclear]), at(2));
        assert_eq!(events(&mut link), [("answered", 1)]);
        let rest = sent(&mut link, at(2));
        assert_eq!(asked(&rest), [release(1)][usize::from(is_sent)..]);
    }
}

#[test]
fn a_transaction_that_was_refused_is_asked_again_or_says_why() {
    let refused = RequestError {
        refuses_writes: true,
        ..RequestError::not_executed("OOM".into())
    };
    let mut link = up(config(), at(0));
    push(&mut link, 1, vec![acquire(1), acquire(2)], at(0));
    let calls = sent(&mut link, at(0));
    push(&mut link, 3, vec![release(1)], at(1));
    link.on_call_failed(calls[0].id, &refused, false, at(2));
    let Some(LinkEvent::Failed { round: 1, error }) = link.poll_event() else {
        panic!("it is not asked again");
    };
    assert_eq!(error, refused);
    let calls = sent(&mut link, at(2));
    assert_eq!(kinds(&calls), [(1, false), (1, true)]);
    assert_eq!(calls[0].requests, [acquire(2)]);
    // A release by the script is repeated.
    link.on_call_failed(calls[1].id, &refused, false, at(3));
    assert_eq!(events(&mut link), [("delayed", 3)]);
    assert_eq!(kinds(&sent(&mut link, at(3))), [(1, false)]);
}

/// It may share the key by now, so its acquire must not come behind that.
// Shows: R2.8.
#[test]
fn what_was_sent_for_its_owner_meanwhile_is_not_undone() {
    let mut link = up(config(), at(0));
    push(&mut link, 1, vec![acquire(1)], at(0));
    let calls = sent(&mut link, at(0));
    let write_back = Verb::Extend {
        ttl: TTL,
        write_back: Some(1),
    };
    push(&mut link, 2, vec![lock(write_back, 1)], at(1));
    assert_eq!(kinds(&sent(&mut link, at(1))), [(1, false)]);
    link.on_answer(calls[0].id, voting(vec![Reply::Unclear]), at(2));
    assert_eq!(events(&mut link), [("answered", 1)]);
    assert_eq!(sent(&mut link, at(2)).len(), 0);
}

// Shows: R2.9, T5.1.
#[test]
fn what_is_asked_again_may_have_been_done_before() {
    let unclear = || {
        let mut link = up(config(), at(0));
        push(&mut link, 1, vec![acquire(1)], at(0));
        let calls = sent(&mut link, at(0));
        push(&mut link, 2, vec![acquire(2)], at(0));
        sent(&mut link, at(0));
        link.on_answer(calls[0].id, voting(vec![Reply::Unclear]), at(1));
        events(&mut link);
        link
    };
    // The connection is lost before it is asked again.
    let mut link = unclear();
    link.on_lost("reset".into(), at(2));
    let events = events(&mut link);
    assert!(events.contains(&("unknown", 1)), "{events:?}");
    // The node cannot keep up, so it is not asked again; what it may have done is undone.
    let mut link = unclear();
    push(&mut link, 3, vec![release(1)], at(2));
    let rest = sent(&mut link, at(501));
    assert_eq!(self::events(&mut link), [("unknown", 1)]);
    assert_eq!(asked(&rest), [release(1)]);
    // The node refuses it.
    let mut link = unclear();
    let calls = sent(&mut link, at(2));
    link.on_answer(calls[0].id, answer(vec![Err("OOM".into())]), at(3));
    let Some(LinkEvent::Answered { results, .. }) = link.poll_event() else {
        panic!("it is answered");
    };
    let error = results[0].1.as_ref().unwrap_err();
    assert!(error.may_have_run, "{error:?}");
}

#[test]
fn a_release_that_is_unclear_is_repeated_in_a_call_that_is_no_transaction() {
    let mut link = up(config(), at(0));
    push(&mut link, 1, vec![release(1)], at(0));
    let calls = sent(&mut link, at(0));
    assert_eq!(kinds(&calls), [(1, true)]);
    link.on_answer(calls[0].id, answer(vec![Ok(Reply::Unclear)]), at(1));
    assert_eq!(events(&mut link), [("delayed", 1)]);
    assert_eq!(kinds(&sent(&mut link, at(1))), [(1, false)]);
}

#[test]
fn a_key_that_was_refused_lately_is_no_business_of_a_transaction() {
    let mut link = up(config(), at(0));
    let held = || Reply::Held {
        remaining: None,
        counter: 0,
        holder: None,
        is_shared: false,
    };
    push(&mut link, 1, vec![acquire(1)], at(0));
    let calls = sent(&mut link, at(0));
    link.on_answer(calls[0].id, voting(vec![held()]), at(1));
    push(&mut link, 2, vec![acquire(1), acquire(2)], at(500));
    let calls = sent(&mut link, at(500));
    assert_eq!(kinds(&calls), [(1, false), (1, true)]);
    link.on_answer(calls[0].id, voting(vec![held()]), at(500));
    link.on_answer(calls[1].id, voting(vec![TAKEN]), at(500));
    push(&mut link, 4, vec![acquire(1)], at(1_000));
    let calls = sent(&mut link, at(1_000));
    assert_eq!(kinds(&calls), [(1, false)]);
    // Others may wait for it all the same.
    link.on_answer(calls[0].id, voting(vec![TAKEN]), at(1_001));
    push(&mut link, 5, vec![acquire(1)], at(1_400));
    let calls = sent(&mut link, at(1_400));
    assert_eq!(kinds(&calls), [(1, false)]);
    link.on_answer(calls[0].id, voting(vec![TAKEN]), at(1_401));
    push(&mut link, 6, vec![acquire(1)], at(1_500));
    assert_eq!(
        kinds(&sent(&mut link, at(1_500))),
        [(1, true)],
        "a second later"
    );
}
