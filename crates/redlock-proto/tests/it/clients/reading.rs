//! What nodes remember of a job, read back.

use std::time::Duration;

use redlock_proto::{Effect, JobEntry, JobState, NodeAnswer, RunState, Series, Word};

use crate::clients::bench::{Bench, TTL};

fn read(bench: &mut Bench) -> (Option<JobState>, Vec<NodeAnswer>) {
    let mut seen = bench.seen(1);
    match seen.pop() {
        Some(Effect::JobRead {
            ask: 9,
            record,
            answers,
        }) => {
            let state = record.map(|record| record.of(Series::TICKS).clone());
            (state, answers)
        }
        other => panic!("{other:?}"),
    }
}

// Shows: R6.4.
#[test]
fn the_end_of_a_run_is_recorded_and_read_back() {
    let mut bench = Bench::new(3);
    bench.claim(0, 0);
    bench.answer_all(0);
    bench.read(1, 9);
    bench.answer_all(1);
    let (state, _) = read(&mut bench);
    let state = state.unwrap();
    assert_eq!(state.watermark, Some(Bench::tick(0)));
    assert_eq!(state.runs.len(), 1);
    assert_eq!(state.runs[0].state, RunState::Claimed);
    assert_eq!(state.runs[0].fingerprint, 7);
    assert_eq!(state.free_in, Some(TTL));

    bench.finish(0);
    // One of them has not heard of it yet.
    bench.answer(0, 0);
    bench.answer(0, 1);
    bench.read(1, 9);
    bench.answer_all(1);
    let (state, _) = read(&mut bench);
    let state = state.unwrap();
    let ended = RunState::Ended {
        outcome: Word::new("ok").unwrap(),
        took: Duration::from_millis(12),
    };
    assert_eq!(state.runs[0].state, ended);
    assert_eq!(state.free_in, Some(Duration::ZERO));
}

// Shows: R6.4.
#[test]
fn too_few_nodes_say_nothing() {
    let mut bench = Bench::new(3);
    bench.claim(0, 0);
    bench.answer_all(0);
    bench.read(1, 9);
    bench.drop_sent(1, 0);
    bench.drop_sent(1, 1);
    bench.answer_all(1);
    assert!(bench.seen(1).is_empty());
    bench.time_out(1);
    let (state, answers) = read(&mut bench);
    assert_eq!(state, None);
    assert_eq!(answers[2], NodeAnswer::Reachable);
}

#[test]
fn what_is_remembered_is_bounded() {
    let mut bench = Bench::new(3);
    let most = JobEntry::MOST as u64;
    for tick in 0..most + 5 {
        bench.claim(0, tick);
        bench.answer_all(0);
        bench.finish(0);
        bench.answer_all(0);
        // A client leaves the lock to others for a moment after a run.
        bench.pass(25);
    }
    bench.read(1, 9);
    bench.answer_all(1);
    let (state, _) = read(&mut bench);
    let ticks: Vec<_> = state.unwrap().runs.iter().map(|run| run.tick).collect();
    let expected: Vec<_> = (5..most + 5).rev().map(Bench::tick).collect();
    assert_eq!(ticks.len(), JobEntry::MOST);
    assert_eq!(ticks, expected);
}
