use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use redlock_core::{Redlock, Word};

use crate::{
    SetupError, SingletonJob,
    claim::{Claims, Terms},
    clock::Clock,
    due::Progress,
    fingerprint,
    identity::{JobId, Namespace},
    observer::Observer,
    runner::JobRunner,
    schedule::Schedule,
    tasks::Tasks,
};

/// What the jobs of one scheduler share.
pub(crate) struct Replica {
    pub(crate) namespace: Namespace,
    pub(crate) claims: Claims,
    pub(crate) tasks: Arc<Tasks>,
    pub(crate) observer: Observer,
    pub(crate) clock: Arc<dyn Clock>,
    /// The time to live of a job's lease where it asks for none.
    pub(crate) ttl: Duration,
}

impl Replica {
    pub(crate) fn new(
        redlock: Redlock,
        namespace: &str,
        name: &str,
        observer: Observer,
        clock: Arc<dyn Clock>,
    ) -> Result<Arc<Self>, SetupError> {
        let namespace = Namespace::new(namespace)?;
        let ttl = redlock.ttl();
        let Some(name) = Word::new(name) else {
            let message = format!(
                "{name:?} is no name; it must have 1 to {} bytes, no space and no control character",
                Word::LONGEST
            );
            return Err(SetupError::misuse("replica", message));
        };
        let claims = Claims::new(redlock, name);
        let tasks = Arc::default();
        Ok(Arc::new(Self {
            namespace,
            claims,
            tasks,
            observer,
            clock,
            ttl,
        }))
    }

    /// The job, checked, from now on.
    pub(crate) fn job(self: &Arc<Self>, job: SingletonJob) -> Result<Arc<JobRunner>, SetupError> {
        let id = JobId::new(self.namespace.clone(), &job.name)?;
        let zone = job.zone.look_up()?;
        let schedule = Schedule::parse(&job.pattern, zone)?;
        let now = self.clock.now();
        if schedule.next_after(now).is_none() {
            return Err(SetupError::never_fires(&job.pattern));
        }
        let terms = self.terms(&job, zone.name())?;
        let progress = Mutex::new(Progress::from(now));
        let replica = Arc::clone(self);
        Ok(Arc::new(JobRunner {
            replica,
            id,
            schedule,
            terms,
            work: job.work,
            progress,
        }))
    }

    fn terms(&self, job: &SingletonJob, zone: &str) -> Result<Terms, SetupError> {
        let start_within = job.start_within.unwrap_or(START_WITHIN);
        if !(SHORTEST_START_WITHIN..=LONGEST_START_WITHIN).contains(&start_within) {
            let message = format!(
                "{start_within:?} is not between {SHORTEST_START_WITHIN:?} and {LONGEST_START_WITHIN:?}"
            );
            return Err(SetupError::misuse("start_within", message));
        }
        let (ttl, shortest, longest) = (
            job.ttl.unwrap_or(self.ttl),
            Redlock::MIN_TTL,
            self.claims.max_ttl(),
        );
        if !(shortest..=longest).contains(&ttl) {
            let message = format!(
                "{ttl:?} is not between {shortest:?} and the client's max_ttl of {longest:?}"
            );
            return Err(SetupError::misuse("ttl", message));
        }
        let millis = |duration: Duration| duration.as_millis().to_string();
        let fingerprint = fingerprint::of([
            &*job.pattern,
            zone,
            chrono_tz::IANA_TZDB_VERSION,
            &millis(start_within),
        ]);
        Ok(Terms {
            start_within,
            ttl,
            fingerprint,
        })
    }
}

const START_WITHIN: Duration = Duration::from_secs(10);

/// tokio-cron-scheduler looks at its jobs every half second, so a shorter limit would refuse ticks
/// that are not late at all.
const SHORTEST_START_WITHIN: Duration = Duration::from_secs(1);

/// What is longer than this is no delay but a run of another day.
const LONGEST_START_WITHIN: Duration = Duration::from_secs(24 * 60 * 60);
