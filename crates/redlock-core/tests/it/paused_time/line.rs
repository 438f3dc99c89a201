//! Callers of different processes that wait in line for one key.

use std::{
    cell::{Cell, RefCell},
    time::Duration,
};

use futures_util::future::join_all;
use redlock_core::{AcquireOptions, Fairness, Redlock, ResourceKeys, Wait};
use tokio::time::{Instant, sleep};

use crate::paused_time::fixtures::{Faults, FaultyNode, MS, SECOND, client, faulty};

/// One round trip to a node.
const TRIP: Duration = Duration::from_millis(4);

/// In this time, a caller gets the key that has waited for more than a second: the holder learns that others wait, and the
/// caller asks again, because its last request is too old for a lease.
const AFTER_LONG: Duration = Duration::from_millis(12);

fn patient() -> AcquireOptions {
    AcquireOptions::new().wait(Wait::UpTo(60 * SECOND))
}

/// Nodes that are a round trip away, and processes that are connected to them.
async fn processes(count: usize) -> (Vec<FaultyNode>, Vec<Redlock>) {
    let nodes = faulty(5);
    let mut clients = Vec::new();
    for _ in 0..count {
        clients.push(client(&nodes).await);
    }
    let fault = Faults {
        request_delay: TRIP / 2,
        reply_delay: TRIP / 2,
        ..Faults::default()
    };
    nodes.iter().for_each(|node| node.set(fault));
    // Nodes have said the time once a client has asked them for a key.
    for client in &clients {
        drop(client.acquire("other").await.unwrap());
        sleep(SECOND / 2).await;
    }
    (nodes, clients)
}

/// Has a caller of each process ask for the key, `apart` after the one before, and `hold` it; returns the order in which they
/// had it, and for how long the key was free before each, the shortest first.
async fn served(
    clients: &[Redlock],
    (apart, hold): (Duration, Duration),
    options: &AcquireOptions,
) -> (Vec<usize>, Vec<Duration>) {
    let first = clients[0].acquire("key").await.unwrap();
    let (order, free, freed) = (RefCell::default(), RefCell::default(), Cell::default());
    let (order, free, freed): (&RefCell<Vec<_>>, &RefCell<Vec<_>>, &Cell<Option<Instant>>) =
        (&order, &free, &freed);
    let waiting = clients
        .iter()
        .enumerate()
        .skip(1)
        .map(async |(at, client)| {
            sleep(u32::try_from(at).unwrap() * apart).await;
            let guard = client.acquire_with("key", options.clone()).await.unwrap();
            let freed_before = freed.take().expect("it was let go");
            free.borrow_mut().push(freed_before.elapsed());
            order.borrow_mut().push(at);
            sleep(hold).await;
            freed.set(Some(Instant::now()));
            drop(guard);
        });
    let count = u32::try_from(clients.len()).unwrap();
    let holder = async {
        sleep((count + 10) * apart).await;
        freed.set(Some(Instant::now()));
        drop(first);
    };
    let (_, ()) = tokio::join!(join_all(waiting), holder);
    let mut free = free.take();
    free.sort_unstable();
    (order.take(), free)
}

// Shows: R9.3.
#[tokio::test(start_paused = true)]
async fn processes_are_served_in_the_order_in_which_they_came() {
    let (_nodes, clients) = processes(9).await;
    let (order, free) = served(&clients, (50 * MS, 20 * MS), &patient()).await;
    assert_eq!(order, (1..9).collect::<Vec<_>>());
    // A release, and the word of it: each takes half a round trip. A caller that asks again just then loses another.
    assert!(free[free.len() / 2] <= TRIP * 6 / 5, "{free:?}");
    assert!(free[free.len() - 1] <= 3 * TRIP, "{free:?}");
}

// Shows: R9.3.
#[tokio::test(start_paused = true)]
async fn processes_are_served_in_that_order_too_while_nodes_are_gone() {
    for gone in 1..=2 {
        let (nodes, clients) = processes(5).await;
        // Where no server is, a request fails before the others are answered.
        nodes[..gone].iter().for_each(|node| node.node.stop());
        sleep(3 * SECOND).await;
        let (order, free) = served(&clients, (600 * MS, 20 * MS), &patient()).await;
        assert_eq!(order, [1, 2, 3, 4], "{gone}");
        assert!(free[free.len() - 1] <= 3 * TRIP, "{gone}: {free:?}");
    }
}

// Shows: R9.3.
#[tokio::test(start_paused = true)]
async fn with_strict_fairness_callers_of_all_processes_are_served_in_the_order_in_which_they_came()
{
    let (_nodes, clients) = processes(4).await;
    let fair = patient().fairness(Fairness::Strict);
    for client in &clients {
        drop(client.acquire_with("key", fair.clone()).await.unwrap());
        sleep(SECOND / 2).await;
    }
    // Three callers of each of three processes, by turns and in pairs.
    let callers = [0, 1, 2, 3, 1, 1, 2, 2, 3, 3].map(|at| clients[at].clone());
    let (order, free) = served(&callers, (10 * MS, 3 * SECOND / 2), &fair).await;
    assert_eq!(order, (1..10).collect::<Vec<_>>());
    // Within a process too, the next caller asks and then the key is let go.
    assert!(free[free.len() - 1] <= 3 * TRIP, "{free:?}");
}

// Shows: R9.5.
#[tokio::test(start_paused = true)]
async fn callers_that_cannot_hear_of_their_turn_are_served_all_the_same() {
    let (nodes, clients) = processes(5).await;
    for node in &nodes {
        let fault = Faults {
            is_mute: true,
            ..Faults::default()
        };
        node.set(fault);
    }
    let (mut order, free) = served(&clients, (50 * MS, 20 * MS), &patient()).await;
    order.sort_unstable();
    assert_eq!(order, [1, 2, 3, 4]);
    assert!(free[free.len() - 1] < SECOND, "{free:?}");
}

/// Has two processes contend for the key once, and returns for how long the second one waited after the first was done.
async fn contend(clients: &[Redlock]) -> Duration {
    let held = clients[0].acquire("key").await.unwrap();
    let waiting = clients[1].acquire_with("key", patient());
    let letting_go = async {
        sleep(2 * SECOND).await;
        let freed = Instant::now();
        drop(held);
        freed
    };
    let (guard, freed) = tokio::join!(waiting, letting_go);
    drop(guard.unwrap());
    freed.elapsed()
}

#[tokio::test(start_paused = true)]
async fn a_client_listens_until_its_callers_have_not_waited_for_a_minute() {
    let (nodes, clients) = processes(2).await;
    let subscriptions = || {
        let counts = nodes.iter().map(FaultyNode::subscriptions);
        counts.collect::<Vec<_>>()
    };
    assert_eq!(subscriptions(), [0; 5], "no caller has waited");
    for _ in 0..3 {
        assert!(contend(&clients).await <= AFTER_LONG);
        assert_eq!(subscriptions(), [1; 5], "one of them has waited");
        sleep(55 * SECOND).await;
        assert_eq!(subscriptions(), [1; 5]);
        // The next wait begins another minute.
        assert!(contend(&clients).await <= AFTER_LONG);
        sleep(55 * SECOND).await;
        assert_eq!(subscriptions(), [1; 5]);
        // Acquires that need not wait do not count.
        drop(clients[1].acquire("key").await.unwrap());
        sleep(10 * SECOND).await;
        assert_eq!(subscriptions(), [0; 5]);
    }
}

// Shows: R9.8.
#[tokio::test(start_paused = true)]
async fn only_the_first_in_line_asks_while_its_client_gives_signs_of_life() {
    let nodes = faulty(3);
    let link = || nodes.iter().map(FaultyNode::by_another_link).collect();
    let links: [Vec<FaultyNode>; 3] = [link(), link(), link()];
    let holder = client(&nodes).await;
    for keys in [10_u64, 1_500] {
        let names: Vec<String> = (0..keys).map(|key| format!("{keys}:{key}")).collect();
        let long = || AcquireOptions::new().ttl(30 * SECOND);
        let held = names
            .iter()
            .map(|key| holder.acquire_with(key.as_str(), long()));
        let held = join_all(held).await;
        let [first, second, third] = &links;
        let waiting = [first, second, third]
            .into_iter()
            .zip(0..)
            .map(async |(link, at)| {
                sleep(at * SECOND / 2).await;
                let waiter = client(link).await;
                let waiting = names
                    .iter()
                    .map(|key| waiter.acquire_with(key.as_str(), patient()));
                drop(join_all(waiting).await);
            });
        let asked = async {
            sleep(10 * SECOND).await;
            let before = links.each_ref().map(|link| link[0].requests());
            sleep(12 * SECOND).await;
            let asked = links.each_ref().map(|link| link[0].requests());
            drop(held);
            [0, 1, 2].map(|at| (asked[at] - before[at]) as u64)
        };
        let (_, [first, second, third]) = tokio::join!(join_all(waiting), asked);
        // It only rechecks by now. The client looks at the node, too, and gives signs.
        assert!(
            (3 * keys..=4 * keys + 25).contains(&first),
            "{keys} keys: {first}"
        );
        for other in [second, third] {
            assert!((10..=25).contains(&other), "{keys} keys: {other}");
        }
        sleep(SECOND).await;
    }
}

// Shows: R9.8.
#[tokio::test(start_paused = true)]
async fn a_caller_whose_client_hears_no_longer_asks_by_itself() {
    let nodes = faulty(3);
    let [first, second] =
        [0, 1].map(|_| -> Vec<_> { nodes.iter().map(FaultyNode::by_another_link).collect() });
    let holder = client(&nodes).await;
    let held = holder.acquire("key").await.unwrap();
    let heard = async {
        let guard = client(&first).await.acquire_with("key", patient()).await;
        sleep(SECOND).await;
        drop(guard);
    };
    let deaf = async {
        sleep(SECOND / 2).await;
        drop(client(&second).await.acquire_with("key", patient()).await);
        Instant::now()
    };
    let letting_go = async {
        sleep(4 * SECOND).await;
        let fault = Faults {
            is_mute: true,
            ..Faults::default()
        };
        second.iter().for_each(|node| node.set(fault));
        sleep(2 * SECOND).await;
        drop(held);
        Instant::now()
    };
    let ((), served, freed) = tokio::join!(heard, deaf, letting_go);
    let waited = served - freed;
    assert!(waited < 4 * SECOND, "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_was_closed_listens_no_longer() {
    let (nodes, clients) = processes(2).await;
    contend(&clients).await;
    assert!(nodes.iter().all(|node| node.subscriptions() == 1));
    clients[1].close().await;
    assert!(nodes.iter().all(|node| node.subscriptions() == 0));
}

#[tokio::test(start_paused = true)]
async fn a_client_listens_for_as_long_as_a_caller_waits() {
    let (nodes, clients) = processes(2).await;
    let held = clients[0].acquire("key").await.unwrap();
    let for_long = AcquireOptions::new().wait(Wait::UpTo(600 * SECOND));
    let waiting = clients[1].acquire_with("key", for_long);
    let letting_go = async {
        sleep(300 * SECOND).await;
        assert!(nodes.iter().all(|node| node.subscriptions() == 1));
        let freed = Instant::now();
        drop(held);
        freed
    };
    let (guard, freed) = tokio::join!(waiting, letting_go);
    assert!(freed.elapsed() <= AFTER_LONG, "{:?}", freed.elapsed());
    drop(guard.unwrap());
}

// Shows: R9.5.
#[tokio::test(start_paused = true)]
async fn a_client_listens_for_as_long_as_its_callers_wait_though_none_asks_twice() {
    let (_nodes, clients) = processes(6).await;
    let begun = Instant::now();
    let (freed, longest) = (Cell::new(None::<Instant>), Cell::default());
    let work = clients.iter().map(async |client| {
        while begun.elapsed() < 130 * SECOND {
            let guard = client.acquire_with("key", patient()).await.unwrap();
            if let Some(freed) = freed.take()
                && begun.elapsed() > SECOND
            {
                longest.set(freed.elapsed().max(longest.get()));
            }
            sleep(20 * MS).await;
            freed.set(Some(Instant::now()));
            guard.release().await.unwrap();
        }
    });
    join_all(work).await;
    assert!(longest.get() <= 3 * TRIP, "{:?}", longest.get());
}

/// Makes a client that waits as one of a version without lines: it is never in line, and asks again after random pauses.
async fn older_client(nodes: &[FaultyNode]) -> Redlock {
    let links = nodes.iter().map(FaultyNode::by_another_link);
    let links: Vec<FaultyNode> = links.collect();
    let client = client(&links).await;
    for link in &links {
        link.set(Faults {
            request_delay: TRIP / 2,
            reply_delay: TRIP / 2,
            is_mute: true,
            ..Faults::default()
        });
    }
    client
}

// Shows: R9.5.
#[tokio::test(start_paused = true)]
async fn clients_of_versions_with_and_without_lines_share_a_key() {
    let (nodes, newer) = processes(3).await;
    let older = [older_client(&nodes).await, older_client(&nodes).await];
    let (is_held, token) = (Cell::new(false), Cell::new(0));
    let work = async |client: &Redlock| {
        for _ in 0..30 {
            let guard = client.acquire_with("key", patient()).await.unwrap();
            assert!(!is_held.replace(true), "it has one holder");
            let before = token.replace(guard.token().get());
            assert!(before < guard.token().get(), "tokens grow");
            sleep(5 * MS).await;
            assert!(guard.is_held());
            is_held.set(false);
            guard.release().await.unwrap();
            sleep(50 * MS).await;
        }
    };
    // Each of them waits for less than a minute, and for much less on average.
    let begun = Instant::now();
    join_all(newer.iter().chain(&older).map(work)).await;
    assert!(begun.elapsed() < 60 * SECOND, "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_release_by_a_client_without_lines_delays_the_first_in_line_by_three_seconds_at_most() {
    let (nodes, clients) = processes(4).await;
    let held = clients[0].acquire("key").await.unwrap();
    let order: RefCell<Vec<(u32, Instant)>> = RefCell::default();
    let waiting = (1..4_u32).zip(&clients[1..]).map(async |(at, client)| {
        sleep(at * 50 * MS).await;
        let guard = client.acquire_with("key", patient()).await.unwrap();
        order.borrow_mut().push((at, Instant::now()));
        drop(guard);
    });
    let letting_go = async {
        sleep(20 * SECOND).await;
        // As other libraries do, and clients of versions without lines: the keys are deleted, and given to no caller.
        nodes.iter().for_each(|node| node.node.drop_locks());
        Instant::now()
    };
    let (_, freed) = tokio::join!(join_all(waiting), letting_go);
    let order = order.take();
    let numbers: Vec<u32> = order.iter().map(|(at, _)| *at).collect();
    assert_eq!(numbers, [1, 2, 3]);
    let took = order[0].1 - freed;
    assert!(took < 3 * SECOND + 2 * TRIP, "{took:?}");
    drop(held);
}

// Shows: R9.1.
#[tokio::test(start_paused = true)]
async fn a_caller_that_died_at_the_head_of_the_line_delays_the_next_by_the_time_of_a_gift() {
    for waited in (1..10).map(|at| at * 1_317 * MS) {
        let (nodes, clients) = processes(3).await;
        let links = nodes.iter().map(FaultyNode::by_another_link);
        let links: Vec<FaultyNode> = links.collect();
        let dies = client(&links).await;
        let held = clients[0].acquire("key").await.unwrap();
        let first = dies.acquire_with("key", patient());
        let next = async {
            sleep(50 * MS).await;
            let guard = clients[1].acquire_with("key", patient()).await.unwrap();
            let had = Instant::now();
            drop(guard);
            had
        };
        let letting_go = async {
            sleep(50 * MS + waited).await;
            let dead = Faults {
                is_mute: true,
                ..Faults::BLACK_HOLE
            };
            links.iter().for_each(|link| link.set(dead));
            drop(held);
            Instant::now()
        };
        let (dead, had, freed) = tokio::join!(first, next, letting_go);
        assert!(dead.is_err());
        let took = had - freed;
        assert!(took <= 1_300 * MS, "after {waited:?}: {took:?}");
    }
}

/// Has a caller take its turn ten times while others take the key in line without a break; returns the longest wait.
async fn beside_a_line(clients: &[Redlock], turn: impl AsyncFn()) -> Duration {
    let is_done = Cell::new(false);
    let busy = join_all(clients.iter().map(async |client| {
        while !is_done.get() {
            let guard = client.acquire_with("key", patient()).await.unwrap();
            sleep(10 * MS).await;
            drop(guard);
        }
    }));
    let other = async {
        let mut longest = Duration::ZERO;
        for _ in 0..10 {
            let start = Instant::now();
            turn().await;
            longest = longest.max(start.elapsed());
            sleep(50 * MS).await;
        }
        is_done.set(true);
        longest
    };
    let (_, longest) = tokio::join!(busy, other);
    longest
}

/// Returns three processes, and three callers of one process.
fn busy(clients: &[Redlock]) -> [Vec<Redlock>; 2] {
    [clients.to_vec(), vec![clients[0].clone(); 3]]
}

// Shows: R9.5.
#[tokio::test(start_paused = true)]
async fn a_caller_that_cannot_hear_has_its_turn_beside_others_that_can() {
    let (nodes, clients) = processes(3).await;
    let other = older_client(&nodes).await;
    for busy in busy(&clients) {
        let turn = async || drop(other.acquire_with("key", patient()).await.unwrap());
        // A quarter of a second by chance, and then in line, where it asks as often as before.
        let longest = beside_a_line(&busy, turn).await;
        assert!(longest < SECOND, "{longest:?}");
    }
}

// Shows: R9.6.
#[tokio::test(start_paused = true)]
async fn callers_that_want_more_than_the_line_gives_have_their_turn_beside_it() {
    let (nodes, clients) = processes(4).await;
    let deaf = [older_client(&nodes).await];
    for busy in busy(&clients[1..]).into_iter().chain(busy(&deaf)) {
        let several = async || {
            let keys = ResourceKeys::new(["key", "other"]).unwrap();
            let guard = clients[0].acquire_all_with(keys, patient()).await;
            drop(guard.unwrap());
        };
        let longest = beside_a_line(&busy, several).await;
        assert!(longest < SECOND, "{longest:?}");
        let shared = async || {
            let guard = clients[0].acquire_with("key", patient().shared()).await;
            drop(guard.unwrap());
        };
        let longest = beside_a_line(&busy, shared).await;
        assert!(longest < SECOND, "{longest:?}");
    }
}

// Shows: R9.6.
#[tokio::test(start_paused = true)]
async fn a_caller_that_waits_for_several_keys_does_not_keep_others_from_those_that_are_free() {
    let (_nodes, clients) = processes(4).await;
    let _held = clients[0].acquire("other").await.unwrap();
    let is_done = Cell::new(false);
    let turns = Cell::new(0);
    let busy = join_all(clients[1..3].iter().map(async |client| {
        while !is_done.get() {
            let guard = client.acquire_with("key", patient()).await.unwrap();
            sleep(10 * MS).await;
            turns.set(turns.get() + 1);
            drop(guard);
        }
    }));
    let waiting = async {
        let keys = ResourceKeys::new(["key", "other"]).unwrap();
        let options = AcquireOptions::new().wait(Wait::UpTo(20 * SECOND));
        let refused = clients[3].acquire_all_with(keys, options).await;
        assert!(refused.is_err(), "one of them is held");
        is_done.set(true);
    };
    tokio::join!(busy, waiting);
    // There is room for 1,400 turns.
    assert!(turns.get() > 700, "{} turns", turns.get());
}
