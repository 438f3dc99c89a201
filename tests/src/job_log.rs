//! What replicas did with the ticks of jobs.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::Write,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    time::Duration,
};

use redlock_cron::chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use tempfile::TempDir;

use crate::now;

/// One line of what a replica did.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct JobEvent {
    /// When, as [`now`] counts.
    pub at: Duration,
    /// The replica.
    pub replica: String,
    /// The job, if it is about one.
    pub job: String,
    /// The tick, in seconds since the epoch.
    pub tick: i64,
    /// The milliseconds after the tick, if it is the moment of a request.
    pub millis: u32,
    /// What happened.
    pub moment: JobMoment,
}

/// What happened.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub enum JobMoment {
    /// The replica has started its jobs.
    Ready {
        /// What its wall clock shows, since the epoch.
        wall: Duration,
    },
    /// A run began.
    Began {
        /// Its fencing token.
        token: u64,
        /// Which run of the tick it is.
        attempt: u32,
        /// Why.
        trigger: String,
    },
    /// A run was told to stop.
    Told {
        /// Its fencing token.
        token: u64,
    },
    /// A run came to its end by itself.
    Finished {
        /// Its fencing token.
        token: u64,
    },
    /// A run was dropped before its end.
    Dropped {
        /// Its fencing token.
        token: u64,
        /// Until when it had worked.
        worked: Duration,
    },
    /// What became of a tick, or of several.
    Became {
        /// As [`Outcome`](redlock_cron::Outcome) says it.
        outcome: String,
        /// Why it was to be started.
        trigger: String,
        /// Which run of the tick it is.
        attempt: u32,
        /// The last tick, in seconds since the epoch.
        last: i64,
    },
}

/// Where one replica writes, each line with one write to the kernel: it stays, though the process is killed.
#[derive(Debug)]
pub(crate) struct JobLogWriter {
    file: Mutex<File>,
    replica: String,
}

impl JobLogWriter {
    pub(crate) fn open(path: &Path, replica: String) -> Self {
        let file = File::options().create(true).append(true).open(path);
        Self {
            file: Mutex::new(file.expect("the log can be opened")),
            replica,
        }
    }

    pub(crate) fn ready(&self) {
        let wall = Utc::now().signed_duration_since(DateTime::UNIX_EPOCH);
        let wall = wall.to_std().expect("it is after 1970");
        self.write("", DateTime::UNIX_EPOCH, JobMoment::Ready { wall });
    }

    pub(crate) fn write(&self, job: &str, tick: DateTime<Utc>, moment: JobMoment) {
        let event = JobEvent {
            at: now(),
            replica: self.replica.clone(),
            job: job.to_owned(),
            tick: tick.timestamp(),
            millis: tick.timestamp_subsec_millis(),
            moment,
        };
        let mut line = serde_json::to_string(&event).expect("an event is plain data");
        line.push('\n');
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.write_all(line.as_bytes())
            .expect("the log can be written");
    }
}

/// A run of a tick; moments are as [`now`] counts.
#[derive(Clone, Debug)]
pub struct JobRun {
    /// The tick, in seconds since the epoch.
    pub tick: i64,
    /// Which run of the tick it is.
    pub attempt: u32,
    /// Where it ran.
    pub replica: String,
    /// When it began.
    pub began: Duration,
    /// When it was told to stop, if it was.
    pub told: Option<Duration>,
    /// When it came to its end, if it did by itself.
    pub finished: Option<Duration>,
    /// When it was dropped, if it was.
    pub dropped: Option<Duration>,
    /// Until when it worked, if it is over and its process was not killed.
    pub worked: Option<Duration>,
    /// Its fencing token.
    pub token: u64,
    /// Why it was started.
    pub trigger: String,
}

/// What all replicas of a test did.
#[derive(Debug)]
pub struct JobLog {
    folder: TempDir,
}

impl JobLog {
    /// An empty one.
    ///
    /// # Panics
    ///
    /// If there is no place for it.
    #[expect(clippy::new_without_default, reason = "it makes a folder")]
    pub fn new() -> Self {
        let folder = tempfile::tempdir().expect("there is a place for temporary files");
        Self { folder }
    }

    /// The file for what one process does.
    pub fn file(&self, process: &str) -> PathBuf {
        self.folder.path().join(process)
    }

    /// What was written so far, in order.
    ///
    /// # Panics
    ///
    /// If something else was written.
    pub fn events(&self) -> Vec<JobEvent> {
        let mut events = Vec::new();
        for file in fs::read_dir(self.folder.path()).expect("the folder is there") {
            let text = fs::read_to_string(file.expect("it can be listed").path());
            let text = text.expect("it is text");
            // The last line may be about to be written.
            let whole = text.rfind('\n').map_or("", |end| &text[..end]);
            let parse = |line: &str| -> JobEvent {
                serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}"))
            };
            events.extend(whole.lines().map(parse));
        }
        events.sort_by_key(|event| event.at);
        events
    }

    /// The runs of a job, in the order of their beginnings.
    pub fn runs(&self, job: &str) -> Vec<JobRun> {
        let events = self.events();
        let of_job = || events.iter().filter(|event| event.job == job);
        let run = |event: &JobEvent| {
            let JobMoment::Began {
                token,
                attempt,
                trigger,
            } = &event.moment
            else {
                return None;
            };
            let mut run = JobRun {
                tick: event.tick,
                attempt: *attempt,
                replica: event.replica.clone(),
                began: event.at,
                told: None,
                finished: None,
                dropped: None,
                worked: None,
                token: *token,
                trigger: trigger.clone(),
            };
            let of_tick = of_job().filter(|e| e.tick == event.tick && e.replica == event.replica);
            of_tick.for_each(|event| run.note(event));
            Some(run)
        };
        of_job().filter_map(run).collect()
    }

    /// What is known of a run by now.
    ///
    /// # Panics
    ///
    /// If it never began.
    pub fn latest(&self, job: &str, run: &JobRun) -> JobRun {
        let is_it = |seen: &JobRun| (seen.tick, seen.token) == (run.tick, run.token);
        let runs = self.runs(job).into_iter();
        runs.rev().find(is_it).expect("it began")
    }

    /// What its replica said has become of a run's tick, if it has.
    pub fn outcome(&self, job: &str, run: &JobRun) -> Option<String> {
        let mut outcomes = self.outcomes(job).into_iter();
        let here = |(tick, replica, _): &(i64, String, String)| {
            (*tick, replica.as_str()) == (run.tick, run.replica.as_str())
        };
        outcomes.find(here).map(|(_, _, outcome)| outcome)
    }

    /// What became of the ticks of a job, each with its replica.
    pub fn outcomes(&self, job: &str) -> Vec<(i64, String, String)> {
        let events = self.events().into_iter();
        let outcome = |event: JobEvent| match event.moment {
            JobMoment::Became { outcome, .. } if event.job == job => {
                Some((event.tick, event.replica, outcome))
            }
            _ => None,
        };
        events.filter_map(outcome).collect()
    }

    /// Checks that no attempt of a tick of any job began twice, nor a run that was asked for; returns the number of
    /// runs.
    ///
    /// # Panics
    ///
    /// If one did.
    pub fn assert_none_twice(&self) -> usize {
        let mut began = BTreeMap::<_, Vec<_>>::new();
        for event in self.events() {
            if let JobMoment::Began {
                attempt, trigger, ..
            } = event.moment
            {
                let is_manual = trigger == "Manual";
                let run = (event.job, event.tick, attempt, is_manual);
                began.entry(run).or_default().push(event.replica);
            }
        }
        for (run, replicas) in &began {
            assert_eq!(replicas.len(), 1, "{run:?} began on {replicas:?}");
        }
        began.len()
    }

    /// Checks the same, and that tokens grew from run to run; returns the number of runs.
    ///
    /// # Panics
    ///
    /// If a run began twice, or they did not.
    pub fn assert_once(&self) -> usize {
        let mut newest = BTreeMap::new();
        for event in self.events() {
            if let JobMoment::Began { token, .. } = event.moment {
                let before = newest.insert(event.job.clone(), token);
                assert!(before < Some(token), "after token {before:?}: {event:?}");
            }
        }
        self.assert_none_twice()
    }

    /// Checks that no run of the job began while another one worked, unless that one's process was killed.
    ///
    /// # Panics
    ///
    /// If one did.
    pub fn assert_apart(&self, job: &str) {
        let runs = self.runs(job);
        for run in &runs {
            let Some(worked) = run.worked else {
                continue;
            };
            let within = |other: &&JobRun| run.began < other.began && other.began < worked;
            let other = runs.iter().find(within);
            assert!(other.is_none(), "{other:?} began in {run:?}");
        }
    }

    /// The runs of a job and what else became of its ticks, in lines.
    pub fn table(&self, job: &str) -> String {
        let runs = self.runs(job);
        let first = runs.first().map_or(Duration::ZERO, |run| run.began);
        let of_run = |run: &JobRun| {
            let after = |moment: Option<Duration>| moment.map(|at| at.saturating_sub(run.began));
            format!(
                "{job}: tick {}, attempt {} ({}) on {}, token {}: began at {:?}, told {:?}, finished {:?}, dropped {:?}: {}",
                run.tick,
                run.attempt,
                run.trigger,
                run.replica,
                run.token,
                run.began - first,
                after(run.told),
                after(run.finished),
                after(run.dropped),
                self.outcome(job, run).unwrap_or_default(),
            )
        };
        let mut lines: Vec<_> = runs.iter().map(of_run).collect();
        let mut others = BTreeMap::<_, usize>::new();
        for (_, replica, outcome) in self.outcomes(job) {
            *others.entry((replica, outcome)).or_default() += 1;
        }
        lines.push(format!("{job}: {others:?}"));
        lines.join("\n")
    }
}

impl JobRun {
    fn note(&mut self, event: &JobEvent) {
        match event.moment {
            JobMoment::Told { token } if token == self.token => self.told = Some(event.at),
            JobMoment::Finished { token } if token == self.token => {
                self.finished = Some(event.at);
                self.worked = Some(event.at);
            }
            JobMoment::Dropped { token, worked } if token == self.token => {
                self.dropped = Some(event.at);
                self.worked = Some(worked);
            }
            _ => {}
        }
    }
}
