//! The part that the jobs of one scheduler share on this replica: claims, tasks, the clock and the place where reports go.

mod claims;
mod tasks;

use std::{sync::Arc, time::Duration};

use chrono::{DateTime, TimeDelta, Utc};
use redlock_core::{Redlock, Word};
use tokio::{sync::Semaphore, time::Instant};

pub(crate) use self::{
    claims::{
        After, ClaimRequest, Claims, MOST_CLAIMS, Refusal, WonClaim, finish, finish_noted, lines,
    },
    tasks::{JobSignals, STOP_GRACE, Tasks},
};
use parking_lot::Mutex;

use crate::{SetupError, clock::WallClock, job::JobNamespace, record::Reporter};

/// The part that the jobs of one scheduler share.
pub(crate) struct Replica {
    pub(crate) namespace: JobNamespace,
    pub(crate) claims: Claims,
    pub(crate) tasks: Arc<Tasks>,
    pub(crate) observer: Reporter,
    pub(crate) clock: Arc<dyn WallClock>,
    nodes_time: Mutex<NodesTime>,
}

impl Replica {
    pub(crate) fn new(
        redlock: Redlock,
        namespace: &str,
        name: Option<String>,
        observer: Reporter,
        clock: Arc<dyn WallClock>,
        places: Option<usize>,
    ) -> Result<Arc<Self>, SetupError> {
        let namespace = JobNamespace::new(namespace)?;
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
            nodes_time: Mutex::default(),
        }))
    }

    /// Returns the time of day by the nodes' clocks, however far this replica's is off; by its own until they are known.
    pub(crate) fn nodes_now(&self) -> DateTime<Utc> {
        let known = self.nodes_time.lock().now(Instant::now());
        known.unwrap_or_else(|| self.clock.now())
    }

    /// Returns by how much this replica's clock is ahead of the nodes', as far as they are known.
    pub(crate) fn ahead(&self) -> Option<TimeDelta> {
        let known = self.nodes_time.lock().now(Instant::now());
        known.map(|nodes| self.clock.now() - nodes)
    }

    /// Asks the client what the nodes' clocks show.
    pub(crate) async fn look_at_clocks(&self) {
        let asked = Instant::now();
        let Some(shown) = self.claims.redlock.node_time().await else {
            return;
        };
        let answered = Instant::now();
        let before = self.nodes_now();
        self.nodes_time
            .lock()
            .note(shown.into(), asked, answered, before);
    }

    /// Returns whether the nodes' time has differed from the expected one since the last call, and forgets it.
    pub(crate) fn take_time_jump(&self) -> bool {
        std::mem::take(&mut self.nodes_time.lock().has_jumped)
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

/// The longest part of the host, so that the process fits in as well.
const LONGEST_HOST: usize = 48;

/// The time that the nodes' clocks showed last, and when.
///
/// The replica's own wall clock plays no part in it once the nodes are known: a wall clock may be set at any moment, also
/// while a task sleeps.
/// Between two looks, the time goes on by a clock that cannot be set.
#[derive(Debug, Default)]
struct NodesTime {
    known: Option<(DateTime<Utc>, Instant)>,
    has_jumped: bool,
}

impl NodesTime {
    /// Returns what the nodes' clocks show at `now`; `None` if they were never known.
    fn now(&self, now: Instant) -> Option<DateTime<Utc>> {
        let (shown, at) = self.known?;
        let since = TimeDelta::from_std(now.saturating_duration_since(at)).ok()?;
        shown.checked_add_signed(since)
    }

    /// Notes what the nodes' clocks showed at some moment between `asked` and `answered`; `before` is what was expected.
    ///
    /// An expectation that is as good as the answer stays, because this process may have waited for the answer.
    fn note(
        &mut self,
        shown: DateTime<Utc>,
        asked: Instant,
        answered: Instant,
        before: DateTime<Utc>,
    ) {
        let took = answered.saturating_duration_since(asked);
        let latest = TimeDelta::from_std(took)
            .ok()
            .and_then(|took| shown.checked_add_signed(took));
        let latest = latest.unwrap_or(shown);
        let now = before.clamp(shown, latest);
        self.has_jumped |= (now - before).abs() > NEGLIGIBLE;
        self.known = Some((now, answered));
    }
}

/// By how much the nodes' time may differ from the expected one before ticks are looked for again.
const NEGLIGIBLE: TimeDelta = TimeDelta::milliseconds(200);

/// The time between two looks at the nodes' clocks while a task waits for an instant of theirs.
pub(crate) const LOOK: Duration = Duration::from_secs(1);
