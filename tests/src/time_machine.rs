//! Servers and replicas with wall clocks of their own, which are set together: they live on any day of any year.

use std::{ops::Deref, time::Duration};

use redlock_cron::chrono::{DateTime, TimeDelta, Utc};
use redlock_sandbox::{ServerClock, ServerOptions};

use crate::{Connect, Fleet, Job, Nodes};

/// Three servers and a fleet of replicas in a time of their own.
#[derive(Debug)]
pub struct TimeMachine {
    /// The replicas.
    // Declared before the servers, so that it ends before them.
    pub fleet: Fleet,
    nodes: Nodes,
    ahead: TimeDelta,
}

impl TimeMachine {
    /// Starts the servers at `time`, from when on their clocks run; `program` is the replicas' program.
    ///
    /// # Panics
    ///
    /// If there is no server, or none with a clock of its own.
    pub fn start(program: &'static str, jobs: Vec<Job>, time: DateTime<Utc>) -> Self {
        let nodes = Nodes::start_with(3, &ServerOptions::default().own_clock());
        let connect = Connect {
            max_ttl: 2 * TTL,
            ..Connect::to(nodes.urls(), TTL)
        };
        let mut machine = Self {
            fleet: Fleet::new(program, connect, jobs),
            nodes,
            ahead: TimeDelta::zero(),
        };
        machine.step(time - Utc::now());
        machine
    }

    /// Starts a replica, whose clock shows the time and `skew` more; returns when it has started its jobs.
    ///
    /// # Panics
    ///
    /// If it does not.
    pub async fn start_replica(&mut self, name: &str, skew: TimeDelta) {
        let ahead = (self.ahead + skew).num_milliseconds();
        self.fleet.start_skewed(name, ahead);
        self.fleet.ready(&[name]).await;
    }

    /// Steps the clocks of all servers and replicas forward.
    ///
    /// # Panics
    ///
    /// If `time` has been.
    pub fn step_to(&mut self, time: DateTime<Utc>) {
        let now = Utc::now() + self.ahead;
        assert!(now < time, "{time} has been, it is {now}");
        self.step(time - now);
    }

    fn step(&mut self, by: TimeDelta) {
        let distance = by.abs().to_std().expect("it is not negative");
        let set = if by < TimeDelta::zero() {
            ServerClock::set_back
        } else {
            ServerClock::advance
        };
        for node in 0..self.nodes.len() {
            let clock = self.nodes[node].clock().expect("it was asked for");
            set(clock, distance).expect("the clock can be set");
        }
        for clock in self.fleet.clocks().iter().map(Deref::deref) {
            set(clock, distance).expect("the clock can be set");
        }
        self.ahead += by;
    }
}

const TTL: Duration = Duration::from_secs(5);
