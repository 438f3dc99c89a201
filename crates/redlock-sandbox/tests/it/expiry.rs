//! Which keys a server has at which millisecond of its wall clock: a model of it relies on this.
#![cfg(target_os = "linux")]

use std::time::Duration;

use redlock_sandbox::{Persistence, Server, ServerOptions};

use crate::clocked::{
    HOUR, MICROSECOND, MILLISECOND, NOON, binary, clock, exists, instant, left, set, start,
};

#[test]
fn a_key_is_there_for_its_milliseconds_and_goes_when_the_last_one_is_over() {
    let server = start();
    let ttl = 1_000 * MILLISECOND;
    // What of its first millisecond is over when the key is written changes nothing.
    for late in [0, 1, 500, 999].map(Duration::from_micros) {
        let look_at = |moment: Duration| {
            clock(&server).set(NOON + late).unwrap();
            server.command(&["FLUSHALL"]).unwrap();
            set(&server, "key", ttl);
            clock(&server).set(NOON + moment).unwrap();
            let got = server.command(&["GET", "key"]).unwrap();
            let left = left(&server, "key");
            let free = set_if_absent(&server, "key");
            assert_eq!(got.is_nil(), free, "{late:?} {moment:?}");
            (!free).then_some(left)
        };
        assert_eq!(look_at(late), Some(1_000));
        assert_eq!(look_at(ttl - MILLISECOND - MICROSECOND), Some(2));
        assert_eq!(look_at(ttl - MILLISECOND), Some(1));
        assert_eq!(look_at(ttl - MICROSECOND), Some(1));
        assert_eq!(look_at(ttl), Some(0));
        assert_eq!(look_at(ttl + MILLISECOND - MICROSECOND), Some(0));
        assert_eq!(look_at(ttl + MILLISECOND), None);
    }
}

#[test]
fn a_key_in_its_last_millisecond_can_be_prolonged_and_one_after_it_cannot() {
    let server = start();
    for (over, prolonged, then) in [(Duration::ZERO, 1, 10), (MILLISECOND, 0, -2)] {
        clock(&server).set(NOON).unwrap();
        set(&server, "key", 10 * MILLISECOND);
        clock(&server).advance(10 * MILLISECOND + over).unwrap();
        let reply = server.command(&["PEXPIRE", "key", "10"]).unwrap();
        assert_eq!(reply.as_integer(), Some(prolonged));
        assert_eq!(left(&server, "key"), then);
    }
}

#[test]
fn a_step_backwards_brings_back_expired_keys_that_the_server_has_not_removed_yet() {
    let options = ServerOptions::default()
        .argument("--enable-debug-command")
        .argument("local")
        .own_clock();
    let server = Server::start(&binary(), options).unwrap();
    // Otherwise the server also removes keys that no client reads, at a time of its own choice.
    server
        .command(&["DEBUG", "SET-ACTIVE-EXPIRE", "0"])
        .unwrap();
    clock(&server).set(NOON).unwrap();
    for key in ["asked for", "forgotten"] {
        set(&server, key, HOUR);
    }
    clock(&server).advance(2 * HOUR).unwrap();
    assert!(!exists(&server, "asked for"));
    clock(&server).set_back(2 * HOUR).unwrap();
    assert!(!exists(&server, "asked for"));
    assert!(exists(&server, "forgotten"));
}

#[test]
fn scripts_follow_the_clock() {
    let server = start();
    clock(&server).set(NOON).unwrap();
    let script = "
        redis.call('SET', 'key', 'mine', 'NX', 'PX', 20)
        return {redis.call('TIME'), redis.call('PTTL', 'key')}";
    let look = || {
        let reply = server.command(&["EVAL", script, "0"]).unwrap();
        let [time, left] = reply.as_array().unwrap() else {
            panic!("{reply:?}");
        };
        (instant(time), left.as_integer().unwrap())
    };
    assert_eq!(look(), (NOON, 20));
    clock(&server).advance(20 * MILLISECOND).unwrap();
    assert_eq!(look(), (NOON + 20 * MILLISECOND, 0));
    clock(&server).advance(MILLISECOND).unwrap();
    assert_eq!(look(), (NOON + 21 * MILLISECOND, 20));
    clock(&server).set_back(HOUR).unwrap();
    assert_eq!(look(), (NOON + 21 * MILLISECOND - HOUR, 3_600_020));
}

#[test]
fn nothing_expires_while_a_script_runs() {
    let server = start();
    let script = "
        redis.call('SET', 'key', 'mine', 'PX', 1)
        for _ = 1, 5000000 do end
        return redis.call('GET', 'key')";
    let reply = server.command(&["EVAL", script, "0"]).unwrap();
    assert_eq!(reply.as_text(), Some("mine"));
}

#[test]
fn keys_that_survive_a_crash_expire_by_the_same_clock() {
    let options = ServerOptions::default()
        .persistence(Persistence::AppendOnly)
        .own_clock();
    let mut server = Server::start(&binary(), options).unwrap();
    clock(&server).set(NOON).unwrap();
    set(&server, "short", HOUR);
    set(&server, "long", 2 * HOUR);
    server.kill().unwrap();
    clock(&server).advance(HOUR + MILLISECOND).unwrap();
    server.restart().unwrap();
    assert!(!exists(&server, "short"));
    assert_eq!(left(&server, "long"), 3_600_000 - 1);
}

fn set_if_absent(server: &Server, key: &str) -> bool {
    let reply = server.command(&["SET", key, "another's", "NX"]).unwrap();
    !reply.is_nil()
}
