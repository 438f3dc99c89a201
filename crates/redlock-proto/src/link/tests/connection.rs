//! The connection: when it is given up, and when the next one is made.

use super::*;

#[test]
fn a_silent_connection_is_given_up_and_its_answers_count_no_more() {
    let mut link = up(config(), at(0));
    push(&mut link, 1, vec![acquire(1)], at(0));
    let calls = sent(&mut link, at(0));
    push(&mut link, 2, vec![release(2)], at(0));
    assert_eq!(link.next_timer(), at(500));
    link.on_timer(at(500));
    assert_eq!(link.next_timer(), at(2_000));
    link.on_timer(at(1_999));
    assert!(link.is_up());
    link.on_timer(at(2_000));
    assert!(!link.is_up());
    assert_eq!(
        events(&mut link),
        [("unknown", 1), ("delayed", 2), ("disconnected", 0)]
    );
    link.on_answer(calls[0].id, answer(vec![Ok(Reply::Done)]), at(2_001));
    assert_eq!(events(&mut link), []);
    assert!(link.next_call(at(2_001)).is_none());
}

#[test]
fn an_idle_connection_is_tried_once_a_second() {
    let mut link = up(config(), at(0));
    assert!(link.next_call(at(999)).is_none());
    assert_eq!(link.next_timer(), at(1_000));
    let beat = link.next_call(at(1_000)).expect("it is idle");
    assert_eq!(beat.requests, []);
    assert!(link.next_call(at(1_000)).is_none(), "one is in flight");
    link.on_answer(beat.id, answer(Vec::new()), at(1_300));
    assert_eq!(link.next_timer(), at(2_300));
    link.next_call(at(2_300)).expect("it is idle again");
    link.on_written(at(2_300));
    link.on_timer(at(4_300));
    assert!(!link.is_up(), "the heartbeat was not answered");
}

#[test]
fn an_answer_that_does_not_fit_its_call_costs_the_connection() {
    let mut link = up(config(), at(0));
    push(&mut link, 1, vec![acquire(1), acquire(2)], at(0));
    let calls = sent(&mut link, at(0));
    link.on_answer(calls[0].id, answer(vec![Ok(Reply::Done)]), at(1));
    assert_eq!(
        events(&mut link),
        [("unknown", 1), ("unknown", 2), ("disconnected", 0)]
    );
}

#[test]
fn a_call_that_failed_alone_leaves_the_connection() {
    let mut link = up(config(), at(0));
    push(&mut link, 1, vec![acquire_two(1), tombstone(2)], at(0));
    let calls = sent(&mut link, at(0));
    let error = RequestError::not_executed("read only".into());
    link.on_call_failed(calls[0].id, &error, false, at(1));
    assert_eq!(events(&mut link), [("not run", 1), ("delayed", 2)]);
    assert!(link.is_up());
    assert_eq!(sent(&mut link, at(1))[0].requests, [tombstone(2)]);
}

#[test]
fn a_node_that_does_not_say_what_it_is_has_no_connection() {
    let wrong = [
        answer(vec![Err("no such command".into())]),
        answer(vec![Ok(Reply::Done)]),
        answer(Vec::new()),
    ];
    for hello in wrong {
        let mut link = Link::new(config(), Bits(0));
        assert!(link.begin_connect(at(0)));
        link.on_connected(hello, at(0), at(1));
        assert!(!link.is_up() && !link.is_connecting());
        assert_eq!(events(&mut link), [("disconnected", 0)]);
    }
}

#[test]
fn pauses_between_attempts_to_connect_grow_up_to_a_second_and_vary() {
    for (bits, parts) in [(0, 128), (127, 255)] {
        let mut link = Link::new(config(), Bits(bits));
        let mut now = at(0);
        for longest in [0, 50, 100, 200, 400, 800, 1_000, 1_000, 1_000, 1_000] {
            assert!(link.begin_connect(now));
            link.on_timer(now + 999 * MS);
            assert!(link.is_connecting());
            now = now + 1_000 * MS;
            assert_eq!(link.next_timer(), now);
            link.on_timer(now);
            assert!(!link.is_connecting(), "no connection within a second");
            let next = now + longest * MS * parts / 256;
            assert_eq!(link.next_timer(), next);
            assert!(longest == 0 || !link.begin_connect(now));
            now = next;
        }
        connect(&mut link, now);
        now = now + 999 * MS;
        link.on_lost("reset".into(), now);
        assert!(!link.begin_connect(now), "it did not last");
        now = link.next_timer();
        connect(&mut link, now);
        now = now + 1_000 * MS;
        link.on_lost("reset".into(), now);
        assert!(link.begin_connect(now), "it lasted");
    }
}

/// Returns the answer of a server that follows another one.
fn replica() -> Answer {
    let mut hello = hello();
    for reply in &mut hello.replies {
        if let Ok(Reply::ServerInfo(server_info)) = reply {
            server_info.is_master = false;
        }
    }
    hello
}

#[test]
fn a_server_that_has_become_a_replica_is_left_for_what_its_name_leads_to() {
    let mut link = up(config(), at(0));
    push(&mut link, 1, vec![HELLO[0].clone()], at(5_000));
    let calls = sent(&mut link, at(5_000));
    push(&mut link, 2, vec![acquire(2)], at(5_000));
    link.on_answer(calls[0].id, replica(), at(5_001));
    assert_eq!(events(&mut link), [("answered", 1)]);
    assert_eq!(link.next_timer(), at(5_001));
    link.on_timer(at(5_001));
    assert!(!link.is_up());
    assert_eq!(events(&mut link), [("not run", 2)], "what it is was told");
    assert!(link.begin_connect(at(5_001)));
    link.on_connected(hello(), at(5_001), at(5_002));
    assert_eq!(events(&mut link), [("connected", 0)]);
    link.on_timer(at(9_000));
    assert!(link.is_up(), "a master is kept");
}

#[test]
fn a_name_that_leads_to_no_master_costs_one_connection_a_second() {
    let mut link = Link::new(config(), Bits(0));
    let mut connections = 0;
    for ms in 0..10_000 {
        let now = at(ms);
        link.on_timer(now);
        if link.begin_connect(now) {
            connections += 1;
            link.on_connected(replica(), now, now);
        }
    }
    assert_eq!(connections, 10);
    let events = events(&mut link);
    assert!(events.iter().all(|event| *event == ("connected", 0)));
    // That there is no server at all is news.
    link.on_timer(at(10_000));
    assert!(link.begin_connect(at(10_000)));
    link.on_lost("refused".into(), at(10_001));
    assert_eq!(self::events(&mut link), [("disconnected", 0)]);
}

#[test]
fn a_server_that_refuses_calls_as_a_replica_does_is_left_within_a_second() {
    let mut link = up(config(), at(0));
    for (round, ms) in [(1, 300), (2, 900)] {
        push(&mut link, round, vec![acquire_two(1)], at(ms));
        let calls = sent(&mut link, at(ms));
        let error = RequestError::not_executed("it is a replica".into());
        link.on_call_failed(calls[0].id, &error, false, at(ms));
        link.on_wrong_server(Arc::clone(&error.reason), at(ms));
        assert_eq!(link.next_timer(), at(1_000));
        link.on_timer(at(ms));
    }
    assert_eq!(events(&mut link), [("not run", 1), ("not run", 2)]);
    link.on_timer(at(1_000));
    assert_eq!(events(&mut link), [("disconnected", 0)]);
    assert!(link.begin_connect(at(1_000)));
}
