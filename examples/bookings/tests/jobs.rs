//! The jobs, without a server and without waiting for the night.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::time::Duration;

use bookings::{
    hotel::{Hotel, PAY_WITHIN},
    jobs::{scheduler, start},
};
use redlock_core::{MemoryNode, Redlock, VirtualProcess};
use redlock_cron::{
    JobClock, Outcome, SingletonScheduler,
    chrono::{DateTime, TimeDelta, Utc},
};

struct World {
    clock: JobClock,
    nodes: Vec<MemoryNode>,
    hotel: Hotel,
}

impl World {
    fn starting_at(begin: &str) -> Self {
        let clock = JobClock::starting_at(at(begin));
        Self {
            nodes: clock.nodes(3),
            clock,
            hotel: Hotel::default(),
        }
    }

    async fn replica(&self, process: &VirtualProcess) -> SingletonScheduler {
        let redlock = Redlock::builder().nodes(self.nodes.clone());
        let redlock = redlock.virtual_process(process).build().await.unwrap();
        let jobs = scheduler(redlock.clone());
        let jobs = jobs.clock(&self.clock).build().unwrap();
        start(&jobs, &redlock, &self.hotel).await.unwrap();
        jobs
    }

    fn closed(&self) -> Vec<String> {
        let days = self.hotel.closed_days().into_keys();
        days.map(|day| day.to_string()).collect()
    }

    /// Books a room now, under a lease as a request has one.
    async fn book(&self, room: u32) -> u64 {
        let redlock = Redlock::builder().nodes(self.nodes.clone());
        let redlock = redlock.virtual_time().build().await.unwrap();
        let guard = redlock.acquire(format!("room:{room}")).await.unwrap();
        let place = (room, self.clock.now().date_naive());
        let (now, token) = (self.clock.now(), guard.token());
        let booking = self.hotel.book(place, "Ada".to_owned(), now, token);
        guard.release().await.unwrap();
        booking.unwrap().id
    }
}

fn at(instant: &str) -> DateTime<Utc> {
    instant.parse().unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_booking_that_nobody_pays_expires_and_a_paid_one_stays() {
    let world = World::starting_at("2026-11-21T12:00:30Z");
    let jobs = world.replica(&VirtualProcess::new()).await;
    let (unpaid, paid) = (world.book(7).await, world.book(8).await);
    world.hotel.pay("a-key", paid).unwrap();
    let ends = world.clock.now() + TimeDelta::from_std(PAY_WITHIN).unwrap();
    while world.clock.now() < ends {
        assert!(world.hotel.booking(unpaid).is_some());
        let report = jobs.advance_to_next_tick("expire").await.unwrap();
        assert_eq!(report.outcome(), Outcome::Ok);
    }
    assert!(world.hotel.booking(unpaid).is_none());
    assert!(world.hotel.booking(paid).is_some());
}

/// A request has the lock of the booking while the bank takes its time.
#[tokio::test(start_paused = true)]
async fn a_booking_that_is_being_paid_does_not_expire() {
    let world = World::starting_at("2026-11-21T12:00:30Z");
    let jobs = world.replica(&VirtualProcess::new()).await;
    let booking = world.book(7).await;
    let redlock = Redlock::builder().nodes(world.nodes.clone());
    let redlock = redlock.virtual_time().build().await.unwrap();
    let paying = redlock.acquire(format!("booking:{booking}")).await.unwrap();
    let ends = world.clock.now() + TimeDelta::from_std(2 * PAY_WITHIN).unwrap();
    while world.clock.now() < ends {
        let report = jobs.advance_to_next_tick("expire").await.unwrap();
        assert_eq!(report.outcome(), Outcome::Ok);
    }
    world.hotel.pay("a-key", booking).unwrap();
    paying.release().await.unwrap();
    jobs.advance_to_next_tick("expire").await.unwrap();
    assert!(world.hotel.booking(booking).is_some());
}

#[tokio::test(start_paused = true)]
async fn each_day_is_closed_once_by_two_replicas_also_those_on_which_none_was_up() {
    let world = World::starting_at("2026-11-20T12:00:00Z");
    let one = world.replica(&VirtualProcess::new()).await;
    let other = world.replica(&VirtualProcess::new()).await;
    let (first, second) = tokio::join!(
        one.advance_to_next_tick("close-day"),
        other.advance_to_next_tick("close-day")
    );
    let ran = [first, second].map(|report| report.unwrap().outcome().was_started());
    assert_eq!(ran.iter().filter(|ran| **ran).count(), 1);
    assert_eq!(world.closed(), ["2026-11-20"]);

    for jobs in [one, other] {
        assert!(jobs.shutdown(Duration::from_secs(10)).await.is_clean());
    }
    world.clock.advance_to(at("2026-11-24T12:00:00Z")).await;
    let jobs = world.replica(&VirtualProcess::new()).await;
    world.clock.advance_to(at("2026-11-24T12:10:00Z")).await;
    let days = ["20", "21", "22", "23"].map(|day| format!("2026-11-{day}"));
    assert_eq!(world.closed(), days);
    assert!(jobs.shutdown(Duration::ZERO).await.is_clean());
}

#[tokio::test(start_paused = true)]
async fn a_day_whose_replica_dies_in_the_middle_is_closed_by_another() {
    let world = World::starting_at("2026-11-21T01:00:00Z");
    let process = VirtualProcess::new();
    let first = world.replica(&process).await;
    world.clock.advance_to(at("2026-11-21T02:00:30Z")).await;
    process.freeze();
    drop(first);
    let second = world.replica(&VirtualProcess::new()).await;
    world.clock.advance_to(at("2026-11-21T02:03:00Z")).await;
    assert_eq!(world.closed(), ["2026-11-20"]);
    let status = second.status("close-day").await.unwrap();
    let last = status.last_run().unwrap();
    assert_eq!((last.attempt(), last.outcome()), (2, Some("ok")));
}
