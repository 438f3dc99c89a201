//! Transactions: what they do to a node, and that they say nothing that a call which looks first would not.

use redlock_proto::{
    Answer, Done, FencingToken, Keyspace, Lock, LockMode, Look, MarkState, NodeTime, OwnerId,
    Quarantine, Reply, Request, Standing, Store, Transaction, Verb,
};

use super::{
    EXTEND, RELEASE, TTL, acquire, ask, at, bless, keyspace, owner, request, state, voting,
};

fn transact(store: &mut Store, requests: &[Request], time: NodeTime) -> Answer {
    let done = store.transact(&keyspace(), requests, time);
    done.judge(&keyspace(), requests)
}

fn try_one(store: &mut Store, request: Request, time: NodeTime) -> Reply {
    let mut answer = transact(store, &[request], time);
    answer.replies.remove(0).expect("the request is in range")
}

fn holder(store: &Store, time: NodeTime) -> Option<OwnerId> {
    store.holder(&"key".into(), time)
}

#[test]
fn a_transaction_takes_keeps_and_releases_a_free_key_of_a_node_that_votes() {
    let mut store = voting();
    assert_eq!(state(&mut store, at(0)), MarkState::Voting);
    let answer = transact(&mut store, &[request(acquire(7), 1)], at(1));
    assert_eq!(answer.replies, [Ok(Reply::Taken { counter: 7 })]);
    let standing = Standing {
        state: MarkState::Voting,
        time: at(1),
        run: "run".into(),
    };
    assert_eq!(answer.standing, Some(standing));
    assert_eq!(holder(&store, at(2)), Some(owner(1)));
    assert_eq!(try_one(&mut store, request(EXTEND, 1), at(2)), Reply::Done);
    assert_eq!(
        try_one(&mut store, request(RELEASE, 2), at(3)),
        Reply::Missing
    );
    assert_eq!(try_one(&mut store, request(RELEASE, 1), at(3)), Reply::Done);
    assert_eq!(
        try_one(&mut store, request(EXTEND, 1), at(4)),
        Reply::Unclear
    );
    assert_eq!(store.locks(at(4)), 0);
    // It has counted, as a call that looks first does.
    let taken = ask(&mut store, request(acquire(1), 3), at(5));
    assert_eq!(taken, Reply::Taken { counter: 8 });
}

// Shows: T1.5.
#[test]
fn a_key_of_another_owner_stays_as_it_is() {
    let mut store = voting();
    ask(&mut store, request(acquire(1), 1), at(0));
    for verb in [acquire(5), EXTEND] {
        assert_eq!(
            try_one(&mut store, request(verb, 2), at(9_000)),
            Reply::Unclear
        );
    }
    assert_eq!(holder(&store, at(10_000)), Some(owner(1)));
    assert_eq!(
        holder(&store, at(10_001)),
        None,
        "it was not kept for longer"
    );
}

// Shows: T3.1.
#[test]
fn a_proposal_that_is_overtaken_is_no_vote_and_the_next_call_counts_on() {
    for (proposal, counter) in [(7, 8), (8, 9), (9, 10)] {
        let mut store = voting();
        ask(&mut store, request(acquire(8), 1), at(0));
        ask(&mut store, request(RELEASE, 1), at(1));
        let first = try_one(&mut store, request(acquire(proposal), 2), at(2));
        let won = proposal == 9;
        assert_eq!(
            first == Reply::Taken { counter: 9 },
            won,
            "{proposal}: {first:?}"
        );
        let again = ask(&mut store, request(acquire(proposal), 2), at(3));
        let counter = if won { counter } else { 9 };
        assert_eq!(again, Reply::Taken { counter });
    }
    let beyond = request(acquire(FencingToken::MAX.get() + 1), 1);
    assert!(!beyond.is_plain());
}

// Shows: L1.2, T3.1, R2.2.
#[test]
fn a_node_that_does_not_vote_leaves_all_but_releases_unclear() {
    let forgets: [fn(&mut Store); 4] = [
        |store| store.flush(),
        |store| store.restart("other".into()),
        |store| store.take_data_of(&voting_with_a_key(), "another"),
        |store| {
            store.take_data_of(&voting_with_a_key(), "another");
            state(store, at(1));
            store.restart("other".into());
        },
    ];
    for forget in forgets {
        let mut store = voting_with_a_key();
        forget(&mut store);
        let free = Request::Lock {
            verb: acquire(50),
            lock: Lock {
                mode: LockMode::Exclusive,
                keys: "free".into(),
                owner: owner(2),
            }
            .into(),
        };
        let answer = transact(&mut store, &[free.clone(), request(EXTEND, 1)], at(2));
        assert_eq!(answer.standing, None);
        assert_eq!(answer.replies, [Ok(Reply::Unclear), Ok(Reply::Unclear)]);
        // The next call says where it stands, and that the key is the owner's.
        let answer = store.call(&keyspace(), &[free], at(3));
        assert_ne!(answer.standing.unwrap().state, MarkState::Voting);
        assert!(matches!(answer.replies[..], [Ok(Reply::Taken { .. })]));
        let released = [request(RELEASE, 1)];
        let replies = transact(&mut store, &released, at(4)).replies;
        assert!(matches!(replies[..], [Ok(Reply::Done | Reply::Missing)]));
    }
}

fn voting_with_a_key() -> Store {
    let mut store = voting();
    ask(&mut store, request(acquire(1), 1), at(0));
    store
}

/// Each answer of a transaction counts.
// Shows: R2.3, R2.4.
#[test]
fn a_grant_is_no_vote_if_one_answer_of_its_transaction_is_wrong() {
    let requests = [request(acquire(7), 1)];
    let mut store = voting();
    state(&mut store, at(0));
    let right = store.transact(&keyspace(), &requests, at(1));
    let reply = |done: &Transaction| done.judge(&keyspace(), &requests).replies.remove(0);
    assert_eq!(reply(&right), Ok(Reply::Taken { counter: 7 }));
    let took = |is_owner, before, is_counted| {
        vec![Done::Took {
            is_owner,
            before,
            is_counted,
        }]
    };
    let look = right.look.clone().unwrap();
    let mark = look.mark.clone().unwrap();
    let with_look = |look: Look| Transaction {
        look: Some(look),
        ..right.clone()
    };
    let with_mark = |mark: &str| {
        with_look(Look {
            mark: Some(mark.to_owned()),
            ..look.clone()
        })
    };
    let with_done = |done| Transaction {
        done,
        ..right.clone()
    };
    let with_floor = |floor| Transaction {
        floor,
        ..right.clone()
    };
    for wrong in [
        with_done(took(false, Some(0), true)),
        with_done(took(true, None, true)),
        with_done(took(true, Some(7), true)),
        with_done(took(true, Some(0), false)),
        with_done(vec![Done::Failed]),
        with_done(vec![Done::Compared {
            is_owner: true,
            is_awaited: false,
        }]),
        with_floor(None),
        with_floor(Some(7)),
        Transaction {
            look: None,
            ..right.clone()
        },
        with_look(Look {
            is_master: false,
            ..look.clone()
        }),
        with_look(Look {
            data: "another".into(),
            ..look.clone()
        }),
        with_look(Look {
            mark: None,
            ..look.clone()
        }),
        with_mark(&mark.replace("voting", "quarantined")),
        with_mark(&format!("{mark} 1 2 3")),
        with_mark(&mark.replace("ms,", "0ms,")),
        with_mark(&mark.replace(",v", ",w")),
    ] {
        assert_eq!(reply(&wrong), Ok(Reply::Unclear), "{wrong:?}");
    }
    assert_eq!(reply(&with_floor(Some(6))), Ok(Reply::Taken { counter: 7 }));
}

#[test]
fn a_transaction_that_is_no_vote_leaves_no_key_behind_a_refusal() {
    // Another policy.
    let mut store = voting_with_a_key();
    let longer = Keyspace::new("{test}", Quarantine::new(3 * TTL, 0.01));
    let lock = |key: &str| Request::Lock {
        verb: acquire(5),
        lock: Lock {
            mode: LockMode::Exclusive,
            keys: key.into(),
            owner: owner(2),
        }
        .into(),
    };
    let requests = [lock("a")];
    let done = store.transact(&longer, &requests, at(1));
    assert_eq!(done.judge(&longer, &requests).replies, [Ok(Reply::Unclear)]);
    assert_eq!(store.locks(at(1)), 2);
    let replies = store.call(&longer, &requests, at(2)).replies;
    assert_eq!(replies, [Ok(Reply::PolicyMismatch)]);
    assert_eq!(store.locks(at(2)), 1);
    // A tombstone, and a counter that cannot be raised.
    let tombstone = Verb::Tombstone { ttl: TTL };
    ask(&mut store, request(tombstone, 2), at(3));
    transact(&mut store, &requests, at(3));
    assert_eq!(ask(&mut store, lock("a"), at(4)), Reply::Tombstoned);
    assert_eq!(store.locks(at(4)), 1);
}

// Shows: L1.6.
#[test]
fn a_floor_counts_before_the_counter_of_a_shard() {
    let mut store = voting();
    store.flush();
    state(&mut store, at(0));
    assert_eq!(bless(&mut store, at(0), at(1)), Reply::Done);
    let floor = match ask(&mut store, request(acquire(1), 1), at(2)) {
        Reply::Taken { counter } => counter - 1,
        other => panic!("{other:?}"),
    };
    ask(&mut store, request(RELEASE, 1), at(3));
    assert!(floor > 0, "the test tells it one");
    let below = try_one(&mut store, request(acquire(floor), 2), at(4));
    assert_eq!(below, Reply::Unclear);
}

/// What a transaction says is what a call that looks first says, in any state of the node; and if nothing is unclear, the
/// node is the same afterwards.
#[test]
fn what_a_transaction_vouches_for_is_what_a_call_that_looks_first_says() {
    let mut bits = 88_172_645_463_325_252_u64;
    let mut random = move |below: u64| {
        bits ^= bits << 13;
        bits ^= bits >> 7;
        bits ^= bits << 17;
        bits % below
    };
    let (mut clear, mut unclear) = (0, 0);
    for _ in 0..2_000 {
        let mut store = voting();
        let mut ms = 0;
        for _ in 0..12 {
            ms += random(6_000);
            let requests: Vec<Request> = ["a", "b", "c"]
                .iter()
                .filter_map(|key| {
                    let verb = match random(5) {
                        0 | 1 => acquire(random(40)),
                        2 => EXTEND,
                        3 => RELEASE,
                        _ => return None,
                    };
                    let lock = Lock {
                        mode: LockMode::Exclusive,
                        keys: (*key).into(),
                        owner: owner(random(3) as u8),
                    };
                    Some(Request::Lock {
                        verb,
                        lock: lock.into(),
                    })
                })
                .collect();
            match random(12) {
                0 => store.flush(),
                1 => store.restart(format!("{ms}").as_str().into()),
                2 => {
                    let tombstone = Verb::Tombstone { ttl: TTL };
                    ask(&mut store, request(tombstone, random(3) as u8), at(ms));
                }
                3 => {
                    let mut other = voting();
                    other.call(&keyspace(), &requests, at(ms));
                    store.take_data_of(&other, &format!("{ms}"));
                }
                _ => {}
            }
            if requests.is_empty() {
                continue;
            }
            let (mut looking, mut acting) = (store.clone(), store.clone());
            let before: Vec<_> = keys(&store, ms);
            let expected = looking.call(&keyspace(), &requests, at(ms));
            let found = transact(&mut acting, &requests, at(ms));
            if found.standing.is_some() {
                assert_eq!(found.standing, expected.standing);
            }
            let all = requests.iter().zip(&found.replies).zip(&expected.replies);
            let mut is_clear = true;
            for (place, ((request, found), expected)) in all.enumerate() {
                match (found.as_ref().unwrap(), expected.as_ref().unwrap()) {
                    // An owner that has tombstoned itself does not hear of it.
                    (Reply::Unclear, _) | (Reply::Taken { .. }, Reply::Tombstoned) => {
                        is_clear = false;
                    }
                    (Reply::Missing, Reply::Held { .. }) if request.is_release() => {}
                    (found, expected) => {
                        assert_eq!(found, expected, "{place} of {requests:?}: {before:?}");
                    }
                }
            }
            if is_clear {
                assert_eq!(keys(&acting, ms), keys(&looking, ms));
                clear += 1;
            } else {
                unclear += 1;
            }
            store = if random(2) == 0 { looking } else { acting };
        }
    }
    assert!(clear > 1_000 && unclear > 1_000, "{clear} and {unclear}");
}

/// Returns the owner of each key at a time, and a while later.
fn keys(store: &Store, ms: u64) -> Vec<Option<OwnerId>> {
    let times = [ms, ms + 4_000, ms + 9_999, ms + 10_001];
    let keys = ["a", "b", "c"].iter();
    keys.flat_map(|key| times.map(|ms| store.holder(&(*key).into(), at(ms))))
        .collect()
}
