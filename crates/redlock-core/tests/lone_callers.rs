//! Clients whose callers come one at a time: the runtime of the caller drives, and the client's thread takes over.
//!
//! The tests are a program of their own, and run one after the other: what the client's thread does is counted by the
//! system, by the name of the thread.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::{
    fs,
    sync::{Arc, Barrier, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use redlock_core::{LockGuard, NodeConfig, Redlock, RedlockBuilder};
use redlock_sandbox::{ServerBinary, ServerOptions, ServerSet};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::{
    runtime::{Builder, Runtime},
    time::Instant,
};

/// A client's servers, while no other test of this program has a client.
struct World {
    servers: ServerSet,
    _alone: MutexGuard<'static, ()>,
}

impl World {
    fn new() -> Self {
        Self::of(3)
    }

    fn of(count: usize) -> Self {
        static ALONE: Mutex<()> = Mutex::new(());
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        eventually("the threads of earlier clients have ended", || {
            threads().is_empty()
        });
        let binary = ServerBinary::find().expect("this test needs a server");
        let servers =
            ServerSet::start(&binary, count, &ServerOptions::default()).expect("the servers start");
        Self {
            servers,
            _alone: alone,
        }
    }

    fn builder(&self) -> RedlockBuilder {
        Redlock::builder().nodes(self.servers.urls()).ttl(TTL)
    }

    /// Whether a majority of the servers has the lock's key.
    fn has_key(&self, key: &str) -> bool {
        let key = format!("{{redlock}}:lock:{key}");
        let exists = |server: &redlock_sandbox::Server| {
            server.command(&["EXISTS", &key]).unwrap().as_integer() == Some(1)
        };
        self.servers.iter().filter(|server| exists(server)).count() >= 2
    }
}

async fn built(builder: RedlockBuilder) -> Redlock {
    let redlock = builder.build().await.unwrap();
    // The servers are new, and this test has no other client.
    redlock.dangerous_bless().await;
    redlock
}

/// Returns the folders of the threads of this process.
fn all_threads() -> Vec<String> {
    let tasks = fs::read_dir("/proc/self/task").unwrap();
    let path = |task: std::io::Result<fs::DirEntry>| task.unwrap().path();
    let paths = tasks
        .map(path)
        .map(|path| path.to_string_lossy().into_owned());
    paths.collect()
}

/// Returns the folders of the threads of clients.
fn threads() -> Vec<String> {
    let mut found = all_threads();
    // A thread that has ended meanwhile has no name.
    let name = |thread: &String| fs::read_to_string(format!("{thread}/comm")).unwrap_or_default();
    found.retain(|thread| name(thread).trim() == "redlock");
    found
}

/// Returns how often the client's thread has slept so far.
fn sleeps() -> u64 {
    let of = |thread: &String| {
        let status = fs::read_to_string(format!("{thread}/status")).unwrap_or_default();
        let count = status
            .lines()
            .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        count.map_or(0, |count| count.trim().parse().unwrap())
    };
    threads().iter().map(of).sum()
}

/// Returns the CPU time of threads so far, in nanoseconds.
fn cpu_time<'a>(threads: impl IntoIterator<Item = &'a String>) -> u64 {
    let of = |thread| {
        let times = fs::read_to_string(format!("{thread}/schedstat")).unwrap_or_default();
        let time = times.split(' ').next().and_then(|time| time.parse().ok());
        time.unwrap_or(0_u64)
    };
    threads.into_iter().map(of).sum()
}

async fn pair(redlock: &Redlock) {
    let guard = redlock.acquire("pair").await.unwrap();
    guard.release().await.unwrap();
}

/// Returns the part that the client's thread has in the CPU time of `work`.
async fn share_of_thread(work: impl Future) -> f64 {
    let times = || [threads(), all_threads()].map(|threads| cpu_time(&threads));
    let before = times();
    work.await;
    let after = times();
    (after[0] - before[0]) as f64 / (after[1] - before[1]) as f64
}

async fn pairs(redlock: &Redlock, count: u32) {
    for _ in 0..count {
        pair(redlock).await;
    }
}

/// Has the caller's runtime drive, and checks that it does.
///
/// A runtime that a busy machine stopped for a while drives again only after a longer time of a lone caller.
async fn lend(redlock: &Redlock) {
    let start = Instant::now();
    loop {
        pairs(redlock, 20).await;
        let share = share_of_thread(pairs(redlock, PAIRS)).await;
        if share < 0.2 {
            return;
        }
        assert!(
            start.elapsed() < Duration::from_secs(20),
            "the thread has {share} of the CPU time"
        );
    }
}

async fn assert_thread_drives(redlock: &Redlock) {
    pairs(redlock, 20).await;
    let share = share_of_thread(pairs(redlock, PAIRS)).await;
    // A connection of redis-rs has a task on the thread, which has less than a half of it.
    assert!(share > 0.55, "the thread has {share} of the CPU time");
}

fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(10), "not so: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

fn current_thread() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

fn workers(count: usize) -> Runtime {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(count).enable_all().build().unwrap()
}

/// Blocks all workers of a runtime; returns once they are.
fn block(runtime: &Runtime, count: usize, time: Duration) {
    let blocked = Arc::new(Barrier::new(count + 1));
    for _ in 0..count {
        let blocked = Arc::clone(&blocked);
        drop(runtime.spawn(async move {
            blocked.wait();
            thread::sleep(time);
        }));
    }
    blocked.wait();
}

/// All file descriptors that this process may have, until they are dropped.
struct AllDescriptors {
    before: Rlimit,
    _files: Vec<fs::File>,
}

impl AllDescriptors {
    fn take() -> Self {
        let before = getrlimit(Resource::Nofile);
        let current = Some(256);
        setrlimit(Resource::Nofile, Rlimit { current, ..before }).unwrap();
        let files = std::iter::from_fn(|| fs::File::open("/dev/null").ok());
        let _files = files.collect();
        Self { before, _files }
    }
}

impl Drop for AllDescriptors {
    fn drop(&mut self) {
        setrlimit(Resource::Nofile, self.before).unwrap();
    }
}

/// Checks that a lease is held, here and by the servers, all the time for so long.
fn assert_kept(world: &World, guard: &LockGuard, key: &str, time: Duration) {
    let start = Instant::now();
    while start.elapsed() < time {
        assert!(guard.lease().is_held(), "after {:?}", start.elapsed());
        assert!(world.has_key(key), "after {:?}", start.elapsed());
        thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn the_runtime_of_a_lone_caller_drives() {
    let world = World::new();
    for runtime in [current_thread(), workers(2)] {
        let redlock = runtime.block_on(built(world.builder()));
        let caller = redlock.clone();
        let task = runtime.spawn(async move { lend(&caller).await });
        runtime.block_on(task).unwrap();
        runtime.block_on(redlock.close());
    }
}

#[test]
fn a_pair_of_a_lone_caller_allocates_at_most_130_times() {
    let world = World::of(5);
    let runtime = current_thread();
    let redlock = runtime.block_on(built(world.builder()));
    runtime.block_on(lend(&redlock));
    // Of this thread, which drives.
    let count = |()| allocation_counter::measure(|| runtime.block_on(pair(&redlock))).count_total;
    let mut counts: Vec<u64> = [(); 101].map(count).into();
    counts.sort_unstable();
    let median = counts[counts.len() / 2];
    assert!(
        (50..=MOST_ALLOCATIONS).contains(&median),
        "{median} allocations"
    );
}

#[test]
fn a_clock_that_a_test_pauses_after_the_client_was_built_fails_no_call() {
    let world = World::new();
    current_thread().block_on(async {
        let redlock = built(world.builder()).await;
        tokio::time::pause();
        pairs(&redlock, 2 * PAIRS).await;
        let guard = redlock.acquire("a").await.unwrap();
        tokio::time::sleep(Duration::from_secs(3_600)).await; // takes no time
        assert!(guard.lease().is_held());
        guard.extend().await.unwrap();
        guard.release().await.unwrap();
        redlock.close().await;
    });
}

#[test]
fn the_thread_drives_for_callers_that_come_together() {
    let world = World::new();
    let runtime = workers(2);
    let redlock = runtime.block_on(built(world.builder()));
    runtime.block_on(lend(&redlock));
    let share = runtime.block_on(share_of_thread(async {
        let tasks: Vec<_> = (0..8)
            .map(|key| {
                let redlock = redlock.clone();
                runtime.spawn(async move {
                    for _ in 0..PAIRS {
                        let guard = redlock.acquire(format!("{key}")).await.unwrap();
                        guard.release().await.unwrap();
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
    }));
    assert!(share > 0.4, "the thread has {share} of the CPU time");
}

#[test]
fn a_client_at_rest_wakes_its_thread_no_oftener_for_a_caller_that_was_alone() {
    let world = World::new();
    let runtime = workers(2);
    let redlock = runtime.block_on(built(world.builder()));
    runtime.block_on(lend(&redlock));
    thread::sleep(Duration::from_millis(500));
    let before = sleeps();
    thread::sleep(Duration::from_secs(3));
    let wakes = sleeps() - before;
    // Three servers are asked once a second.
    assert!(wakes < 60, "{wakes} wakes in 3 s");
}

// Shows: T2.3.
#[test]
fn a_runtime_whose_threads_are_all_blocked_loses_no_lease() {
    let world = World::new();
    let runtime = workers(2);
    let redlock = runtime.block_on(built(world.builder()));
    let guard = runtime.block_on(redlock.acquire("a")).unwrap();
    runtime.block_on(lend(&redlock));
    block(&runtime, 2, Duration::from_secs(10));
    // Callers elsewhere wait no longer than the thread needs to see it.
    let started = Instant::now();
    let caller = redlock.clone();
    let other = thread::spawn(move || current_thread().block_on(pair(&caller)));
    other.join().unwrap();
    assert!(
        started.elapsed() < Duration::from_millis(500),
        "{:?}",
        started.elapsed()
    );
    assert_kept(&world, &guard, "a", Duration::from_secs(9));
    runtime.block_on(guard.release()).unwrap();
    runtime.block_on(pair(&redlock));
}

// Shows: T2.3.
#[test]
fn a_runtime_that_is_blocked_while_no_descriptor_is_left_loses_no_lease() {
    let world = World::new();
    let (runtime, elsewhere) = (workers(2), current_thread());
    let redlock = runtime.block_on(built(world.builder()));
    let guard = runtime.block_on(redlock.acquire("a")).unwrap();
    runtime.block_on(lend(&redlock));
    let descriptors = AllDescriptors::take();
    block(&runtime, 2, 4 * TTL);
    let started = Instant::now();
    elsewhere.block_on(pair(&redlock));
    assert!(
        started.elapsed() < Duration::from_millis(500),
        "{:?}",
        started.elapsed()
    );
    while started.elapsed() < 2 * TTL {
        assert!(guard.lease().is_held(), "after {:?}", started.elapsed());
        thread::sleep(Duration::from_millis(50));
    }
    drop(descriptors);
    assert_kept(&world, &guard, "a", TTL);
}

#[test]
fn a_runtime_of_one_thread_that_is_blocked_or_not_driven_loses_no_lease() {
    let world = World::new();
    let runtime = current_thread();
    let redlock = runtime.block_on(built(world.builder()));
    let guard = runtime.block_on(redlock.acquire("a")).unwrap();
    runtime.block_on(async {
        lend(&redlock).await;
        assert_kept(&world, &guard, "a", 2 * TTL);
    });
    // No future is polled between two calls of `block_on`.
    runtime.block_on(pair(&redlock));
    assert_kept(&world, &guard, "a", 2 * TTL);
    // A drop outside of the runtime is as good as one in it.
    drop(guard);
    eventually("the key is gone", || !world.has_key("a"));
}

#[test]
fn the_thread_drives_for_good_once_the_runtime_that_drove_is_dropped() {
    let world = World::new();
    let (first, second) = (workers(2), current_thread());
    let redlock = first.block_on(built(world.builder()));
    let guard = first.block_on(redlock.acquire("a")).unwrap();
    first.block_on(lend(&redlock));
    drop(first);
    let started = Instant::now();
    second.block_on(pair(&redlock));
    assert!(
        started.elapsed() < Duration::from_millis(500),
        "{:?}",
        started.elapsed()
    );
    assert_kept(&world, &guard, "a", 2 * TTL);
    second.block_on(async {
        assert_thread_drives(&redlock).await;
        guard.release().await.unwrap();
        redlock.close().await;
    });
}

#[test]
fn a_runtime_that_is_dropped_before_the_client_drives_never() {
    let world = World::new();
    let (first, second) = (current_thread(), current_thread());
    let redlock = first.block_on(built(world.builder()));
    drop(first);
    second.block_on(assert_thread_drives(&redlock));
}

#[test]
fn the_last_handle_ends_the_thread_and_the_task_of_the_runtime() {
    let world = World::new();
    let runtime = workers(1);
    for is_blocked in [false, true] {
        let redlock = runtime.block_on(built(world.builder()));
        runtime.block_on(lend(&redlock));
        if is_blocked {
            block(&runtime, 1, Duration::from_secs(2));
        }
        let started = Instant::now();
        drop(redlock);
        eventually("the thread has ended", || threads().is_empty());
        assert!(
            started.elapsed() < Duration::from_secs(1),
            "{:?}",
            started.elapsed()
        );
        eventually("the task has ended", || {
            runtime.metrics().num_alive_tasks() == 0
        });
    }
}

#[test]
fn the_thread_drives_where_the_runtime_has_no_sockets() {
    let world = World::new();
    let runtime = Builder::new_current_thread().enable_time().build().unwrap();
    let redlock = runtime.block_on(built(world.builder()));
    runtime.block_on(assert_thread_drives(&redlock));
}

#[test]
fn the_thread_drives_for_leases_that_are_short() {
    let world = World::new();
    let runtime = current_thread();
    let builder = world.builder().ttl(Duration::from_secs(1));
    let redlock = runtime.block_on(built(builder));
    runtime.block_on(assert_thread_drives(&redlock));
}

#[test]
fn the_thread_drives_where_nodes_are_pools() {
    let world = World::new();
    let runtime = workers(2);
    let redlock = runtime.block_on(async {
        let pool = |url| {
            let pool = deadpool_redis::Config::from_url(url);
            pool.create_pool(Some(deadpool_redis::Runtime::Tokio1))
        };
        let nodes = world.servers.urls().into_iter().map(pool);
        let nodes = nodes.map(|pool| NodeConfig::from(pool.unwrap()));
        built(Redlock::builder().nodes(nodes).ttl(TTL)).await
    });
    let guard = runtime.block_on(redlock.acquire("a")).unwrap();
    runtime.block_on(assert_thread_drives(&redlock));
    block(&runtime, 2, 2 * TTL);
    assert_kept(&world, &guard, "a", 2 * TTL);
}

#[cfg(feature = "tls-rustls")]
#[test]
fn the_thread_drives_where_connections_have_tls() {
    let Some(folder) = std::env::var_os(FOLDER) else {
        // The variable of TLS must be there when the process starts; a machine may have it set for its own certificates.
        let folder = tempfile::tempdir().unwrap();
        let mut again = std::process::Command::new(std::env::current_exe().unwrap());
        let name = "the_thread_drives_where_connections_have_tls";
        again.args([name, "--exact", "--nocapture"]);
        again.env(FOLDER, folder.path());
        again.env("SSL_CERT_FILE", folder.path().join("cert.pem"));
        return assert!(again.status().unwrap().success());
    };
    let _ = rustls::crypto::ring::default_provider().install_default();
    let certified = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let folder = std::path::PathBuf::from(folder);
    let [certificate, key] = ["cert.pem", "key.pem"].map(|name| folder.join(name));
    // Nothing that is there is written over.
    let write = |path: &std::path::Path, text: String| {
        let mut file = fs::File::create_new(path).unwrap();
        std::io::Write::write_all(&mut file, text.as_bytes()).unwrap();
    };
    write(&certificate, certified.cert.pem());
    write(&key, certified.signing_key.serialize_pem());
    let world = World::new();
    // The servers take connections with TLS at other ports, beside their own.
    let [certificate, key] = [&certificate, &key].map(|file| file.to_str().unwrap());
    let url = |server: &redlock_sandbox::Server| {
        let free = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = free.local_addr().unwrap().port().to_string();
        drop(free);
        let mut set = vec!["CONFIG", "SET", "tls-cert-file", certificate];
        set.extend(["tls-key-file", key, "tls-ca-cert-file", certificate]);
        set.extend(["tls-auth-clients", "no", "tls-port", &port]);
        server.command(&set).unwrap();
        format!("rediss://localhost:{port}")
    };
    let urls: Vec<String> = world.servers.iter().map(url).collect();
    let runtime = workers(2);
    let builder = Redlock::builder().nodes(urls).ttl(TTL);
    let redlock = runtime.block_on(built(builder));
    let guard = runtime.block_on(redlock.acquire("a")).unwrap();
    runtime.block_on(assert_thread_drives(&redlock));
    block(&runtime, 2, 2 * TTL);
    assert_kept(&world, &guard, "a", 2 * TTL);
}

/// Names the folder of the certificates to the process in which the test of TLS goes on.
#[cfg(feature = "tls-rustls")]
const FOLDER: &str = "REDLOCK_TEST_CERTIFICATES";

/// How long leases live.
const TTL: Duration = Duration::from_secs(2);

/// How many pairs are measured.
const PAIRS: u32 = 50;

/// Metrics count each call.
const MOST_ALLOCATIONS: u64 = if cfg!(feature = "metrics") { 160 } else { 130 };
