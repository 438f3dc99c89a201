//! When each process worked, by the clock that all of them share.

use std::{
    fs::{self, OpenOptions},
    io::Write,
    path::PathBuf,
    thread,
    time::Duration,
};

use redlock_tests::now;
use serde::{Deserialize, Serialize};

/// A file to which processes write what they do.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Journal(PathBuf);

/// A time in which a process worked.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Stint {
    pub(crate) worker: String,
    pub(crate) from: Duration,
    /// `None` if it did not end.
    pub(crate) to: Option<Duration>,
}

impl Journal {
    pub(crate) fn at(path: PathBuf) -> Self {
        Self(path)
    }

    /// Has the worker of this name go on until [`release`](Self::release).
    pub(crate) fn hold_up(&self, worker: &str) {
        fs::write(self.held_up(worker), []).expect("the folder is there");
    }

    /// Lets it end.
    pub(crate) fn release(&self, worker: &str) {
        fs::remove_file(self.held_up(worker)).expect("it was held up");
    }

    /// Works, which is what a lease is for.
    pub(crate) fn work(&self, worker: &str) {
        self.write("began", worker);
        thread::sleep(LEAST);
        while self.held_up(worker).exists() {
            thread::sleep(POLL);
        }
        self.write("ended", worker);
    }

    fn held_up(&self, worker: &str) -> PathBuf {
        self.0.with_extension(worker)
    }

    /// The same, for a task.
    pub(crate) async fn work_in_a_task(self, worker: String) {
        let work = move || self.work(&worker);
        tokio::task::spawn_blocking(work).await.expect("it works");
    }

    fn write(&self, what: &str, worker: &str) {
        let file = OpenOptions::new().create(true).append(true).open(&self.0);
        let line = format!("{what} {worker} {}\n", now().as_nanos());
        // One call, so that lines of several processes do not mix.
        let written = file.and_then(|mut file| file.write_all(line.as_bytes()));
        written.expect("the journal can be written");
    }

    /// All of the work so far, in the order in which it began.
    pub(crate) fn stints(&self) -> Vec<Stint> {
        let mut stints = Vec::<Stint>::new();
        for line in fs::read_to_string(&self.0).unwrap_or_default().lines() {
            let words: Vec<_> = line.split(' ').collect();
            let [what, worker, at] = *words else {
                panic!("a line of the journal: {line}")
            };
            let at = Duration::from_nanos(at.parse().expect("a time in nanoseconds"));
            let open = |stint: &&mut Stint| stint.worker == worker && stint.to.is_none();
            match what {
                "began" => stints.push(Stint {
                    worker: worker.to_owned(),
                    from: at,
                    to: None,
                }),
                _ => stints.iter_mut().find(open).expect("it began").to = Some(at),
            }
        }
        stints.sort_by_key(|stint| stint.from);
        stints
    }
}

/// How long work takes at least.
const LEAST: Duration = Duration::from_millis(100);
const POLL: Duration = Duration::from_millis(5);
