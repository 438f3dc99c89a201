//! The books as a table: a row for each second, a column for each job.

use std::fmt;

use crate::books::{Books, Entry};

pub(crate) struct Table<'a> {
    pub(crate) books: &'a Books,
    pub(crate) jobs: &'a [&'a str],
}

impl fmt::Display for Table<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "  {:8}", "tick")?;
        for job in self.jobs {
            write!(f, "  {job:WIDTH$}")?;
        }
        for tick in self.books.seconds() {
            write!(f, "\n  {}", tick.format("%H:%M:%S"))?;
            for job in self.jobs {
                let cell = self.books.of(job, tick).map_or_else(String::new, cell);
                write!(f, "  {cell:WIDTH$}")?;
            }
        }
        Ok(())
    }
}

/// The replicas on which it ran, with the outcome if that is not `ok`; or why it did not.
fn cell(entry: &Entry) -> String {
    if entry.began.is_empty() {
        return format!("- {}", entry.reason().unwrap_or("not said why"));
    }
    let ran = entry.began.iter().map(|replica| match entry.on(*replica) {
        Some("ok") => replica.to_string(),
        Some(outcome) => format!("{replica} {outcome}"),
        None => format!("{replica} ..."),
    });
    ran.collect::<Vec<_>>().join(", ")
}

const WIDTH: usize = 16;
