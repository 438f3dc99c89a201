//! Many clients, random faults, random cancellations, from a seed.

use std::{env, rc::Rc, time::Duration};

use futures_util::future::join_all;
use redlock_core::{AcquireOptions, LockGuard, Mode, Redlock, Renewal, SlotGuard, Wait};
use redlock_sim::kit::{Chaos, Links, Recorder, SimNodes, VirtualProcess, after_polls};
use tokio::{
    runtime::Builder,
    time::{Instant, sleep, timeout},
};

const SECOND: Duration = Duration::from_secs(1);
const SEEDS: u64 = 100;
const SLOTS: usize = 2;

/// What the callers of a world want.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Kind {
    /// To have the key alone.
    Alone,
    /// Some share it, and some of these try to have it alone.
    Shared,
    /// To have one of its slots, each of which is a key that one has alone.
    Slots,
}

/// SplitMix64, as the kit has it.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }

    fn pick<T: Copy>(&mut self, choices: [T; 3]) -> T {
        choices[usize::try_from(self.below(3)).expect("it is small")]
    }

    fn ms(&mut self, bound: u64) -> Duration {
        Duration::from_millis(self.below(bound))
    }
}

/// How many leases a world saw, and its trace.
fn world(seed: u64) -> (u64, u64) {
    let runtime = Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime needs nothing");
    runtime.block_on(within(seed))
}

async fn within(seed: u64) -> (u64, u64) {
    let mut random = Random(seed);
    let nodes = SimNodes::new(1 + usize::try_from(random.below(5)).expect("it is small"));
    let forgets = random.below(2) == 0;
    let kind = random.pick([Kind::Alone, Kind::Shared, Kind::Slots]);
    let links: Vec<Links> = (0..3).map(|_| nodes.links()).collect();
    let processes: Vec<_> = (0..3).map(|_| VirtualProcess::new()).collect();
    let mut clients = Vec::new();
    for (number, (links, process)) in links.iter().zip(&processes).enumerate() {
        let client = links
            .client()
            .virtual_process(process)
            .ttl(SECOND)
            .max_ttl(2 * SECOND)
            .wait(Wait::UpTo(2 * SECOND))
            .dangerous_seed(seed * 31 + number as u64);
        clients.push(client.build().await.expect("the nodes are up"));
    }
    let recorder = Rc::new(Recorder::new());
    let until = Instant::now() + 10 * SECOND;
    let mut chaos = Chaos::new(seed);
    if random.below(2) == 0 {
        chaos = chaos.with_processes(&processes);
    }
    if forgets {
        chaos = chaos.with_forgetful_nodes();
    }
    let callers = join_all((0..6).map(|number| {
        let redlock = clients[number % 3].clone();
        let random = Random(seed * 131 + number as u64);
        let caller = caller(
            redlock,
            (number % 3, kind),
            Rc::clone(&recorder),
            random,
            until,
        );
        processes[number % 3].run(caller)
    }));
    let all = async { tokio::join!(callers, chaos.run(&nodes, &links, until)) };
    let done = timeout(120 * SECOND, all).await;
    assert!(done.is_ok(), "seed {seed}: somebody hangs");

    // A connection is given up after two seconds; a node votes again after max_ttl and a little more.
    sleep(12 * SECOND).await;
    assert_eq!(nodes.locks(), vec![0; nodes.len()], "seed {seed}");
    let free = clients[0].try_acquire("key").await;
    assert!(free.is_ok(), "seed {seed}: {free:?}");
    drop(free);
    for client in &clients {
        client.close().await;
    }
    let recorder = Rc::into_inner(recorder).expect("every caller is done");
    let (leases, trace) = (recorder.leases(), recorder.trace());
    let found = recorder.finish();
    assert!(found.is_empty(), "seed {seed}: {found:?}");
    (leases, trace)
}

async fn caller(
    redlock: Redlock,
    (client, kind): (usize, Kind),
    recorder: Rc<Recorder>,
    mut random: Random,
    until: Instant,
) {
    while Instant::now() < until {
        let renewal = match random.below(2) {
            0 => Renewal::Manual,
            _ => Renewal::Automatic,
        };
        let shares = kind == Kind::Shared;
        let options = if shares && random.below(3) > 0 {
            // Mostly on the same terms, so that readers of a process join each other's leases.
            let ttl = Duration::from_millis(400 + 400 * random.below(2));
            AcquireOptions::new().shared().ttl(ttl)
        } else {
            let ttl = Duration::from_millis(100) + random.ms(900);
            AcquireOptions::new().renewal(renewal).ttl(ttl)
        };
        let acquire = async {
            if kind != Kind::Slots {
                return redlock.acquire_with("key", options).await;
            }
            let slots = redlock.slots("key", SLOTS).expect("they are a few");
            slots.acquire_with(options).await.map(SlotGuard::into_guard)
        };
        let acquired = match random.below(4) {
            0 => {
                let polls = usize::try_from(1 + random.below(12)).expect("it is small");
                after_polls(polls, acquire).await
            }
            _ => timeout(random.ms(1_500), acquire).await.ok(),
        };
        let Some(Ok(mut guard)) = acquired else {
            sleep(random.ms(50)).await;
            continue;
        };
        recorder.acquired(client, &guard);
        if shares && random.below(2) == 0 {
            sleep(random.ms(200)).await;
            let was_shared = guard.mode() == Mode::Shared;
            change_mode(&mut guard, &mut random).await;
            if was_shared && guard.mode() == Mode::Exclusive {
                recorder.acquired(client, &guard);
            }
        }
        let hold = random.ms(1_000);
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
                    drop(timeout(Duration::from_millis(30), guard.extend()).await);
                }
            }
            _ => {
                sleep(hold / 4).await;
                after_polls(1, guard.release()).await;
            }
        }
    }
}

/// A reader tries to become a writer, and a writer becomes a reader; or they think better of it.
async fn change_mode(guard: &mut LockGuard, random: &mut Random) {
    let polls = usize::try_from(1 + random.below(12)).expect("it is small");
    let is_patient = random.below(3) > 0;
    let change = async {
        match guard.mode() {
            Mode::Exclusive => drop(guard.downgrade().await),
            Mode::Shared => drop(guard.try_upgrade().await),
        }
    };
    if is_patient {
        change.await;
    } else {
        after_polls(polls, change).await;
    }
}

// Shows: T1.2.
#[test]
fn no_two_leases_are_valid_at_a_time_and_nothing_is_left() {
    let seeds = match env::var("REDLOCK_SEED") {
        Ok(seed) => {
            let seed = seed.parse().expect("REDLOCK_SEED is a number");
            seed..seed + 1
        }
        Err(_) => 0..SEEDS,
    };
    let count = seeds.end - seeds.start;
    let leases: u64 = seeds.map(|seed| world(seed).0).sum();
    eprintln!("{count} seeds, {leases} leases; REDLOCK_SEED=N runs one");
    assert!(leases > 10 * count, "only {leases} leases");
}

#[test]
fn a_seed_repeats_its_world() {
    for seed in [3, 8] {
        assert_eq!(world(seed), world(seed), "seed {seed}");
    }
    assert_ne!(world(3), world(8));
}
