//! The text of a job's status, for an operator.

use std::{fmt, time::Duration};

use chrono::SecondsFormat;
use redlock_core::Printable;

use crate::{JobStatus, PastRun};

/// Some lines, of which the first says how things stand now; without a line break at the end.
///
/// The words are for people and may change.
impl fmt::Display for JobStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_paused = self.is_paused() == Some(true);
        let is_locked = self.free_in().is_some_and(|left| !left.is_zero());
        match self.running() {
            Some(run) => write!(f, "running on {}", Printable::new(run.replica()))?,
            None if is_paused => f.write_str("paused")?,
            None if is_locked => f.write_str("locked, though no run is known")?,
            None if self.is_lock_known => f.write_str("idle")?,
            None => f.write_str("unknown: too few nodes answered")?,
        }
        if !self.is_known() && (self.is_lock_known || is_paused || self.running().is_some()) {
            f.write_str(", and a part is missing")?;
        }
        if let Some(left) = self.free_in().filter(|left| !left.is_zero()) {
            write!(f, ", its lease ends in {} unless renewed", rounded(left))?;
        }
        if is_paused && self.running().is_some() {
            f.write_str(", and paused from its end on")?;
        }
        if let Some(next) = self.next_tick() {
            let next = next.to_rfc3339_opts(SecondsFormat::Secs, true);
            write!(f, "\n  next tick     {next}")?;
        } else {
            f.write_str("\n  next tick     none: the schedule has ended")?;
        }
        match self.last_run() {
            Some(run) => write!(f, "\n  last run      {run}")?,
            None if self.is_known() => f.write_str("\n  last run      none is remembered")?,
            None => {}
        }
        if let Some(run) = self.last_success() {
            write!(f, "\n  last success  {run}")?;
        }
        for skipped in self.skipped() {
            let tick = skipped.tick().to_rfc3339_opts(SecondsFormat::Secs, true);
            write!(f, "\n  skipped here  {tick}")?;
            if skipped.ticks() > 1 {
                let last = skipped
                    .last_tick()
                    .to_rfc3339_opts(SecondsFormat::Secs, true);
                write!(f, " to {last}, {} ticks", skipped.ticks())?;
            }
            write!(f, ": {}", skipped.outcome())?;
            if let Some(why) = skipped.detail() {
                write!(f, ", {}", Printable::new(&why.replace('\n', "; ")))?;
            }
        }
        if self.disagreeing() > 0 {
            let others = self.disagreeing();
            write!(
                f,
                "\n  configured otherwise on {others} replica(s) that ran it"
            )?;
        }
        if let Some(offset) = self.clock_offset() {
            let ms = offset.num_milliseconds();
            write!(f, "\n  this clock    {ms:+} ms from the nodes'")?;
        }
        let mut nodes = self.nodes().iter();
        nodes.try_for_each(|node| write!(f, "\n  node {node}"))
    }
}

/// One line: the tick, where it ran, and how it ended.
impl fmt::Display for PastRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tick = self.tick().to_rfc3339_opts(SecondsFormat::Secs, true);
        write!(f, "{tick} on {}", Printable::new(self.replica()))?;
        if self.attempt() > 1 {
            write!(f, ", attempt {}", self.attempt())?;
        }
        if self.is_manual() {
            f.write_str(", by hand")?;
        }
        match (self.outcome(), self.took()) {
            (Some(outcome), Some(took)) => {
                let outcome = Printable::new(outcome);
                write!(f, ": {outcome} after {}", rounded(took))
            }
            _ => f.write_str(": no end is known"),
        }
    }
}

/// Writes a time to the millisecond.
fn rounded(time: Duration) -> String {
    let millis = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    format!("{:?}", Duration::from_millis(millis))
}
