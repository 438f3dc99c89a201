use std::time::Duration;

use proptest::prelude::*;

use super::*;

const MOST_WAITING: usize = 2;

fn at(ms: u64) -> Instant {
    Instant::from_origin(Duration::from_millis(ms))
}

fn queue() -> LocalQueue<&'static str, u32> {
    LocalQueue::new()
}

// Shows: T1.11.
#[test]
fn turns_come_in_order_whoever_leaves() {
    let mut queue = queue();
    let [first, second, third] =
        [0; 3].map(|_| queue.enter(&["a"], Vec::new(), MOST_WAITING).unwrap());
    assert!(queue.has_turn(&["a"], first));
    assert!(!queue.has_turn(&["a"], second) && !queue.has_turn(&["a"], third));
    assert_eq!(queue.leave(&["a"], second).next, []);
    assert_eq!(queue.leave(&["a"], first).next, [third]);
    assert!(queue.has_turn(&["a"], third));
    assert_eq!(queue.leave(&["a"], third).next, []);
    assert_eq!(queue.callers(), 0);
}

#[test]
fn waiting_is_bounded_per_key() {
    let mut queue = queue();
    for _ in 0..3 {
        queue.enter(&["a"], Vec::new(), MOST_WAITING).unwrap();
    }
    assert_eq!(
        queue.enter(&["a"], Vec::new(), MOST_WAITING),
        Err(NoPlace::Full)
    );
    assert!(
        queue.enter(&["b"], Vec::new(), MOST_WAITING).is_ok(),
        "nobody is ahead"
    );
}

// Shows: T1.11.
#[test]
fn a_lease_is_left_to_the_next_caller_or_to_nobody() {
    let mut queue = queue();
    let first = queue.enter(&["a"], Vec::new(), MOST_WAITING).unwrap();
    queue.on_won(&"a", at(0));
    assert!(
        !queue.may_pass_on(&"a", Fairness::Cohort, at(0)),
        "nobody waits"
    );
    let second = queue.enter(&["a"], Vec::new(), MOST_WAITING).unwrap();
    assert!(queue.may_pass_on(&"a", Fairness::Cohort, at(249)));
    assert!(
        !queue.may_pass_on(&"a", Fairness::Cohort, at(250)),
        "others have their turn"
    );
    queue.park(&"a", 7);
    let left = queue.leave(&["a"], first);
    assert_eq!((left.next, left.unclaimed), (vec![second], None));
    assert_eq!(queue.inherit(&"a"), Some(7));
    assert_eq!(queue.inherit(&"a"), None);
    queue.park(&"a", 8);
    assert_eq!(queue.leave(&["a"], second).unclaimed, Some(8));
}

/// Callers that hold turns, or wait for them, by their names.
fn who_would_wait(
    queue: &mut LocalQueue<&'static str, u32>,
    keys: &[&'static str],
    held: &[Ticket],
) -> Result<Ticket, NoPlace> {
    queue.enter(keys, held.to_vec(), 9)
}

// Shows: R3.5.
#[test]
fn who_would_wait_for_somebody_who_waits_for_it_has_no_place() {
    let mut queue = queue();
    let enter = who_would_wait;
    let [a, b, c] = ["a", "b", "c"].map(|key| enter(&mut queue, &[key], &[]).unwrap());
    let e = enter(&mut queue, &["e"], &[]).unwrap();
    // The holder of a waits for b, and that of b for c.
    let first = enter(&mut queue, &["b"], &[a]).unwrap();
    enter(&mut queue, &["c"], &[b]).unwrap();
    for (key, held) in [("b", c), ("a", c), ("a", b)] {
        let refused = enter(&mut queue, &[key], &[e, held]);
        assert_eq!(refused, Err(NoPlace::Deadlock), "{key} for {held:?}");
    }
    assert_eq!(enter(&mut queue, &["d", "a"], &[c]), Err(NoPlace::Deadlock));
    let other = enter(&mut queue, &["a"], &[e]).unwrap();
    queue.leave(&["a"], other);
    queue.leave(&["b"], first);
    assert!(enter(&mut queue, &["a"], &[c]).is_ok(), "it waits no more");
    assert_eq!(enter(&mut queue, &["b"], &[c]), Err(NoPlace::Deadlock));
}

// Shows: R3.5.
#[test]
fn who_keeps_what_others_wait_for_comes_before_them() {
    let mut queue = queue();
    let enter = who_would_wait;
    let [a, b] = ["a", "b"].map(|key| enter(&mut queue, &[key], &[]).unwrap());
    let early = enter(&mut queue, &["b"], &[]).unwrap();
    let set = enter(&mut queue, &["a", "b", "c"], &[]).unwrap();
    let late = enter(&mut queue, &["b"], &[]).unwrap();
    // The set waits for a, and has no turn of b that it could keep from anybody.
    let nested = enter(&mut queue, &["b"], &[a]).unwrap();
    let nested_in_c = enter(&mut queue, &["c"], &[nested]).unwrap();
    assert!(queue.has_turn(&["c"], nested_in_c));
    assert_eq!(queue.leave(&["b"], b).next, [early]);
    assert_eq!(queue.leave(&["b"], early).next, [nested]);
    assert_eq!(queue.leave(&["b"], nested).next, []);
    assert_eq!(queue.leave(&["c"], nested_in_c).next, []);
    assert_eq!(queue.leave(&["a"], a).next, [set]);
    assert_eq!(queue.leave(&["a", "b", "c"], set).next, [late]);
}

#[test]
fn who_keeps_what_others_wait_for_finds_them_behind_others_of_other_keys() {
    let mut queue = queue();
    let enter = who_would_wait;
    let [a, d] = ["a", "d"].map(|key| enter(&mut queue, &[key], &[]).unwrap());
    enter(&mut queue, &["a"], &[d]).unwrap();
    // Both wait for d, whose holder waits for a.
    let first = enter(&mut queue, &["d", "x"], &[]).unwrap();
    let second = enter(&mut queue, &["d", "y"], &[]).unwrap();
    let nested = enter(&mut queue, &["x", "y"], &[a]).unwrap();
    assert!(queue.has_turn(&["x", "y"], nested));
    assert!(!queue.has_turn(&["d", "x"], first) && !queue.has_turn(&["d", "y"], second));
}

#[test]
fn who_waits_under_a_lease_that_is_gone_is_in_nobodys_way() {
    let mut queue = queue();
    let enter = who_would_wait;
    let [a, b] = ["a", "b"].map(|key| enter(&mut queue, &[key], &[]).unwrap());
    enter(&mut queue, &["b"], &[a]).unwrap();
    // Its lease on a is lost, and its work goes on.
    queue.leave(&["a"], a);
    enter(&mut queue, &["a"], &[]).unwrap();
    assert!(enter(&mut queue, &["a"], &[b]).is_ok());
}

#[test]
fn who_has_its_turn_waits_for_nobody_here() {
    let mut queue = queue();
    let enter = who_would_wait;
    let holder = enter(&mut queue, &["a"], &[]).unwrap();
    let nested = enter(&mut queue, &["b"], &[holder]).unwrap();
    let waits = enter(&mut queue, &["a"], &[nested]).unwrap();
    for (key, ticket) in [("a", waits), ("b", nested), ("a", holder)] {
        queue.leave(&[key], ticket);
    }
    assert_eq!(queue.wait_graph.wanted(nested), None);
    assert_eq!(queue.callers(), 0);
}

// Shows: R3.5.
#[test]
fn who_wants_several_keys_has_its_turn_once_it_is_the_first_for_each() {
    let mut queue = queue();
    let enter = who_would_wait;
    let [a, b] = ["a", "b"].map(|key| enter(&mut queue, &[key], &[]).unwrap());
    let set = enter(&mut queue, &["a", "b"], &[]).unwrap();
    let [after_a, after_b] = ["a", "b"].map(|key| enter(&mut queue, &[key], &[]).unwrap());
    assert_eq!(queue.leave(&["a"], a).next, []);
    assert!(!queue.has_turn(&["a", "b"], set));
    assert_eq!(queue.leave(&["b"], b).next, [set]);
    assert!(queue.has_turn(&["a", "b"], set));
    let left = queue.leave(&["a", "b"], set).next;
    assert_eq!(left, [after_a, after_b], "both go on at once");
    assert!(queue.sets.is_empty());
}

#[test]
fn sets_with_the_same_keys_follow_each_other() {
    let mut queue = queue();
    let keys = ["a", "b", "c"];
    let sets = [0; 3].map(|_| who_would_wait(&mut queue, &keys, &[]).unwrap());
    queue.leave(&keys, sets[1]);
    assert_eq!(queue.leave(&keys, sets[0]).next, [sets[2]]);
    assert_eq!(queue.callers(), 1);
}

// Shows: R3.5.
#[test]
fn no_lease_is_left_to_who_wants_more_than_its_key() {
    let mut queue = queue();
    let enter = who_would_wait;
    let first = enter(&mut queue, &["a"], &[]).unwrap();
    queue.on_won(&"a", at(0));
    let second = enter(&mut queue, &["a"], &[]).unwrap();
    enter(&mut queue, &["a", "b"], &[]).unwrap();
    assert!(queue.may_pass_on(&"a", Fairness::Cohort, at(1)));
    queue.park(&"a", 7);
    queue.leave(&["a"], first);
    assert!(
        !queue.may_pass_on(&"a", Fairness::Cohort, at(1)),
        "the set is the next"
    );
    // It goes away without a look at what was left to it.
    let left = queue.leave(&["a"], second);
    assert_eq!(left.unclaimed, Some(7));
}

#[test]
fn l09_keys_used_once_do_not_accumulate() {
    let mut queue = LocalQueue::<u64, ()>::new();
    for key in 0..20_000 {
        let ticket = queue.enter(&[key], Vec::new(), MOST_WAITING).unwrap();
        queue.leave(&[key], ticket);
        assert!(queue.queues() <= 64, "{} queues are kept", queue.queues());
    }
}

/// A request that takes one lock under another.
#[derive(Default)]
struct Task {
    locks: Vec<(Vec<usize>, Ticket)>,
}

impl Task {
    fn goes_on(&self, queue: &LocalQueue<usize, u32>) -> bool {
        let last = self.locks.last();
        last.is_none_or(|(keys, ticket)| queue.has_turn(keys, *ticket))
    }

    fn end(self, queue: &mut LocalQueue<usize, u32>) {
        for (keys, ticket) in self.locks.into_iter().rev() {
            queue.leave(&keys, ticket);
        }
    }
}

/// Returns whether a request that wants these keys would wait for one that holds them and waits, by others or not, for one
/// of its own.
fn is_in_a_circle(
    refused: &Task,
    keys: &[usize],
    others: &[Task],
    queue: &LocalQueue<usize, u32>,
) -> bool {
    let has = |task: &Task, key: &usize| {
        let mut held = task
            .locks
            .iter()
            .filter(|(keys, ticket)| queue.has_turn(keys, *ticket));
        held.any(|(keys, _)| keys.contains(key))
    };
    // A task that only waits for a key is ahead of others, but not in the way of a task that holds what it waits for.
    let mut wanted: Vec<usize> = keys.to_vec();
    let mut next = 0;
    while let Some(key) = wanted.get(next).copied() {
        next += 1;
        if has(refused, &key) {
            return true;
        }
        for task in others {
            let waits = task
                .locks
                .last()
                .filter(|(keys, ticket)| !queue.has_turn(keys, *ticket));
            let is_in_the_way =
                has(task, &key) || waits.is_some_and(|(keys, _)| keys.contains(&key));
            for key in waits
                .filter(|_| is_in_the_way)
                .iter()
                .flat_map(|(keys, _)| keys)
            {
                if !wanted.contains(key) {
                    wanted.push(*key);
                }
            }
        }
    }
    false
}

proptest! {
    // Shows: R3.5.
    #[test]
    fn whoever_has_a_place_comes_to_its_turn(
        steps in prop::collection::vec((0usize..8, prop::collection::btree_set(0usize..5, 1..4), 0u8..8), 1..60),
    ) {
        let mut queue = LocalQueue::<usize, u32>::new();
        let mut tasks: Vec<Task> = Vec::new();
        for (number, keys, what) in steps {
            if number >= tasks.len() {
                tasks.push(Task::default());
            }
            let number = number.min(tasks.len() - 1);
            if !tasks[number].goes_on(&queue) {
                // Some give up.
                if what == 0 {
                    tasks.swap_remove(number).end(&mut queue);
                }
                continue;
            }
            let task = &mut tasks[number];
            let has = |key: &usize| task.locks.iter().any(|(keys, _)| keys.contains(key));
            let keys: Vec<usize> = keys.into_iter().filter(|key| !has(key)).collect();
            let held = task.locks.iter().map(|(_, ticket)| *ticket).collect();
            if what == 0 || keys.is_empty() {
                tasks.swap_remove(number).end(&mut queue);
            } else {
                match queue.enter(&keys, held, 99) {
                    Ok(ticket) => task.locks.push((keys, ticket)),
                    Err(why) => {
                        prop_assert_eq!(why, NoPlace::Deadlock);
                        let refused = tasks.swap_remove(number);
                        prop_assert!(is_in_a_circle(&refused, &keys, &tasks, &queue));
                        refused.end(&mut queue);
                    }
                }
            }
        }
        while !tasks.is_empty() {
            let next = tasks.iter().position(|task| task.goes_on(&queue));
            let Some(next) = next else {
                return Err(TestCaseError::fail("they wait for each other"));
            };
            tasks.swap_remove(next).end(&mut queue);
        }
        prop_assert_eq!(queue.callers(), 0);
        prop_assert!(queue.sets.is_empty());
    }
}
