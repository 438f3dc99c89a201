//! What is remembered of jobs, where that is not what a client wrote, or cannot be written.

use redlock_core::node::{Reply, Request};
use redlock_proto::{JobEntry, JobVerb, MarkState, NoClaim, NodeTime, Series, Store};

use super::fixtures::{
    Fixture, HORIZON, JOB, Replied, claim, commit, commit_of, job, keyspace, open, read, record,
    request, run, says,
};

const ILLEGIBLE: &str = "what is remembered of the job is damaged";

fn is_claimed(reply: &Replied) -> bool {
    matches!(reply, Ok(Reply::Claimed { .. }))
}

// Shows: T4.4.
#[tokio::test]
async fn a_tick_is_claimed_and_remembered_for_good() {
    let mut fixture = Fixture::voting().await;
    assert!(is_claimed(&fixture.ask(job(claim(1, 1))).await));
    assert!(!fixture.exists(JOB));
    assert_eq!(fixture.ask(job(commit(1, 1))).await, Ok(Reply::Done));
    assert_eq!(fixture.command(&["PTTL", JOB]).as_integer(), Some(-1));
    let passed = Ok(Reply::NoClaim(NoClaim::Passed(run(1))));
    assert_eq!(fixture.ask(job(claim(1, 2))).await, passed);
    assert_eq!(fixture.ask(job(record(1))).await, Ok(Reply::Done));
}

// Shows: T4.4.
#[tokio::test]
async fn what_cannot_be_read_gives_no_tick_away_and_stays_as_it_is() {
    let mut fixture = Fixture::voting().await;
    let almost = "t 1795262400001 01 0000000000001001 text";
    for garbage in [
        "garbage",
        "",
        almost,
        "t 000179526240000x 01 0000000000001001 text",
    ] {
        fixture.command(&["SET", JOB, garbage]);
        let before = fixture.dump(JOB);
        for verb in [claim(9, 1), read()] {
            let reply = fixture.ask(job(verb.clone())).await;
            let is_empty = garbage.is_empty() && verb == read();
            assert!(is_empty || says(&reply, ILLEGIBLE), "{garbage}: {reply:?}");
        }
        assert_eq!(fixture.ask(job(record(9))).await, Ok(Reply::Missing));
        assert!(!fixture.exists("{odd}:lock:books"));
        fixture.command(&["DEL", JOB]);
        assert!(is_claimed(&fixture.ask(job(claim(9, 1))).await));
        fixture.command(&["SET", JOB, garbage]);
        assert!(says(&fixture.ask(job(commit(9, 1))).await, ILLEGIBLE));
        assert_eq!(fixture.dump(JOB), before);
        fixture.command(&["DEL", JOB, "{odd}:lock:books"]);
    }
}

#[tokio::test]
async fn a_key_of_another_type_is_not_overwritten() {
    let mut fixture = Fixture::voting().await;
    fixture.command(&["RPUSH", JOB, "value"]);
    let before = fixture.dump(JOB);
    assert!(is_claimed(&fixture.ask(job(claim(1, 1))).await));
    assert!(says(&fixture.ask(job(commit(1, 1))).await, ILLEGIBLE));
    assert_eq!(fixture.dump(JOB), before);
}

// Shows: T4.7.
#[tokio::test]
async fn a_damaged_horizon_gives_no_tick_away_and_lets_no_node_vote() {
    let mut fixture = Fixture::voting().await;
    for garbage in ["garbage", "", "1795262400000", "17952624000000000"] {
        fixture.command(&["SET", HORIZON, garbage]);
        let reply = fixture.ask(job(claim(1, 1))).await;
        assert!(
            says(&reply, "the horizon is damaged"),
            "{garbage}: {reply:?}"
        );
        assert!(!fixture.exists("{odd}:lock:books"));
    }
    fixture.command(&["DEL", "{odd}:mark"]);
    let since = fixture.since().await;
    let reply = fixture.ask(open(since, 0)).await;
    assert!(says(&reply, "the horizon is damaged"), "{reply:?}");
    let state = fixture.call(&[]).await.standing.unwrap().state;
    assert!(matches!(state, MarkState::Quarantined { .. }), "{state:?}");
}

#[tokio::test]
async fn without_memory_nothing_is_claimed_and_the_watermark_stays() {
    let mut fixture = Fixture::voting().await;
    for (number, then) in [(1, true), (2, false)] {
        assert!(is_claimed(&fixture.ask(job(claim(number, 1))).await));
        if then {
            assert_eq!(fixture.ask(job(commit(number, 1))).await, Ok(Reply::Done));
            fixture.command(&["DEL", "{odd}:lock:books"]);
        }
    }
    let before = fixture.dump(JOB);
    fixture.fill();
    let left = |fixture: &Fixture| fixture.command(&["PTTL", "{odd}:lock:books"]).as_integer();
    assert!(says(&fixture.ask(job(commit(2, 1))).await, "OOM "));
    assert!(
        left(&fixture).is_some_and(|left| left <= 20_000),
        "it was prolonged"
    );
    assert_eq!(fixture.dump(JOB), before);
    let other = Request::Job {
        verb: claim(3, 2),
        job: "{odd}:job:other".into(),
    };
    let held = fixture.ask(other).await;
    assert!(matches!(held, Ok(Reply::Held { .. })), "{held:?}");
    let release = redlock_proto::Verb::Release {
        ttl: super::fixtures::TTL,
    };
    let released = fixture.ask(request(release, "books", 1)).await;
    assert_eq!(released, Ok(Reply::Done));
    assert!(says(&fixture.ask(job(claim(3, 2))).await, "OOM "));
}

/// More lines than a node keeps, of two series in turns, and some of them withdrawn again.
// Shows: T4.4.
#[tokio::test]
async fn a_series_keeps_its_last_lines_and_the_place_before_them_as_the_model_does() {
    let mut fixture = Fixture::voting().await;
    let mut model = Store::vouched_for("run".into());
    let keyspace = keyspace();
    let now = NodeTime::from_micros(1_000 * run(0).tick.as_millis());
    let of = |number: u64| JobEntry {
        series: [Series::TICKS, Series::new('q')][usize::from(number.is_multiple_of(3))],
        attempt: 1 + u8::from(number.is_multiple_of(5)),
        ..run(number)
    };
    assert!(is_claimed(&fixture.ask(job(claim(0, 1))).await));
    model.call(&keyspace, &[job(claim(0, 1))], now);
    for number in 1..=260 {
        let (entry, ttl) = (of(number), super::fixtures::TTL);
        let withdraw = job(JobVerb::Withdraw { entry, ttl });
        let is_withdrawn = number.is_multiple_of(7);
        let asks = [job(commit_of(of(number), 1)), withdraw];
        for ask in &asks[..1 + usize::from(is_withdrawn)] {
            let mut answer = model.call(&keyspace, std::slice::from_ref(ask), now);
            let expected = answer.replies.remove(0).map_err(|error| error.to_string());
            let reply = fixture.ask(ask.clone()).await;
            assert_eq!(reply.map_err(|error| error.to_string()), expected);
        }
    }
    let lines = model.runs(&JOB.into()).iter().map(JobEntry::to_wire);
    let lines: Vec<String> = lines.collect();
    let ticks = lines.iter().filter(|line| line.starts_with("t "));
    assert!(ticks.count() >= JobEntry::MOST);
    let kept = fixture.command(&["GET", JOB]);
    let kept = kept.as_text().unwrap().lines();
    assert_eq!(kept.collect::<Vec<_>>(), lines);
}
