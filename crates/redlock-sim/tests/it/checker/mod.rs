//! Each promise that is broken in a history is found, and the same history without the break is not
//! complained of.

mod jobs;
mod leases;
mod nodes;
mod shared;
mod tokens;
mod waiters;

use std::time::Duration;

use redlock_sim::{Checker, Event, Moment, Rules};

const RULES: Rules = Rules {
    max_ttl: Duration::from_millis(100),
    pause: Duration::from_millis(5),
    hurried: 1,
    skew: Duration::from_millis(10),
    tolerated: 1,
    clocks_step: false,
    shares: false,
};

fn ms(ms: u64) -> Moment {
    Moment::from_micros(1_000 * ms)
}

fn judged(rules: Rules, history: &[(u64, Event)]) -> Vec<&'static str> {
    let mut checker = Checker::new(rules);
    for (at, event) in history {
        checker.observe(ms(*at), event);
    }
    let found = checker.finish(ms(10_000));
    found
        .iter()
        .map(|(_, violation)| violation.name())
        .collect()
}

fn names(history: &[(u64, Event)]) -> Vec<&'static str> {
    judged(RULES, history)
}

/// The lease of a client that has the same number, on key 0.
fn acquired(lease: u64, token: u64, until: u64) -> Event {
    Event::Acquired {
        lease,
        client: usize::try_from(lease).unwrap_or_default(),
        key: 0,
        is_shared: false,
        tokens: (token, token),
        started: Moment::START,
        until: ms(until),
        rest: Duration::ZERO,
        promised: None,
    }
}

fn extended(lease: u64, until: u64) -> Event {
    Event::Extended {
        lease,
        until: ms(until),
        promised: None,
    }
}

fn ended(lease: u64) -> Event {
    Event::Ended { lease }
}

fn released(lease: u64) -> Event {
    Event::Released { lease }
}

/// A node votes again that was told its floor by a client for which each node is a server of its own.
fn opened(node: usize) -> Event {
    Event::Opened {
        node,
        duplicates: 0,
    }
}

fn waits(due: u64) -> Event {
    Event::Waits {
        waiter: 7,
        client: 1,
        until: ms(due),
        due: ms(due),
    }
}

const ANSWERED: Event = Event::Answered { waiter: 7 };
const TRIES: Event = Event::Tries { waiter: 7 };
const NOTHING: [&str; 0] = [];

fn stood_still(client: usize, length: u64) -> Event {
    Event::StoodStill {
        client,
        length: Duration::from_millis(length),
    }
}
