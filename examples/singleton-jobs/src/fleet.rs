//! The replicas and what they said.

use std::collections::BTreeMap;

use redlock_cron::chrono::{DateTime, Utc};
use tokio::sync::mpsc;

use stage::{BoxError, Nodes};

use crate::{
    books::Books,
    line::Line,
    replica::{Replica, Said},
};

pub(crate) struct Fleet {
    /// By their numbers; one that is killed is none any more.
    replicas: BTreeMap<usize, Replica>,
    said: mpsc::UnboundedReceiver<Said>,
    pub(crate) books: Books,
}

/// How many replicas there are; they are numbered from 1.
pub(crate) const REPLICAS: usize = 3;

impl Fleet {
    /// Starts the replicas, and opens the books when their jobs are started.
    pub(crate) async fn start(nodes: &Nodes, flags: &[&str]) -> Result<Self, BoxError> {
        let (say, said) = mpsc::unbounded_channel();
        let mut fleet = Self {
            replicas: BTreeMap::new(),
            said,
            books: Books::default(),
        };
        // One after another, as in most deployments: so they wake up at different moments.
        for number in 1..=REPLICAS {
            let replica = Replica::start(number, &nodes.environment, flags, say.clone())?;
            fleet.replicas.insert(number, replica);
            let is_ready =
                |_: &Books, who, line: &Line| (who == number && *line == Line::Ready).then_some(());
            fleet.until(is_ready).await?;
        }
        fleet.books.open(Utc::now());
        Ok(fleet)
    }

    /// Takes notes until a line is what is waited for, which `look` is given with the replica's number.
    pub(crate) async fn until<T>(
        &mut self,
        mut look: impl FnMut(&Books, usize, &Line) -> Option<T>,
    ) -> Result<T, BoxError> {
        while let Some((number, line)) = self.said.recv().await {
            match line {
                Some(line) => {
                    self.books.note(number, line.clone());
                    if let Some(found) = look(&self.books, number, &line) {
                        return Ok(found);
                    }
                }
                None if self.replicas.contains_key(&number) => {
                    return Err(format!("replica {number} has ended").into());
                }
                // It was killed.
                None => {}
            }
        }
        Err("no replica is left".into())
    }

    /// Waits until a replica begins a run of the job, for a tick after `after` and not on the replica `except`.
    pub(crate) async fn run_of(
        &mut self,
        wanted: &str,
        after: DateTime<Utc>,
        except: usize,
    ) -> Result<(usize, DateTime<Utc>), BoxError> {
        let begins = |_: &Books, number: usize, line: &Line| match line {
            Line::Began { job, tick } if job == wanted && *tick > after && number != except => {
                Some((number, *tick))
            }
            _ => None,
        };
        self.until(begins).await
    }

    pub(crate) fn replica(&self, number: usize) -> Result<&Replica, BoxError> {
        let replica = self.replicas.get(&number);
        replica.ok_or_else(|| format!("replica {number} was killed").into())
    }

    /// Ends a replica without a word (SIGKILL).
    pub(crate) fn kill(&mut self, number: usize) -> Result<(), BoxError> {
        let mut replica = self
            .replicas
            .remove(&number)
            .ok_or("it was killed before")?;
        replica.kill()
    }

    /// Asks the replicas that are left to end, and hears them out.
    pub(crate) async fn stop(mut self) -> Result<Books, BoxError> {
        for replica in self.replicas.values() {
            replica.terminate()?;
        }
        let mut unfinished = 0;
        while let Some((number, line)) = self.said.recv().await {
            if let Some(Line::Ended { unfinished: runs }) = line {
                unfinished += runs;
            }
            if let Some(line) = line {
                self.books.note(number, line);
            }
        }
        for replica in self.replicas.values_mut() {
            replica.finish()?;
        }
        match unfinished {
            0 => Ok(self.books),
            _ => Err(
                format!("{unfinished} runs did not end within the grace of the shutdown").into(),
            ),
        }
    }
}
