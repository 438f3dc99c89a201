//! The jobs of the model of a node.

use std::time::Duration;

use redlock_proto::{
    JobEntry, JobVerb, Keyspace, Lock, LockMode, NoClaim, NodeTime, NodeVerb, OwnerId, Quarantine,
    Reply, Request, RunRecord, Series, Store, Tick, Verb, Window,
};

const TTL: Duration = Duration::from_secs(10);

fn keyspace() -> Keyspace {
    Keyspace::new("{test}", Quarantine::new(2 * TTL, 0.01))
}

fn at(ms: u64) -> NodeTime {
    NodeTime::from_micros(ms * 1_000)
}

fn tick(ms: u64) -> Tick {
    Tick::from_millis(ms).unwrap()
}

fn entry(ms: u64, token: u64) -> JobEntry {
    JobEntry {
        series: Series::TICKS,
        tick: tick(ms),
        attempt: 1,
        token,
        text: "text".into(),
    }
}

fn claim(owner: u8, ms: u64) -> JobVerb {
    JobVerb::Claim {
        lock: "lock".into(),
        owner: Box::new(OwnerId::from_random([owner; 16])),
        ttl: TTL,
        proposal: 1,
        series: Series::TICKS,
        tick: tick(ms),
        attempt: 1,
        window: Window::new(Duration::from_millis(100), Duration::from_millis(1_000)),
    }
}

fn commit(owner: u8, entry: JobEntry) -> JobVerb {
    JobVerb::Commit {
        lock: "lock".into(),
        owner: Box::new(OwnerId::from_random([owner; 16])),
        ttl: TTL,
        entry,
    }
}

fn ask(store: &mut Store, verb: JobVerb, time: NodeTime) -> Reply {
    let job = "job".into();
    let answer = store.call(&keyspace(), &[Request::Job { verb, job }], time);
    answer.replies[0].clone().expect("it is in range")
}

fn voting() -> Store {
    Store::vouched_for("run".into())
}

const fn refused(refusal: NoClaim) -> Reply {
    Reply::NoClaim(refusal)
}

// Shows: T4.1.
#[test]
fn a_claim_remembers_nothing_before_its_commit() {
    let mut store = voting();
    let claimed = Reply::Claimed {
        counter: 1,
        last: None,
    };
    assert_eq!(ask(&mut store, claim(1, 1_000), at(1_000)), claimed);
    assert_eq!(store.runs(&"job".into()), []);
    let commit = commit(1, entry(1_000, 5));
    for _ in 0..2 {
        assert_eq!(ask(&mut store, commit.clone(), at(1_000)), Reply::Done);
        assert_eq!(store.runs(&"job".into()), [entry(1_000, 5)]);
    }
    let passed = refused(NoClaim::Passed(entry(1_000, 5)));
    assert_eq!(ask(&mut store, claim(2, 999), at(1_000)), passed);
    assert_eq!(ask(&mut store, claim(2, 1_000), at(1_000)), passed);
    // Later than that is only the lock in the way.
    let held = ask(&mut store, claim(2, 1_001), at(1_000));
    assert!(matches!(held, Reply::Held { .. }), "{held:?}");
}

// Shows: T4.3.
#[test]
fn only_the_owner_of_the_lock_moves_the_watermark() {
    let mut store = voting();
    let late = commit(1, entry(1_000, 5));
    assert_eq!(ask(&mut store, late.clone(), at(0)), Reply::Missing);
    ask(&mut store, claim(2, 1_000), at(1_000));
    let held = ask(&mut store, late, at(1_000));
    assert!(matches!(held, Reply::Held { .. }), "{held:?}");
    assert_eq!(store.runs(&"job".into()), []);
}

// Shows: T4.4, T4.11.
#[test]
fn the_watermark_never_goes_back() {
    let mut store = voting();
    ask(&mut store, claim(1, 1_000), at(1_000));
    ask(&mut store, commit(1, entry(1_000, 5)), at(1_000));
    let passed = refused(NoClaim::Passed(entry(1_000, 5)));
    // Under another lock, another run of the tick may have the same token.
    let mut namesake = entry(1_000, 5);
    namesake.text = "another".into();
    for older in [entry(999, 6), entry(1_000, 6), namesake] {
        assert_eq!(ask(&mut store, commit(1, older), at(1_000)), passed);
    }
    assert_eq!(store.runs(&"job".into()), [entry(1_000, 5)]);
}

// Shows: T4.4, T4.12.
#[test]
fn only_the_very_run_is_withdrawn() {
    let mut store = voting();
    ask(&mut store, claim(1, 900), at(1_000));
    for run in [entry(900, 4), entry(1_000, 5)] {
        ask(&mut store, commit(1, run), at(1_000));
    }
    let withdraw = |entry| JobVerb::Withdraw { entry, ttl: TTL };
    let mut namesake = entry(1_000, 5);
    namesake.text = "another".into();
    for other in [entry(1_000, 6), entry(999, 5), namesake] {
        assert_eq!(ask(&mut store, withdraw(other), at(1_000)), Reply::Missing);
    }
    let withdraw = withdraw(entry(1_000, 5));
    assert_eq!(ask(&mut store, withdraw.clone(), at(1_000)), Reply::Done);
    assert_eq!(store.runs(&"job".into()), [entry(900, 4)]);
    assert_eq!(ask(&mut store, withdraw, at(1_000)), Reply::Missing);
    // The lock is still there, and its owner can have the tick.
    ask(&mut store, commit(1, entry(1_000, 7)), at(1_000));
    assert_eq!(store.runs(&"job".into()), [entry(1_000, 7), entry(900, 4)]);
}

/// As in an outage of many ticks, each of which is claimed, cannot be confirmed and is withdrawn.
// Shows: T4.4.
#[test]
fn a_tick_that_was_started_stays_claimed_however_many_later_ones_are_withdrawn() {
    let mut store = voting();
    let now = at(1_000);
    let first = 1_000;
    let later = first + 1..first + 1 + 3 * JobEntry::MOST as u64;
    ask(&mut store, claim(1, first), now);
    for ms in first..later.end {
        assert_eq!(ask(&mut store, commit(1, entry(ms, ms)), now), Reply::Done);
    }
    for ms in later.rev() {
        let (entry, ttl) = (entry(ms, ms), TTL);
        ask(&mut store, JobVerb::Withdraw { entry, ttl }, now);
    }
    let claimed = ask(&mut store, claim(1, first), now);
    assert!(
        matches!(&claimed, Reply::NoClaim(NoClaim::Passed(last)) if last.tick >= tick(first)),
        "{claimed:?}"
    );
    let told = store.runs(&"job".into()).iter().find_map(RunRecord::of);
    assert_eq!(told, None, "an anchor tells of no run");
}

// Shows: T4.1.
#[test]
fn the_nodes_own_clock_judges_the_tick() {
    let mut store = voting();
    let by = Duration::from_millis(1);
    let early = refused(NoClaim::Early { by });
    assert_eq!(ask(&mut store, claim(1, 1_000), at(899)), early);
    let late = refused(NoClaim::Late { by });
    assert_eq!(ask(&mut store, claim(1, 1_000), at(2_001)), late);
    assert_eq!(store.locks(at(2_001)), 0);
    let claimed = ask(&mut store, claim(1, 1_000), at(2_000));
    assert!(matches!(claimed, Reply::Claimed { .. }), "{claimed:?}");
}

// Shows: T5.4.
#[test]
fn a_tombstoned_owner_claims_nothing_any_more() {
    let mut store = voting();
    let tombstone = Request::Lock {
        verb: Verb::Tombstone { ttl: TTL },
        lock: Lock {
            mode: LockMode::Exclusive,
            keys: "lock".into(),
            owner: OwnerId::from_random([1; 16]),
        }
        .into(),
    };
    store.call(&keyspace(), &[tombstone], at(1_000));
    assert_eq!(
        ask(&mut store, claim(1, 1_000), at(1_000)),
        Reply::Tombstoned
    );
}

#[test]
fn what_came_of_a_run_is_recorded_where_the_run_is_remembered() {
    let mut store = voting();
    for ms in [1_000, 1_100] {
        ask(&mut store, claim(1, ms), at(1_000));
        ask(&mut store, commit(1, entry(ms, ms)), at(1_000));
    }
    let record = |entry| JobVerb::Record { entry, ttl: TTL };
    let ended = JobEntry {
        text: "ended".into(),
        ..entry(1_000, 1_000)
    };
    assert_eq!(ask(&mut store, record(ended.clone()), at(0)), Reply::Done);
    assert_eq!(store.runs(&"job".into()), [entry(1_100, 1_100), ended]);
    for other in [entry(1_000, 7), entry(2_000, 1_000)] {
        assert_eq!(ask(&mut store, record(other), at(0)), Reply::Missing);
    }
    assert_eq!(store.runs(&"job".into()).len(), 2);
}

// Shows: T4.7.
#[test]
fn a_node_that_forgot_gives_away_what_could_not_be_claimed_before() {
    let mut store = voting();
    store.flush();
    let open = |since, horizon| {
        Request::Node(NodeVerb::Open {
            floor: 1,
            since,
            horizon,
        })
    };
    let length = 2 * u64::try_from(keyspace().quarantine().length().as_millis()).unwrap();
    for ms in (0..length).step_by(100) {
        store.call(&keyspace(), &[], at(1_000 + ms));
    }
    let seen = at(1_000 + length);
    // Its clock is wrong when it hears of it.
    let opened = store.call(&keyspace(), &[open(at(1_000), Some(seen))], at(900));
    assert_eq!(opened.replies, [Ok(Reply::Done)]);
    // What was claimed when the quarantine began is as unknown as what was due meanwhile.
    let window = Window::new(Duration::from_millis(100), Window::LONGEST);
    let opened = 1_000 + length;
    let later = at(opened + 1);
    let mut claimed = |ms| {
        let JobVerb::Claim {
            lock,
            owner,
            ttl,
            proposal,
            series,
            attempt,
            ..
        } = claim(1, ms)
        else {
            unreachable!("it is a claim")
        };
        let tick = tick(ms);
        let verb = JobVerb::Claim {
            lock,
            owner,
            ttl,
            proposal,
            series,
            tick,
            attempt,
            window,
        };
        ask(&mut store, verb, later)
    };
    for forgotten in [1_000, opened, opened + 100] {
        assert_eq!(claimed(forgotten), refused(NoClaim::Forgot));
    }
    assert!(matches!(claimed(opened + 101), Reply::Claimed { .. }));

    let mut blessed = Store::new("run".into());
    blessed.call(&keyspace(), &[], at(1_000));
    blessed.call(&keyspace(), &[open(at(1_000), None)], at(1_000));
    let vouched = ask(&mut blessed, claim(1, 1_000), at(1_000));
    assert!(matches!(vouched, Reply::Claimed { .. }), "{vouched:?}");
}

// Shows: T4.4.
#[test]
fn each_series_of_a_job_has_its_own_watermark_and_memory() {
    let (mut store, now, other) = (voting(), at(1_000), Series::new('q'));
    let of = |series, ms| JobEntry {
        series,
        ..entry(ms, ms)
    };
    ask(&mut store, claim(1, 1_000), now);
    ask(&mut store, commit(1, of(other, 1_000)), now);
    for ms in 1_000..1_000 + 2 * JobEntry::MOST as u64 {
        ask(&mut store, commit(1, of(Series::TICKS, ms)), now);
    }
    let single = Series::new('Q');
    for ms in 1_000..1_005 {
        ask(&mut store, commit(1, of(single, ms)), now);
    }
    let lines = |store: &Store, series| {
        let lines = store.runs(&"job".into()).iter();
        lines.filter(|line| line.series == series).count()
    };
    assert_eq!(lines(&store, other), 1, "they are not pushed out");
    let anchored = JobEntry::MOST + 1;
    assert_eq!(lines(&store, Series::TICKS), anchored);
    assert_eq!(lines(&store, single), 2, "one and an anchor");
    // A tick of the one is claimed in the other.
    let later = commit(1, of(other, 1_001));
    assert_eq!(ask(&mut store, later, now), Reply::Done);
    let passed = refused(NoClaim::Passed(of(other, 1_001)));
    assert_eq!(ask(&mut store, commit(1, of(other, 1_000)), now), passed);
}

// Shows: T4.4.
#[test]
fn a_further_attempt_of_a_tick_comes_before_the_next_tick_and_after_the_attempts_before_it() {
    let (mut store, now) = (voting(), at(1_000));
    let run = |ms, attempt| JobEntry {
        attempt,
        ..entry(ms, ms + u64::from(attempt))
    };
    ask(&mut store, claim(1, 1_000), now);
    let passed = |newest| refused(NoClaim::Passed(newest));
    for (run, expected) in [
        (run(1_000, 1), Reply::Done),
        (run(1_000, 3), Reply::Done),
        (run(1_000, 2), passed(run(1_000, 3))),
        (run(1_001, 1), Reply::Done),
        (run(1_000, 4), passed(run(1_001, 1))),
    ] {
        assert_eq!(ask(&mut store, commit(1, run), now), expected);
    }
}
