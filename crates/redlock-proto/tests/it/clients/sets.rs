//! Leases on several keys, of which nodes lose some.

use redlock_proto::{Effect, Loss};

use crate::clients::bench::{Bench, TTL};

const KEYS: [&str; 2] = ["{bench}:lock:a", "{bench}:lock:b"];

/// Returns a client whose lease on both keys was extended once it had lost the second on these nodes.
fn extended_without(nodes: &[usize]) -> Bench {
    let mut bench = Bench::new(3);
    bench.acquire_keys(0, &KEYS);
    bench.answer_all(0);
    assert_eq!(bench.locks(), [2, 2, 2]);
    for node in nodes {
        bench.nodes[*node].drop_lock(&KEYS[1].into());
    }
    let renewed = bench.ms() + TTL.as_millis() as u64 / 3 + 1;
    bench.run_until(0, renewed);
    bench.answer_all_once(0);
    bench
}

// Shows: R3.3.
#[test]
fn what_nodes_have_of_a_lost_set_is_let_go() {
    let mut bench = extended_without(&[0, 1]);
    let lost =
        |effect: &Effect| matches!(effect, Effect::Lost { loss, .. } if *loss == Loss::Revoked);
    assert!(bench.seen(0).iter().any(lost));
    assert_eq!(bench.locks(), [1, 1, 2]);
    bench.release(0);
    bench.answer_all(0);
    assert_eq!(bench.locks(), [0, 0, 0]);
}

// Shows: R3.3.
#[test]
fn a_node_with_a_part_of_a_set_is_given_the_rest_and_is_let_go_of_if_it_refuses() {
    for is_refused in [false, true] {
        let mut bench = extended_without(&[0]);
        if is_refused {
            bench.acquire_key(1, KEYS[1]);
            bench.answer_once(1, 0);
        }
        bench.answer_all(0);
        assert_eq!(bench.locks(), [2, 2, 2], "together");
        bench.release(0);
        bench.answer_all(0);
        let left = usize::from(is_refused);
        assert_eq!(bench.locks(), [left, 0, 0]);
    }
}
