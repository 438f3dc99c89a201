//! A server's wall clock is stepped, stopped and started again, and the server believes it.
#![cfg(target_os = "linux")]

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    net::TcpStream,
    process::Command,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, SystemTime},
};

use redlock_sandbox::{
    ProcessClock, Server, ServerBinary, ServerOptions, ServerSet, StartErrorKind,
};

use crate::clocked::{
    HOUR, MICROSECOND, MILLISECOND, NOON, binary, clock, exists, instant, left, set, since_epoch,
    start,
};

#[test]
fn only_a_server_that_was_asked_for_one_has_a_clock() {
    let server = Server::start(&binary(), ServerOptions::default()).unwrap();
    assert!(server.clock().is_none());
}

#[test]
fn an_untouched_clock_shows_the_real_time() {
    let server = start();
    let before = now();
    let shown = time(&server);
    assert!((before..=now()).contains(&shown), "{shown:?}");
}

#[test]
fn a_step_forwards_moves_the_time_and_expires_keys() {
    let server = start();
    set(&server, "short", HOUR);
    set(&server, "long", 2 * HOUR);
    let before = now();
    clock(&server).advance(HOUR + MILLISECOND).unwrap();
    let shown = time(&server) - (HOUR + MILLISECOND);
    assert!((before..=now()).contains(&shown), "{shown:?}");
    assert!(!exists(&server, "short"));
    assert!(exists(&server, "long"));
    assert!(left(&server, "long") < 3_600_000);
}

#[test]
fn a_step_backwards_moves_the_time_and_keeps_keys_for_longer() {
    let server = start();
    set(&server, "key", HOUR);
    let before = now();
    clock(&server).set_back(HOUR).unwrap();
    let shown = time(&server) + HOUR;
    assert!((before..=now()).contains(&shown), "{shown:?}");
    assert!(left(&server, "key") > 3_600_000);
}

#[test]
fn a_clock_that_stands_still_is_exact_to_the_microsecond() {
    let server = start();
    let instants = [
        Duration::ZERO,
        MICROSECOND,
        Duration::from_micros(999_999),
        Duration::from_micros(1_700_000_000_123_456),
        Duration::from_secs(9_999_999_999),
    ];
    for instant in instants {
        clock(&server).set(instant).unwrap();
        assert_eq!(time(&server), instant);
        assert_eq!(time(&server), instant);
    }
    clock(&server)
        .set(NOON + Duration::from_nanos(999))
        .unwrap();
    assert_eq!(time(&server), NOON);
}

#[test]
fn the_next_command_sees_a_change_on_a_new_connection_and_on_an_old_one() {
    let server = start();
    clock(&server).set(NOON).unwrap();
    let mut connection = Connection::to(&server);
    let mut expected = NOON;
    for _ in 0..500 {
        clock(&server).advance(MICROSECOND).unwrap();
        expected += MICROSECOND;
        assert_eq!(connection.time(), expected);
        clock(&server).advance(7 * MILLISECOND).unwrap();
        expected += 7 * MILLISECOND;
        assert_eq!(time(&server), expected);
    }
}

#[test]
fn no_command_ever_sees_a_mixture_of_two_settings() {
    let server = start();
    let stopped = AtomicBool::new(false);
    let (mut standing, mut following) = (0, 0);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !stopped.load(Ordering::Relaxed) {
                clock(&server).set(NOON).unwrap();
                clock(&server).follow().unwrap();
            }
        });
        let _stop = OnDrop(|| stopped.store(true, Ordering::Relaxed));
        let mut connection = Connection::to(&server);
        while standing.min(following) < 50_000 {
            assert!(standing + following < 2_000_000, "only one of them is seen");
            let before = now();
            for shown in connection.times(100) {
                if shown == NOON {
                    standing += 1;
                } else {
                    // The mode of one and the number of the other would be near the epoch, or
                    // decades ahead.
                    assert!((before..=now()).contains(&shown), "{shown:?}");
                    following += 1;
                }
            }
        }
    });
}

#[test]
fn a_clock_that_follows_again_has_the_distance_it_had() {
    let server = start();
    let clock = clock(&server);
    clock.advance(2 * HOUR).unwrap();
    clock.set_back(HOUR).unwrap();
    clock.set(NOON).unwrap();
    clock.advance(HOUR).unwrap();
    assert_eq!(time(&server), NOON + HOUR);
    let before = now();
    clock.follow().unwrap();
    let shown = time(&server) - HOUR;
    assert!((before..=now()).contains(&shown), "{shown:?}");
}

#[test]
fn a_time_that_a_server_cannot_count_is_refused_and_changes_nothing() {
    let server = start();
    let clock = clock(&server);
    clock.set(NOON).unwrap();
    let refused = std::io::ErrorKind::InvalidInput;
    for beyond in [Duration::MAX, Duration::from_micros(u64::MAX / 2)] {
        assert_eq!(clock.set(beyond).unwrap_err().kind(), refused);
        assert_eq!(clock.advance(beyond).unwrap_err().kind(), refused);
        assert_eq!(clock.set_back(beyond).unwrap_err().kind(), refused);
    }
    assert_eq!(
        clock.set_back(NOON + MICROSECOND).unwrap_err().kind(),
        refused
    );
    assert_eq!(time(&server), NOON);
    clock.set_back(NOON).unwrap();
    assert_eq!(time(&server), Duration::ZERO);
}

#[test]
fn a_restart_keeps_the_clock_and_a_server_that_is_down_can_be_given_another_time() {
    let mut server = start();
    clock(&server).set(NOON).unwrap();
    server.restart().unwrap();
    assert_eq!(time(&server), NOON);

    server.kill().unwrap();
    clock(&server).advance(HOUR).unwrap();
    server.restart().unwrap();
    assert_eq!(time(&server), NOON + HOUR);

    clock(&server).follow().unwrap();
    clock(&server).set_back(HOUR).unwrap();
    let before = now();
    server.restart().unwrap();
    let shown = time(&server) + HOUR;
    assert!((before..=now()).contains(&shown), "{shown:?}");
}

#[test]
fn a_frozen_server_wakes_to_the_time_that_was_set_meanwhile() {
    let server = start();
    clock(&server).set(NOON).unwrap();
    set(&server, "key", HOUR);
    server.freeze().unwrap();
    clock(&server).advance(HOUR + MILLISECOND).unwrap();
    server.thaw().unwrap();
    assert!(!exists(&server, "key"));
}

#[test]
fn the_clocks_of_two_servers_are_independent() {
    let servers = ServerSet::start(&binary(), 2, &ServerOptions::default().own_clock()).unwrap();
    for server in &servers {
        clock(server).set(NOON).unwrap();
        set(server, "key", HOUR);
    }
    clock(&servers[0]).advance(2 * HOUR).unwrap();
    assert_eq!(time(&servers[0]), NOON + 2 * HOUR);
    assert_eq!(time(&servers[1]), NOON);
    assert!(!exists(&servers[0], "key"));
    assert!(exists(&servers[1], "key"));
}

// Shows: G2.
#[test]
fn the_uptime_lies_after_a_step_and_the_run_id_does_not() {
    let mut server = start();
    clock(&server).set(NOON).unwrap();
    server.restart().unwrap();
    let run_id = info(&server, "run_id");
    assert_eq!(info(&server, "uptime_in_seconds"), "0");

    clock(&server).advance(HOUR).unwrap();
    assert_eq!(info(&server, "uptime_in_seconds"), "3600");
    clock(&server).set_back(2 * HOUR).unwrap();
    assert_eq!(info(&server, "uptime_in_seconds"), "-3600");
    assert_eq!(info(&server, "run_id"), run_id);

    // A restart that the uptime hides: it is what it would have been without one.
    clock(&server).set(NOON).unwrap();
    server.restart().unwrap();
    clock(&server).advance(HOUR).unwrap();
    assert_eq!(info(&server, "uptime_in_seconds"), "3600");
    assert_ne!(info(&server, "run_id"), run_id);
}

#[test]
fn a_program_that_does_not_take_the_clock_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("script");
    let program = folder.path().join("server");
    let text = format!(
        "#!/bin/sh\nunset LD_PRELOAD\nexec {} \"$@\"\n",
        binary().path().display()
    );
    fs::write(&script, text).unwrap();
    // A file that this process wrote could still be open in a child of another test, and a program
    // that is open for writing cannot be run.
    let install = Command::new("install").args([&script, &program]).status();
    assert!(install.unwrap().success());
    let program = ServerBinary::at(program);
    Server::start(&program, ServerOptions::default()).unwrap();
    let error = Server::start(&program, ServerOptions::default().own_clock()).unwrap_err();
    assert_eq!(error.kind(), StartErrorKind::Clock);
}

/// Runs a function at the end, even by a panic.
struct OnDrop<F: Fn()>(F);

impl<F: Fn()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// A connection that stays open, for `TIME` only.
struct Connection(BufReader<TcpStream>);

impl Connection {
    fn to(server: &Server) -> Self {
        let stream = TcpStream::connect(server.address()).unwrap();
        stream.set_nodelay(true).unwrap();
        Self(BufReader::new(stream))
    }

    fn time(&mut self) -> Duration {
        self.times(1)[0]
    }

    /// Returns the replies to `count` commands that are sent at once.
    fn times(&mut self, count: usize) -> Vec<Duration> {
        let commands = b"TIME\r\n".repeat(count);
        self.0.get_mut().write_all(&commands).unwrap();
        let mut line = || {
            let mut line = String::new();
            self.0.read_line(&mut line).unwrap();
            line
        };
        (0..count)
            .map(|_| {
                let lines: [_; 5] = std::array::from_fn(|_| line());
                since_epoch(lines[2].trim_end(), lines[4].trim_end())
            })
            .collect()
    }
}

fn time(server: &Server) -> Duration {
    instant(&server.command(&["TIME"]).unwrap())
}

/// The real time, to the microsecond that the server would have said.
#[expect(
    clippy::disallowed_methods,
    reason = "the wall clock is what is tested"
)]
fn now() -> Duration {
    let now = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap();
    Duration::new(now.as_secs(), now.subsec_micros() * 1_000)
}

fn info(server: &Server, name: &str) -> String {
    let info = server.command(&["INFO", "server"]).unwrap();
    let line = info
        .as_text()
        .unwrap()
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.unwrap().to_owned()
}

#[test]
fn any_program_can_be_given_a_clock() {
    let clock = ProcessClock::create().unwrap();
    clock.set(NOON).unwrap();
    let date = || {
        let mut command = Command::new("date");
        clock.give_to(command.arg("+%s"));
        let output = command.output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    assert_eq!(date(), NOON.as_secs().to_string());
    clock.advance(HOUR).unwrap();
    assert_eq!(date(), (NOON + HOUR).as_secs().to_string());
}
