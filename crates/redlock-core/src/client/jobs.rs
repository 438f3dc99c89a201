//! Claims of ticks, and what nodes remember of them.

use redlock_proto::{Fairness, LeaseTerms, Window};

use super::Redlock;
use crate::{
    AcquireError, AcquireOptions, Claim, ClaimOptions, ClaimOutcome, InvalidKey, InvalidOption,
    JobReading, Mode, NodeReport, ResourceKey, ResourceKeys, Tick, Wait, Word,
    engine::{AcquireRequest, NotWon},
    guard::scope::{self, HeldByScopes, Scopes},
    lease::LeaseRequest,
};

/// The class of leases under which runs go on.
const JOB: &str = "job";

/// The greatest number of a tick's run, which has two digits on the nodes.
const MOST_ATTEMPTS: u8 = 99;

impl Redlock {
    /// Claims a tick of a job: the right to start its run, and the lock that the run holds.
    ///
    /// A lock alone does not limit a job to one run for each tick: a quick run has released the lock before a replica
    /// whose clock is a second behind comes to the tick.
    /// So the nodes remember the newest claimed tick, and grant no tick up to it.
    /// They decide by their own clocks whether the tick is due.
    /// So a replica whose clock is off cannot start ticks early, and cannot use them up for the other replicas.
    /// At most one claim of a tick wins, whatever a minority's clocks do, and even if nodes lose their data; see
    /// [`early`](ClaimOptions::early) for the setting on which all claimants must agree.
    ///
    /// The job's lock is the resource of the same name, unless the options name [another](ClaimOptions::lock).
    /// So an [`acquire`](Self::acquire) of that resource excludes runs.
    /// Claims of one process take their turns in its queue.
    /// One that follows a run of its own process at once leaves the lock to other processes for 25 ms first.
    /// A claim waits for the end of another run, for a majority, and for the tick's window to open.
    ///
    /// # Errors
    ///
    /// [`AcquireError::kind`] says whether the caller, the operator or the program must act.
    /// After an error the caller holds nothing, and other replicas can claim the tick.
    /// [`Contended`](crate::AcquireErrorKind::Contended): another run of the job lasted for the whole wait.
    /// The nodes' decision about the tick itself is no error but a [`ClaimOutcome`].
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime with its timer enabled.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future releases in the background each key that a node has granted or will grant.
    /// If the client had already asked the nodes to remember the tick, perhaps no replica can claim it any more.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use redlock_core::{ClaimOptions, ClaimOutcome, Redlock, Tick, Word};
    /// use std::time::{Duration, Instant, SystemTime};
    ///
    /// let redlock = Redlock::builder().in_memory_nodes(3).build().await?;
    /// let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
    /// let tick = Tick::from_millis(now.as_secs() * 1_000).ok_or("the clock is off by centuries")?;
    /// match redlock.claim("close-day", tick, ClaimOptions::new("pod-7")).await? {
    ///     ClaimOutcome::Won(claim) => {
    ///         let started = Instant::now();
    ///         claim.run(async { /* close the books */ }).await?;
    ///         let ok = Word::new("ok").ok_or("it has a space")?;
    ///         claim.finish(ok, started.elapsed()).await?;
    ///     }
    ///     other => println!("not here: {other:?}"),
    /// }
    /// # let again = redlock.claim("close-day", tick, ClaimOptions::new("pod-8")).await?;
    /// # assert!(matches!(again, ClaimOutcome::AlreadyClaimed { .. }), "{again:?}");
    /// # Ok(())
    /// # }
    /// ```
    pub async fn claim<K>(
        &self,
        job: K,
        tick: Tick,
        options: ClaimOptions,
    ) -> Result<ClaimOutcome, AcquireError>
    where
        K: TryInto<ResourceKey>,
        K::Error: Into<InvalidKey>,
    {
        let job = job
            .try_into()
            .map_err(|invalid| AcquireError::from(invalid.into()))?;
        let key = options.lock.unwrap_or_else(|| job.clone());
        let client = &*self.client;
        // It would wait for itself.
        let keys = ResourceKeys::from(key.clone());
        if let Some(scopes) = Scopes::current(client.engine.client())
            && !matches!(scopes.look(&keys, Mode::Exclusive), HeldByScopes::Nothing)
        {
            return Err(scopes.already_held(&keys, Mode::Exclusive));
        }
        if scope::holds(client.engine.client(), &keys) {
            return Err(AcquireError::already_held());
        }
        let mut lease = AcquireOptions::new();
        (lease.ttl, lease.max_hold) = (options.ttl, options.max_hold);
        let timing = client.settings.timing_of(&lease);
        let timing = timing.map_err(|invalid| AcquireError::option(&invalid))?;
        let replica = Word::new(&options.replica).ok_or_else(|| {
            let message = format!(
                "it must have 1 to {} bytes, no space and no control character",
                Word::LONGEST
            );
            AcquireError::option(&InvalidOption::new("replica", message))
        })?;
        if !(1..=MOST_ATTEMPTS).contains(&options.attempt) {
            let message = format!("it is {}; from 1 to {MOST_ATTEMPTS}", options.attempt);
            let invalid = InvalidOption::new("attempt", message);
            return Err(AcquireError::option(&invalid));
        }
        let claim = redlock_proto::TickClaim {
            job: client.key_space.encode_job(&job),
            series: options.series,
            tick,
            attempt: options.attempt,
            window: Window::new(options.early, options.start_within),
            fingerprint: options.fingerprint,
            replica,
            not_after: options.not_after,
        };
        let now = client.clock.now();
        let wait = if options.wait.is_zero() {
            Wait::Never
        } else {
            Wait::UpTo(options.wait)
        };
        let terms = LeaseTerms {
            is_shared: false,
            timing,
            renew: true,
            max_hold: options.max_hold,
            slots: None,
            fairness: Fairness::Cohort,
        };
        let request = AcquireRequest {
            subject: LeaseRequest {
                mode: Mode::Exclusive,
                keys,
                place: None,
                site: client.site(Some(JOB), terms, None, None),
            },
            slots: None,
            tokens: 1,
            wait_until: now + options.wait,
            // The tick's window limits the wait for a majority, because no user waits for the answer.
            quorum_wait: None,
            asked_at: now,
            is_scoped: false,
            is_part: false,
            before: None,
            claim: Some(Box::new(claim)),
        };
        let most_waiting = client.settings.max_waiters_per_key;
        match client.win(request, wait, most_waiting, None).await {
            Ok((guard, _)) if !guard.lease().is_held() => Ok(ClaimOutcome::Unconfirmed {
                reports: Vec::new(),
            }),
            Ok((guard, last)) => Ok(ClaimOutcome::Won(Box::new(Claim::new(guard, tick, last)))),
            Err(NotWon::Refused(why, reports)) => Ok(ClaimOutcome::not(why, reports)),
            Err(NotWon::Failed(error)) => Err(error),
        }
    }

    /// Returns the record of a job on the nodes: of each series, the newest claimed tick and the last runs, and whether the
    /// resource of the job's name is free.
    ///
    /// That resource is the lock of its runs, unless they were claimed with [`ClaimOptions::lock`]: then whether that one
    /// is free says nothing of them.
    ///
    /// It asks every node, and waits for the nodes' time limit at the longest.
    ///
    /// # Errors
    ///
    /// The name is not valid.
    ///
    /// # Cancel safety
    ///
    /// Dropping it has no effect.
    pub async fn job_status<K>(&self, job: K) -> Result<JobReading, InvalidKey>
    where
        K: TryInto<ResourceKey>,
        K::Error: Into<InvalidKey>,
    {
        let key = job.try_into().map_err(Into::into)?;
        let client = &*self.client;
        let keyspace = &client.key_space;
        let (job, lock) = (keyspace.encode_job(&key), keyspace.encode(&key)?);
        let (record, answers) = client.engine.read_job(&job, &lock, None).await;
        let reports = NodeReport::of_all(&client.names, answers);
        Ok(JobReading::new(record, reports))
    }
}
