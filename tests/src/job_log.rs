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
        /// Why.
        trigger: String,
    },
    /// A run came to its end by itself.
    Finished,
    /// What became of a tick.
    Became {
        /// As [`Outcome`](redlock_cron::Outcome) says it.
        outcome: String,
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
            moment,
        };
        let mut line = serde_json::to_string(&event).expect("an event is plain data");
        line.push('\n');
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.write_all(line.as_bytes())
            .expect("the log can be written");
    }
}

/// A run of a tick.
#[derive(Clone, Debug)]
pub struct JobRun {
    /// The tick, in seconds since the epoch.
    pub tick: i64,
    /// Where it ran.
    pub replica: String,
    /// When it began, as [`now`] counts.
    pub began: Duration,
    /// When it came to its end, if it did by itself.
    pub finished: Option<Duration>,
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
            let JobMoment::Began { token, trigger } = &event.moment else {
                return None;
            };
            let mut later = of_job().filter(|e| e.tick == event.tick && e.replica == event.replica);
            let finished = later.find(|e| e.moment == JobMoment::Finished);
            Some(JobRun {
                tick: event.tick,
                replica: event.replica.clone(),
                began: event.at,
                finished: finished.map(|event| event.at),
                token: *token,
                trigger: trigger.clone(),
            })
        };
        of_job().filter_map(run).collect()
    }

    /// What became of the ticks of a job, each with its replica.
    pub fn outcomes(&self, job: &str) -> Vec<(i64, String, String)> {
        let events = self.events().into_iter();
        let outcome = |event: JobEvent| match event.moment {
            JobMoment::Became { outcome } if event.job == job => {
                Some((event.tick, event.replica, outcome))
            }
            _ => None,
        };
        events.filter_map(outcome).collect()
    }

    /// Checks that no tick of any job began twice, and that tokens grew from run to run; returns the number of runs.
    ///
    /// # Panics
    ///
    /// If one did, or they did not.
    pub fn assert_once(&self) -> usize {
        let mut began = BTreeMap::<_, Vec<_>>::new();
        let mut newest = BTreeMap::new();
        for event in self.events() {
            if let JobMoment::Began { token, .. } = event.moment {
                let before = newest.insert(event.job.clone(), token);
                assert!(before < Some(token), "after token {before:?}: {event:?}");
                let of_tick = began.entry((event.job, event.tick)).or_default();
                of_tick.push(event.replica);
            }
        }
        for (tick, replicas) in &began {
            assert_eq!(replicas.len(), 1, "{tick:?} began on {replicas:?}");
        }
        began.len()
    }

    /// Checks that no run of the job began while another one, which came to its end, went on.
    ///
    /// # Panics
    ///
    /// If one did.
    pub fn assert_apart(&self, job: &str) {
        let runs = self.runs(job);
        for run in &runs {
            let Some(finished) = run.finished else {
                continue;
            };
            let within = |other: &&JobRun| run.began < other.began && other.began < finished;
            let other = runs.iter().find(within);
            assert!(other.is_none(), "{other:?} began in {run:?}");
        }
    }
}
