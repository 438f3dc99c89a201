//! The books: which replica ran which tick.

use std::{collections::BTreeMap, fmt};

use redlock_cron::chrono::{DateTime, Utc};

use crate::line::Line;

/// What all replicas said of each tick, by second and job.
#[derive(Debug, Default)]
pub(crate) struct Books {
    ticks: BTreeMap<(DateTime<Utc>, String), Entry>,
    /// Ticks before this were missed by earlier replicas, and are not ours.
    opened: Option<DateTime<Utc>>,
}

/// What was said of one tick of one job.
#[derive(Debug, Default)]
pub(crate) struct Entry {
    /// On which replicas its work began.
    pub(crate) began: Vec<usize>,
    /// What became of it, and on which replica.
    pub(crate) became: Vec<(usize, String)>,
}

/// What the books say in the end.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sum {
    pub(crate) ticks: usize,
    pub(crate) runs: usize,
    /// Ticks whose work began more than once.
    pub(crate) twice: usize,
    /// Ticks that no replica ran, and for which none gave a reason.
    pub(crate) silent: usize,
}

impl Books {
    pub(crate) fn open(&mut self, at: DateTime<Utc>) {
        self.opened = Some(at);
    }

    pub(crate) fn note(&mut self, replica: usize, line: Line) {
        match line {
            Line::Began { job, tick } => {
                if let Some(entry) = self.entry(job, tick) {
                    entry.began.push(replica);
                }
            }
            Line::Became { job, tick, outcome } => {
                if let Some(entry) = self.entry(job, tick) {
                    entry.became.push((replica, outcome));
                }
            }
            Line::Ready | Line::Finished { .. } | Line::Ended { .. } => {}
        }
    }

    fn entry(&mut self, job: String, tick: DateTime<Utc>) -> Option<&mut Entry> {
        let is_ours = self.opened.is_some_and(|opened| tick > opened);
        is_ours.then(|| self.ticks.entry((tick, job)).or_default())
    }

    pub(crate) fn of(&self, job: &str, tick: DateTime<Utc>) -> Option<&Entry> {
        self.ticks.get(&(tick, job.to_owned()))
    }

    /// All seconds that have a tick, in order.
    pub(crate) fn seconds(&self) -> Vec<DateTime<Utc>> {
        let mut seconds: Vec<_> = self.ticks.keys().map(|(tick, _)| *tick).collect();
        seconds.dedup();
        seconds
    }

    /// How many ticks of a job have begun on some replica.
    pub(crate) fn ran(&self, job: &str) -> usize {
        let of_job = self.ticks.iter().filter(|((_, name), _)| name == job);
        of_job.filter(|(_, entry)| !entry.began.is_empty()).count()
    }

    pub(crate) fn sum(&self) -> Sum {
        let mut sum = Sum::default();
        for entry in self.ticks.values() {
            sum.ticks += 1;
            sum.runs += entry.began.len();
            sum.twice += usize::from(entry.began.len() > 1);
            sum.silent += usize::from(entry.began.is_empty() && entry.reason().is_none());
        }
        sum
    }
}

impl Entry {
    /// What became of it on this replica.
    pub(crate) fn on(&self, replica: usize) -> Option<&str> {
        let mut became = self.became.iter();
        became
            .find(|(number, _)| *number == replica)
            .map(|(_, outcome)| outcome.as_str())
    }

    /// Returns the reason that a replica gave for not running it; that another replica ran it is no reason.
    pub(crate) fn reason(&self) -> Option<&str> {
        let mut reasons = self.became.iter().map(|(_, outcome)| outcome.as_str());
        reasons.find(|outcome| *outcome != "not_winner")
    }
}

impl fmt::Display for Sum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            ticks, runs, twice, ..
        } = self;
        write!(f, "{ticks} ticks, {runs} runs, {twice} twice")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(second, 0).unwrap()
    }

    fn began(books: &mut Books, replica: usize, second: i64) {
        let (job, tick) = ("job".to_owned(), at(second));
        books.note(replica, Line::Began { job, tick });
    }

    fn became(books: &mut Books, replica: usize, second: i64, outcome: &str) {
        let (job, tick, outcome) = ("job".to_owned(), at(second), outcome.to_owned());
        books.note(replica, Line::Became { job, tick, outcome });
    }

    #[test]
    fn a_tick_that_ran_twice_or_that_nobody_explains_is_counted() {
        let mut books = Books::default();
        books.open(at(0));
        began(&mut books, 1, 1);
        became(&mut books, 1, 1, "ok");
        became(&mut books, 2, 1, "not_winner");
        began(&mut books, 1, 2);
        began(&mut books, 2, 2);
        became(&mut books, 1, 3, "not_winner");
        became(&mut books, 1, 4, "overlapping");
        became(&mut books, 1, -5, "missed");
        let sum = books.sum();
        assert_eq!(sum.to_string(), "4 ticks, 3 runs, 1 twice");
        assert_eq!(sum.silent, 1);
        assert_eq!(books.ran("job"), 2);
        assert_eq!(books.seconds(), [1, 2, 3, 4].map(at));
    }
}
