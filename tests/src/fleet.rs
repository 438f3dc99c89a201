//! Replicas with the same jobs, in processes of their own.

use std::{collections::BTreeMap, fmt::Debug, time::Duration};

use redlock_cron::SingletonScheduler;
use redlock_sandbox::ProcessClock;
use tokio::time::sleep;

use crate::{ClientProcess, Connect, Job, JobLog, JobMoment, JobRun, Jobs, Work, now};

/// Replicas, which end with this value, and what they did.
#[derive(Debug)]
pub struct Fleet {
    program: &'static str,
    connect: Connect,
    jobs: Vec<Job>,
    replicas: BTreeMap<String, ClientProcess>,
    clocks: Vec<ProcessClock>,
    /// What they did.
    pub log: JobLog,
}

impl Fleet {
    /// No replica as yet; `program` is the client program.
    pub fn new(program: &'static str, connect: Connect, jobs: Vec<Job>) -> Self {
        Self {
            program,
            connect,
            jobs,
            replicas: BTreeMap::new(),
            clocks: Vec::new(),
            log: JobLog::new(),
        }
    }

    /// Starts a replica.
    ///
    /// # Panics
    ///
    /// If it cannot be started.
    pub fn start(&mut self, name: &str, grace: Duration) {
        let process = ClientProcess::start(self.program, &self.work(name, grace));
        self.replicas.insert(name.to_owned(), process);
    }

    /// Starts a replica whose wall clock is so many milliseconds ahead.
    ///
    /// # Panics
    ///
    /// If it cannot be started.
    pub fn start_skewed(&mut self, name: &str, millis: i64) {
        let clock = ProcessClock::create().expect("there are clocks on Linux");
        let distance = Duration::from_millis(millis.unsigned_abs());
        let set = match millis {
            0.. => clock.advance(distance),
            _ => clock.set_back(distance),
        };
        set.expect("the clock can be set");
        let work = self.work(name, Duration::ZERO);
        let process = ClientProcess::start_at(self.program, &work, Some(&clock));
        self.replicas.insert(name.to_owned(), process);
        self.clocks.push(clock);
    }

    fn work(&self, name: &str, grace: Duration) -> Work {
        Work::Jobs(self.jobs_of(name, grace))
    }

    fn jobs_of(&self, name: &str, grace: Duration) -> Jobs {
        Jobs {
            log: self.log.file(name),
            connect: self.connect.clone(),
            replica: name.to_owned(),
            jobs: self.jobs.clone(),
            grace,
        }
    }

    /// A scheduler of this process with the same jobs, which is not started.
    ///
    /// # Panics
    ///
    /// If it cannot be made.
    pub async fn scheduler(&self, name: &str) -> SingletonScheduler {
        self.jobs_of(name, Duration::ZERO).scheduler().await.0
    }

    /// The wall clocks of the replicas that were started with one of their own.
    pub fn clocks(&self) -> &[ProcessClock] {
        &self.clocks
    }

    /// Its process.
    ///
    /// # Panics
    ///
    /// If there is none of that name.
    pub fn replica(&self, name: &str) -> &ClientProcess {
        &self.replicas[name]
    }

    /// Waits until these replicas have started their jobs; returns what their wall clocks show at the beginning of
    /// [`now`]'s time, in milliseconds.
    ///
    /// # Panics
    ///
    /// If one has not within a minute.
    pub async fn ready(&self, names: &[&str]) -> Vec<i64> {
        let ready = |log: &JobLog| {
            let events = log.events();
            let wall = |name: &&str| {
                let mut of_replica = events.iter().filter(|event| event.replica == *name);
                of_replica.find_map(|event| match event.moment {
                    JobMoment::Ready { wall } => i64::try_from((wall - event.at).as_millis()).ok(),
                    _ => None,
                })
            };
            names.iter().map(wall).collect::<Option<Vec<_>>>()
        };
        self.until("the replicas are ready", ready).await
    }

    /// Looks at what they did until there is what is looked for.
    ///
    /// # Panics
    ///
    /// If there is not within two minutes.
    pub async fn until<T: Debug>(&self, what: &str, look: impl Fn(&JobLog) -> Option<T>) -> T {
        let until = now() + LIMIT;
        loop {
            if let Some(found) = look(&self.log) {
                return found;
            }
            if now() >= until {
                let events = self.log.events();
                let last = events.iter().rev().take(40).rev();
                panic!(
                    "{what}: not within {LIMIT:?}: {:#?}",
                    last.collect::<Vec<_>>()
                );
            }
            sleep(POLL).await;
        }
    }

    /// Waits for a run that begins from now on, on some replica.
    ///
    /// # Panics
    ///
    /// As [`until`](Self::until).
    pub async fn next_run(&self, job: &str, wanted: impl Fn(&JobRun) -> bool) -> JobRun {
        let so_far = self.log.runs(job).len();
        let next = |log: &JobLog| log.runs(job).into_iter().skip(so_far).find(&wanted);
        self.until("a run begins", next).await
    }

    /// Kills a replica.
    pub fn kill(&mut self, name: &str) {
        if let Some(process) = self.replicas.remove(name) {
            process.kill();
        }
    }

    /// Asks a replica to end, and waits for it; returns how many runs had not finished.
    ///
    /// # Panics
    ///
    /// If it does not end in order.
    pub async fn stop(&mut self, name: &str) -> usize {
        let process = self.replicas.remove(name).expect("it was started");
        process.terminate();
        process.finish(LIMIT).await
    }

    /// Asks all replicas to end, and waits for it.
    ///
    /// # Panics
    ///
    /// If one does not end in order.
    pub async fn stop_all(&mut self) {
        for process in self.replicas.values() {
            process.terminate();
        }
        while let Some((_, process)) = self.replicas.pop_first() {
            process.finish::<usize>(LIMIT).await;
        }
    }
}

const LIMIT: Duration = Duration::from_secs(120);
const POLL: Duration = Duration::from_millis(20);
