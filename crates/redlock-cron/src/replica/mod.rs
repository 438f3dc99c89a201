//! The part that the jobs of one scheduler share on this replica: claims, tasks, the clock and the place where reports go.

mod claims;
mod tasks;

use std::sync::{Arc, Mutex, PoisonError};

use chrono::TimeDelta;
use redlock_core::{Redlock, Word};
use tokio::sync::Semaphore;

pub(crate) use self::{
    claims::{
        After, ClaimRequest, Claims, MOST_CLAIMS, Refusal, Won, cut_short_outcomes, finish, lines,
    },
    tasks::{Ending, STOP_GRACE, Tasks},
};
use crate::{
    SetupError,
    clock::{Clock, LONGEST_AHEAD},
    job::Namespace,
    record::Observer,
};

/// What the jobs of one scheduler share.
pub(crate) struct Replica {
    pub(crate) namespace: Namespace,
    pub(crate) claims: Claims,
    pub(crate) tasks: Arc<Tasks>,
    pub(crate) observer: Observer,
    pub(crate) clock: Arc<dyn Clock>,
    ahead: Mutex<TimeDelta>,
}

impl Replica {
    pub(crate) fn new(
        redlock: Redlock,
        namespace: &str,
        name: Option<String>,
        observer: Observer,
        clock: Arc<dyn Clock>,
        places: Option<usize>,
    ) -> Result<Arc<Self>, SetupError> {
        let namespace = Namespace::new(namespace)?;
        let replica = name.unwrap_or_else(default_name);
        if Word::new(&replica).is_none() {
            let most = Word::LONGEST;
            let message = format!(
                "{replica:?} is no name; it must have 1 to {most} bytes, no space and no control character"
            );
            return Err(SetupError::misuse("replica", message));
        }
        if let Some(places) = places
            && !(1..=MOST_PLACES).contains(&places)
        {
            let message = format!("it is {places}; it must be 1 to {MOST_PLACES}");
            return Err(SetupError::misuse("max_runs", message));
        }
        let observer = observer.of(&redlock, &namespace);
        Ok(Arc::new(Self {
            namespace,
            claims: Claims {
                redlock,
                replica,
                clock: Arc::clone(&clock),
                places: places.map(|places| Arc::new(Semaphore::new(places))),
                asking: Semaphore::new(MOST_CLAIMS),
            },
            tasks: Arc::default(),
            observer,
            clock,
            ahead: Mutex::default(),
        }))
    }

    /// Returns by how much this replica's clock is ahead of the nodes', as it was seen last: zero if it is not known,
    /// or if it is by more than a minute, because what the job does by such a clock is for people to look at.
    pub(crate) fn ahead(&self) -> TimeDelta {
        // Nothing panics while the lock is held.
        let ahead = *self.ahead.lock().unwrap_or_else(PoisonError::into_inner);
        match ahead.abs().to_std() {
            Ok(by) if by <= LONGEST_AHEAD => ahead,
            _ => TimeDelta::zero(),
        }
    }

    /// Compares this replica's clock with the nodes', as far as they are known.
    pub(crate) async fn look_at_clocks(&self) {
        if let Some(ahead) = self.claims.ahead().await {
            *self.ahead.lock().unwrap_or_else(PoisonError::into_inner) = ahead;
        }
    }
}

/// Returns the host, as containers call it, and the process.
pub(crate) fn default_name() -> String {
    let process = std::process::id();
    let host = std::env::var("HOSTNAME").unwrap_or_default();
    let host: String = host
        .chars()
        .filter(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_'))
        .take(LONGEST_HOST)
        .collect();
    if host.is_empty() {
        format!("replica:{process}")
    } else {
        format!("{host}:{process}")
    }
}

/// More runs than any machine has at the same time.
const MOST_PLACES: usize = 1_000_000;

/// So that the process fits in as well.
const LONGEST_HOST: usize = 48;
