//! Many clients, random faults, random cancellations.
//!
//! A seed repeats the faults and the calls; the delays between attempts are the client's own.

use std::{cell::RefCell, rc::Rc, time::Duration};

use futures_util::{future::join_all, poll};
use redlock_core::{AcquireOptions, Lease, Redlock, Renewal, Wait};
use tokio::time::{Instant, sleep, timeout};

use crate::paused_time::fixtures::{Faults, FaultyNode, MS, SECOND, client_of, faulty, keys};

const SEEDS: u64 = 120;

/// A xorshift generator.
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }

    fn index(&mut self, bound: usize) -> usize {
        usize::try_from(self.below(bound as u64)).expect("it is below a usize")
    }

    fn ms(&mut self, bound: u64) -> Duration {
        Duration::from_millis(self.below(bound))
    }
}

/// The leases that callers were handed, and may still rely on.
type Held = Rc<RefCell<Vec<Lease>>>;

// Shows: T1.2.
#[tokio::test(start_paused = true)]
async fn no_two_leases_are_valid_at_a_time_and_nothing_is_left() {
    let mut leases = 0;
    for seed in 0..SEEDS {
        leases += run(seed).await;
    }
    assert!(
        leases > 10 * usize::try_from(SEEDS).unwrap(),
        "only {leases} leases"
    );
}

async fn run(seed: u64) -> usize {
    let mut random = Random::new(seed);
    let count = 1 + random.index(5);
    let nodes = faulty(count);
    let mut clients = Vec::new();
    for _ in 0..4 {
        let builder = client_of(&nodes).ttl(SECOND).wait(Wait::UpTo(2 * SECOND));
        clients.push(builder.build().await.expect("the nodes are up"));
    }
    let held = Held::default();
    let until = Instant::now() + 20 * SECOND;
    let callers = join_all((0..8).map(|number| {
        let redlock = clients[number % 4].clone();
        caller(
            redlock,
            Rc::clone(&held),
            Random::new(seed * 31 + number as u64 + 7),
            seed,
            until,
        )
    }));
    let all = async { tokio::join!(callers, chaos(&nodes, &mut random, until)) };
    let (leases, ()) = timeout(120 * SECOND, all)
        .await
        .unwrap_or_else(|_| panic!("seed {seed}: somebody hangs"));
    nodes.iter().for_each(FaultyNode::heal);
    // A connection is given up after two seconds, and made again within one.
    sleep(8 * SECOND).await;
    assert_eq!(keys(&nodes), vec![0; count], "seed {seed}");
    let free = clients[0].try_acquire("key").await;
    assert!(free.is_ok(), "seed {seed}: {free:?}");
    leases.into_iter().sum()
}

async fn caller(
    redlock: Redlock,
    held: Held,
    mut random: Random,
    seed: u64,
    until: Instant,
) -> usize {
    let mut leases = 0;
    while Instant::now() < until {
        let renewal = match random.below(2) {
            0 => Renewal::Manual,
            _ => Renewal::Automatic,
        };
        let ttl = 100 * MS + random.ms(900);
        let options = AcquireOptions::new().renewal(renewal).ttl(ttl);
        let limit = MS + random.ms(1_500);
        let Ok(Ok(guard)) = timeout(limit, redlock.acquire_with("key", options)).await else {
            sleep(random.ms(50)).await;
            continue;
        };
        leases += 1;
        {
            let mut held = held.borrow_mut();
            held.retain(Lease::is_held);
            assert!(held.is_empty(), "seed {seed}: two leases are valid");
            held.push(guard.lease().clone());
        }
        let hold = random.ms(2_000);
        match random.below(4) {
            0 => {
                let _ = guard.run(sleep(hold)).await;
            }
            1 => {
                let _ = guard.run(sleep(hold)).await;
                drop(guard.release().await);
            }
            2 => {
                for _ in 0..4 {
                    sleep(hold / 8).await;
                    drop(timeout(30 * MS, guard.extend()).await);
                }
            }
            _ => {
                sleep(hold / 4).await;
                let mut release = Box::pin(guard.release());
                let _ = poll!(release.as_mut());
            }
        }
    }
    leases
}

async fn chaos(nodes: &[FaultyNode], random: &mut Random, until: Instant) {
    while Instant::now() < until {
        let node = &nodes[random.index(nodes.len())];
        let none = Faults::default();
        match random.below(7) {
            0 => node.set(Faults::late_requests(random.ms(200))),
            1 => node.set(Faults::late_replies(random.ms(200))),
            2 => node.set(Faults::SILENT),
            3 => node.set(Faults::BLACK_HOLE),
            4 => {
                let request_delay = random.ms(20);
                node.set(Faults {
                    cut_after_execution: true,
                    request_delay,
                    ..none
                });
            }
            5 => {
                node.node.stop();
                sleep(random.ms(100)).await;
                node.node.start();
            }
            _ => node.heal(),
        }
        if random.below(3) == 0 {
            nodes.iter().for_each(FaultyNode::heal);
        }
        sleep(random.ms(300)).await;
    }
}
