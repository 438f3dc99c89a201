//! Each tick, request and tick of a backfill has one end that a replica reports, whatever happens to replicas and nodes.
//!
//! `REDLOCK_JOBS_SECONDS=600 cargo test -p redlock-tests --test it -- jobs_ends --nocapture` makes faults for ten minutes.
#![cfg(target_os = "linux")]

use std::{collections::BTreeMap, env, time::Duration};

use futures_util::future::join_all;
use redlock_core::Redlock;
use redlock_cron::{
    chrono::{TimeDelta, Utc},
    inspect, request_backfill, request_run,
};
use redlock_sandbox::{Persistence, ServerOptions};
use redlock_tests::{
    Connect, Fleet, Job, JobCheck, JobLog, JobMoment, MissedTicks, Nodes, OverlapPolicy, Policies,
    Random, ReplicaStop, now, voting,
};
use tokio::time::sleep;

/// Jobs with each policy; runs of some take longer than the time between ticks.
fn jobs() -> Vec<Job> {
    use OverlapPolicy::{Allow, CancelOther, Skip, UpTo, Wait};
    let (none, latest, all) = (MissedTicks::Skip, MissedTicks::Latest, MissedTicks::All);
    let policies = [
        ("skip", 3, 3_500, Skip, none),
        ("skip-latest", 2, 200, Skip, latest),
        ("skip-all", 2, 200, Skip, all),
        ("wait", 4, 3_000, Wait, none),
        ("wait-all", 3, 1_000, Wait, all),
        ("cancel", 4, 6_000, CancelOther, latest),
        ("allow", 2, 3_000, Allow, none),
        ("allow-latest", 3, 4_000, Allow, latest),
        ("upto", 2, 5_000, UpTo(2), none),
        ("again", 5, 1_500, Skip, none),
        ("again-all", 6, 1_500, Wait, all),
        // No tick of it is due.
        (ASKED, 30_000_000, 200, Wait, none),
    ];
    let job = |(name, seconds, work, overlap, missed): (&str, u64, u64, _, _)| {
        let (every, work) = (Duration::from_secs(seconds), Duration::from_millis(work));
        let is_again = name.starts_with("again");
        let policies = Policies {
            overlap,
            max_attempts: is_again.then_some(3),
            max_runtime: is_again.then_some(3 * SECOND),
            start_within: (name == ASKED).then_some(60 * SECOND),
            ..Policies::default()
        };
        Job {
            missed,
            policies,
            ..Job::new(name, every, work)
        }
    };
    policies.map(job).to_vec()
}

/// Three replicas of a service with these jobs, and what was done to them.
struct Service {
    nodes: Nodes,
    client: Redlock,
    fleet: Fleet,
    /// The replicas that are up, of which the last has a wall clock of its own.
    names: [String; 3],
    started: usize,
    random: Random,
    check: JobCheck,
    faults: BTreeMap<&'static str, usize>,
}

impl Service {
    async fn start() -> Self {
        let options = ServerOptions::default().persistence(Persistence::AppendOnly);
        let nodes = Nodes::start_with(3, &options);
        let connect = Connect {
            max_ttl: 2 * SECOND,
            ..Connect::to(nodes.urls(), TTL)
        };
        // A node that was restarted waits, whichever replicas begin.
        let of_replicas = Connect {
            vouches: false,
            ..connect.clone()
        };
        let mut service = Self {
            client: connect.client().await,
            fleet: Fleet::new(REPLICA, of_replicas, jobs()),
            nodes,
            names: Default::default(),
            started: 0,
            random: Random::new(),
            check: JobCheck {
                jobs: jobs(),
                wall: Utc::now().timestamp_millis() - millis(now()),
                ttl: TTL,
                ticks: 0..=0,
                stops: Vec::new(),
                requests: Vec::new(),
                backfills: Vec::new(),
            },
            faults: BTreeMap::new(),
        };
        service.begin(&[0, 1, 2]).await;
        // A job that the nodes do not know has missed no tick.
        let all_known = |log: &JobLog| {
            let mut due = jobs().into_iter().filter(|job| job.name != ASKED);
            due.all(|job| !log.runs(&job.name).is_empty()).then_some(())
        };
        service.fleet.until("each job has run", all_known).await;
        service.check.ticks = Utc::now().timestamp() + 1..=0;
        service
    }

    /// Starts replicas in these places, and waits until they are ready.
    async fn begin(&mut self, places: &[usize]) {
        for place in places {
            self.started += 1;
            let name = format!("{}{}", ["a", "b", "c"][*place], self.started);
            match place {
                2 => self.fleet.start_skewed(&name, 0),
                _ => self.fleet.start(&name, 10 * SECOND),
            }
            self.names[*place] = name;
        }
        let names: Vec<&str> = places.iter().map(|place| &*self.names[*place]).collect();
        self.fleet.ready(&names).await;
    }

    /// Asks a replica to end, and waits for it.
    async fn end(&mut self, place: usize) {
        self.fleet.stop(&self.names[place]).await;
    }

    fn kill(&mut self, place: usize) {
        self.fleet.kill(&self.names[place]);
        self.stopped(place, true);
    }

    /// Notes that a replica was killed or frozen now.
    fn stopped(&mut self, place: usize, is_kill: bool) {
        self.check.stops.push(ReplicaStop {
            replica: self.names[place].clone(),
            at: now(),
            is_kill,
        });
    }

    /// Returns the place of any replica.
    fn any(&mut self) -> usize {
        usize::try_from(self.random.below(3)).unwrap()
    }

    async fn suffer(&mut self, fault: &'static str) {
        let place = self.any();
        *self.faults.entry(fault).or_default() += 1;
        match fault {
            "deploy" => {
                for place in 0..3 {
                    self.end(place).await;
                    self.begin(&[place]).await;
                }
            }
            "kill" => {
                self.kill(place);
                self.begin(&[place]).await;
            }
            "freeze" => {
                self.stopped(place, false);
                self.fleet.replica(&self.names[place]).freeze();
                sleep(2 * TTL).await;
                self.fleet.replica(&self.names[place]).thaw();
            }
            // As `redlock roll` does: the next node is restarted when all vote.
            "roll" => {
                for node in 0..3 {
                    self.nodes[node].restart().unwrap();
                    voting(&self.client, 3, SOON).await;
                }
            }
            "step" => {
                let clock = self.fleet.clocks().last().unwrap();
                clock.advance(HOUR).unwrap();
                sleep(2 * SECOND).await;
                clock.set_back(2 * HOUR).unwrap();
                sleep(2 * SECOND).await;
                clock.advance(HOUR).unwrap();
            }
            "outage" => {
                let is_gentle = self.random.below(2) == 0;
                // The last one may have a run that goes on for longer than the time between ticks.
                for place in [2, 1, 0] {
                    match is_gentle {
                        true => self.end(place).await,
                        false => self.kill(place),
                    }
                }
                sleep(6 * SECOND).await;
                self.begin(&[0, 1, 2]).await;
            }
            _ => self.ask().await,
        }
    }

    /// Asks for runs of several jobs at once, and for the last ticks of a job again.
    async fn ask(&mut self) {
        let names = [ASKED, "skip", ASKED, "cancel", "allow", ASKED];
        let asked = names.map(|name| request_run(&self.client, NAMESPACE, name));
        for (name, asked) in names.into_iter().zip(join_all(asked).await) {
            // If no majority has confirmed it, it may run or not.
            let asked = asked.map(|moment| (name.to_owned(), moment.timestamp_millis()));
            self.check.requests.extend(asked);
        }
        let job = ["skip", "skip-latest", "again"][self.check.backfills.len() % 3];
        let ago = |seconds| Utc::now() - TimeDelta::seconds(seconds);
        let (from, to) = (ago(14), ago(7));
        let asked = request_backfill(&self.client, NAMESPACE, job, from, to).await;
        let range = from.timestamp() + 1..=to.timestamp();
        let asked = asked.map(|moment| (job.to_owned(), moment.timestamp_millis(), range));
        self.check.backfills.extend(asked);
    }

    /// Waits until nothing is wrong, because the last ticks need time for their ends; returns what still is in the end.
    async fn settle(&mut self) -> Vec<String> {
        self.check.ticks = *self.check.ticks.start()..=Utc::now().timestamp();
        let until = now() + SETTLE;
        loop {
            let wrong = self.check.violations(&self.fleet.log.events());
            if wrong.is_empty() || now() >= until {
                return wrong;
            }
            sleep(SECOND).await;
        }
    }

    /// Counts the reports of the logs by their outcomes, without those of other replicas' ticks.
    fn summary(&self) -> String {
        let mut outcomes = BTreeMap::<_, usize>::new();
        for event in self.fleet.log.events() {
            if let JobMoment::Became { outcome, .. } = event.moment
                && outcome != "not_winner"
            {
                *outcomes.entry(outcome).or_default() += 1;
            }
        }
        let (requests, backfills) = (self.check.requests.len(), self.check.backfills.len());
        let faults = &self.faults;
        format!("{faults:?}; {requests} requests, {backfills} backfills; reports {outcomes:?}")
    }
}

// Shows: T4.9, R6.6.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_tick_has_one_end_that_a_replica_reports_whatever_happens_to_replicas_and_nodes() {
    let seconds = env::var("REDLOCK_JOBS_SECONDS").map_or(40, |seconds| seconds.parse().unwrap());
    let mut service = Service::start().await;
    let until = now() + seconds * SECOND;
    let mut left = Vec::new();
    while now() < until {
        if left.is_empty() {
            left = FAULTS.to_vec();
        }
        let next = service.random.below(left.len() as u64);
        let fault = left.swap_remove(usize::try_from(next).unwrap());
        let pause = service.random.below_duration(SECOND);
        sleep(pause).await;
        service.suffer(fault).await;
    }
    let wrong = service.settle().await;
    service.fleet.stop_all().await;
    println!("{}", service.summary());
    for job in &service.check.jobs {
        if wrong
            .iter()
            .any(|wrong| wrong.starts_with(&format!("{}:", job.name)))
        {
            println!("{}", service.fleet.log.table(&job.name));
            let memory = inspect(&service.client, NAMESPACE, &job.name).await;
            println!("{memory:?}");
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    // A run may begin while the replicas end.
    let wrong = service.check.violations(&service.fleet.log.events());
    assert!(wrong.is_empty(), "in the end: {wrong:#?}");
    for job in service.check.jobs {
        let runs = service.fleet.log.runs(&job.name).len();
        assert!(runs > 0, "{} ran {runs} times", job.name);
        if !matches!(
            job.policies.overlap,
            OverlapPolicy::Allow | OverlapPolicy::UpTo(_)
        ) {
            service.fleet.log.assert_apart(&job.name);
        }
    }
}

fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap()
}

const REPLICA: &str = env!("CARGO_BIN_EXE_redlock-test-client");
const NAMESPACE: &str = "tests";
/// The job that runs on request only.
const ASKED: &str = "asked";
const FAULTS: [&str; 7] = ["deploy", "kill", "freeze", "roll", "step", "outage", "ask"];
const TTL: Duration = Duration::from_millis(1_500);
const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3_600);
const SOON: Duration = Duration::from_secs(60);
/// Longer than a request waits, and than a tick is started again.
const SETTLE: Duration = Duration::from_secs(90);
