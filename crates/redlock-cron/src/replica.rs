use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use redlock_core::Redlock;

use crate::{
    SetupError, SingletonJob,
    claim::{Claims, Terms},
    clock::Clock,
    due::Progress,
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
        observer: Observer,
        clock: Arc<dyn Clock>,
    ) -> Result<Arc<Self>, SetupError> {
        let namespace = Namespace::new(namespace)?;
        let ttl = redlock.ttl();
        let claims = Claims::new(redlock, Arc::clone(&clock));
        let retention = claims.retention();
        if retention <= SHORTEST_START_WITHIN {
            let message = format!(
                "the client's is {retention:?}; it must be longer than {SHORTEST_START_WITHIN:?}, \
                 because that is how long a tick stays marked as started"
            );
            return Err(SetupError::misuse("max_ttl", message));
        }
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
        let schedule = Schedule::parse(&job.pattern, job.zone.look_up()?)?;
        let now = self.clock.now();
        if schedule.next_after(now).is_none() {
            return Err(SetupError::never_fires(&job.pattern));
        }
        let terms = self.terms(&job)?;
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

    fn terms(&self, job: &SingletonJob) -> Result<Terms, SetupError> {
        let retention = self.claims.retention();
        let start_within = match job.start_within {
            None => (retention / 3).max(SHORTEST_START_WITHIN),
            Some(limit) if (SHORTEST_START_WITHIN..retention).contains(&limit) => limit,
            Some(limit) => {
                let message = format!(
                    "{limit:?} is not between {SHORTEST_START_WITHIN:?} and less than the client's \
                     max_ttl of {retention:?}"
                );
                return Err(SetupError::misuse("start_within", message));
            }
        };
        let ttl = job.ttl.unwrap_or(self.ttl);
        let shortest = Redlock::MIN_TTL;
        if !(shortest..=retention).contains(&ttl) {
            let message = format!(
                "{ttl:?} is not between {shortest:?} and the client's max_ttl of {retention:?}"
            );
            return Err(SetupError::misuse("ttl", message));
        }
        Ok(Terms { start_within, ttl })
    }
}

/// tokio-cron-scheduler looks at its jobs every half second, so a shorter limit would refuse ticks
/// that are not late at all.
const SHORTEST_START_WITHIN: Duration = Duration::from_secs(1);
