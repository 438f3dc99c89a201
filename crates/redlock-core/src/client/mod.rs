mod jobs;

use std::{
    fmt,
    sync::Arc,
    time::{Duration, SystemTime},
};

use redlock_proto::{Acquire, NoPlace, QueueLimits, RunRecord, Terms};
use tokio::select;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use crate::{
    AcquireError, AcquireOptions, InvalidKey, InvalidOption, LockGuard, NodeReport, Renewal,
    ResourceKey, ResourceKeys, Wait,
    clock::Clock,
    course::{self, Course},
    engine::{AcquireRequest, EngineHandle, NotWon, Parked, Won},
    keyspace::KeySpace,
    lease::{Subject, class_of},
    meter::Meter,
    queue::{Queue, Turn},
    settings::Settings,
    within,
};

/// The client: acquires leases on resources over a fixed set of nodes.
///
/// Cloning it is cheap and gives another handle to the same client; a process needs one per set of
/// nodes.
/// The client runs on a thread of its own, so that work which blocks a runtime's thread cannot
/// delay a renewal.
/// That thread ends when the last handle and the last guard are dropped and the clean-up is done.
///
/// # Examples
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use redlock_core::Redlock;
///
/// let redlock = Redlock::builder()
///     .nodes(["redis://10.0.0.1", "redis://10.0.0.2", "redis://10.0.0.3"])
///     .build()
///     .await?;
/// let guard = redlock.acquire("invoice:2026-11").await?;
/// let sent = guard.run(async { /* work that must not overlap */ }).await;
/// guard.release().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Redlock {
    client: Arc<Shared>,
}

struct Shared {
    engine: EngineHandle,
    queue: Arc<Queue<Parked>>,
    closing: CancellationToken,
    clock: Clock,
    names: Vec<Arc<str>>,
    key_space: KeySpace,
    settings: Settings,
    namespace: Arc<str>,
    meter: Meter,
}

impl Redlock {
    /// The shortest time to live that may be asked for: 100 ms.
    pub const MIN_TTL: Duration = Settings::MIN_TTL;

    pub(crate) fn new(
        engine: EngineHandle,
        clock: Clock,
        names: Vec<Arc<str>>,
        key_space: KeySpace,
        settings: Settings,
        meter: Meter,
    ) -> Self {
        let queue = Queue::new(clock);
        let closing = CancellationToken::new();
        let client = Shared {
            engine,
            queue,
            closing,
            clock,
            names,
            namespace: key_space.name(),
            key_space,
            settings,
            meter,
        };
        Self {
            client: Arc::new(client),
        }
    }

    /// Acquires a lease on `key`, waiting as long as the client's default wait (5 s) if another holds
    /// it.
    ///
    /// See [`acquire_with`](Self::acquire_with), which says what is common to all forms.
    ///
    /// # Errors
    ///
    /// As [`acquire_with`](Self::acquire_with).
    ///
    /// # Cancel safety
    ///
    /// As [`acquire_with`](Self::acquire_with).
    pub async fn acquire<K>(&self, key: K) -> Result<LockGuard, AcquireError>
    where
        K: TryInto<ResourceKey>,
        K::Error: Into<InvalidKey>,
    {
        self.acquire_with(key, AcquireOptions::new()).await
    }

    /// Makes one attempt to acquire a lease on `key`.
    ///
    /// # Errors
    ///
    /// As [`acquire_with`](Self::acquire_with);
    /// [`Contended`](crate::AcquireErrorKind::Contended) at once if another holds it.
    ///
    /// # Cancel safety
    ///
    /// As [`acquire_with`](Self::acquire_with).
    pub async fn try_acquire<K>(&self, key: K) -> Result<LockGuard, AcquireError>
    where
        K: TryInto<ResourceKey>,
        K::Error: Into<InvalidKey>,
    {
        self.acquire_with(key, AcquireOptions::new().wait(Wait::Never))
            .await
    }

    /// Acquires a lease on `key` as `options` say.
    ///
    /// Callers of one process take their turns in order, one of them contends at a time.
    /// A lease passes from one to the next without asking the nodes, under a new fencing token; see
    /// [`max_hand_overs`](crate::RedlockBuilder::max_hand_overs).
    /// When they have followed each other for a quarter of a second, the next leaves a gap of 25 ms for
    /// other processes.
    /// It is decided by a strict majority, so that a minority which is down, slow or hung does not fail it, and does not
    /// delay it by more than [`fan_out`](crate::RedlockBuilder::fan_out) says.
    /// A wait ends by its deadline, at most two time limits of a node (half a second each by default)
    /// later: the last attempt begins then, and its token may have to be stored on a majority.
    /// It is for another holder: without a majority of the nodes it fails earlier, as
    /// [`quorum_wait`](crate::RedlockBuilder::quorum_wait) says.
    ///
    /// # Errors
    ///
    /// [`AcquireError::kind`] says who must act; nothing is held after an error.
    /// In what [runs](crate::Lease::run) under a lease of this client on the same resource, it is
    /// [`AlreadyHeld`](crate::AcquireErrorKind::AlreadyHeld) at once: it would wait for itself.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime with its timer enabled.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future gives up the place in the queue, and whatever was or will be granted is
    /// released in the background.
    pub async fn acquire_with<K>(
        &self,
        key: K,
        options: AcquireOptions,
    ) -> Result<LockGuard, AcquireError>
    where
        K: TryInto<ResourceKey>,
        K::Error: Into<InvalidKey>,
    {
        let key = key
            .try_into()
            .map_err(|invalid| AcquireError::from(invalid.into()))?;
        self.acquire_all_with(key.into(), options).await
    }

    /// Acquires one lease on all of `keys`, waiting as long as the client's default wait (5 s) if others hold some of
    /// them.
    ///
    /// See [`acquire_all_with`](Self::acquire_all_with).
    ///
    /// # Errors
    ///
    /// As [`acquire_all_with`](Self::acquire_all_with).
    ///
    /// # Cancel safety
    ///
    /// As [`acquire_with`](Self::acquire_with).
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
    /// // A transfer between two accounts, in whatever direction.
    /// let guard = redlock.acquire_all(["account:9", "account:7"]).await?;
    /// assert!(redlock.try_acquire("account:7").await.is_err());
    /// assert_eq!(guard.keys().len(), 2);
    /// guard.release().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn acquire_all<I>(&self, keys: I) -> Result<LockGuard, AcquireError>
    where
        I: IntoIterator,
        I::Item: TryInto<ResourceKey>,
        <I::Item as TryInto<ResourceKey>>::Error: Into<InvalidKey>,
    {
        let keys = ResourceKeys::new(keys)?;
        self.acquire_all_with(keys, AcquireOptions::new()).await
    }

    /// Acquires one lease on all of `keys`, as `options` say: 1 to 16 different keys, granted together or not at all.
    ///
    /// It has one deadline and one fencing token, which is greater than that of every lease before it on each of its keys.
    /// A node grants all keys or none, in one step, so two sets that share keys never keep each other waiting with half of
    /// theirs, in whatever order they are given.
    /// A set waits while any of its keys is held, and keeps no key while it waits: between processes it has the key that is
    /// wanted by many less often than those who want that key alone.
    /// Callers of one process take their turns for one key after the other, in the order of the keys.
    /// A lease on a set is not handed over to the next caller of the process, and an extension of it counts on a node only
    /// if the node still has every key.
    ///
    /// # Errors
    ///
    /// As [`acquire_with`](Self::acquire_with); and [`Misuse`](crate::AcquireErrorKind::Misuse) if there is no key or there
    /// are more than 16 different ones.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime with its timer enabled.
    ///
    /// # Cancel safety
    ///
    /// As [`acquire_with`](Self::acquire_with).
    pub async fn acquire_all_with(
        &self,
        keys: ResourceKeys,
        options: AcquireOptions,
    ) -> Result<LockGuard, AcquireError> {
        let client = &*self.client;
        if within::holds(client.engine.client(), &keys) {
            return Err(AcquireError::already_held());
        }
        let timing = client.settings.timing_of(&options);
        let timing = timing.map_err(|invalid| AcquireError::option(&invalid))?;
        let wait = options.wait.unwrap_or(client.settings.wait);
        let class = class_of(options.class.as_deref(), &keys);
        let meter = client.meter.lock(class);
        let acquire = Acquire {
            label: client.settings.label_for(class),
            keys: client.key_space.encode_all(&keys)?,
            timing,
            renew: options.renewal == Renewal::Automatic,
            max_hold: options.max_hold,
            tokens: if keys.are_several() {
                1
            } else {
                client.settings.hand_overs + 1
            },
            wait_until: client.clock.now() + wait.duration(),
            quorum_wait: Some(options.quorum_wait.unwrap_or(client.settings.quorum_wait)),
        };
        let limits = client.settings.queue;
        let limits = QueueLimits {
            per_key: options.max_waiters_per_key.unwrap_or(limits.per_key),
            total: options.max_waiters.unwrap_or(limits.total),
        };
        let request = AcquireRequest {
            subject: Subject {
                keys,
                class: options.class,
                timing,
                meter,
            },
            acquire,
            claim: None,
        };
        let won = client.win(request, wait, limits).await;
        let (guard, _) = won.map_err(NotWon::into_error)?;
        if guard.lease().is_held() {
            Ok(guard)
        } else {
            Err(AcquireError::expired())
        }
    }

    /// Checks that leases can be asked for with `options`.
    ///
    /// [`acquire_with`](Self::acquire_with) does it too; this is for programs that take options when they are set
    /// up, long before the first acquire.
    ///
    /// # Errors
    ///
    /// The option at fault, and what it may be.
    pub fn check(&self, options: &AcquireOptions) -> Result<(), InvalidOption> {
        self.client.settings.timing_of(options).map(drop)
    }

    /// Makes every waiting and future acquire fail with
    /// [`Closed`](crate::AcquireErrorKind::Closed), and waits until all clean-up is done.
    ///
    /// Leases that are held stay held, and renewed, until their guards are dropped; this does not
    /// wait for them.
    /// Clean-up ends by the nodes' time limit at the latest.
    ///
    /// # Cancel safety
    ///
    /// The client is closed once this was polled; dropping it only stops waiting.
    pub async fn close(&self) {
        self.client.closing.cancel();
        self.client.engine.close().await;
    }

    /// Returns where each node stands: whether it can be reached and votes, and if not, why.
    ///
    /// For health checks and operators; acquires do not need it.
    ///
    /// # Cancel safety
    ///
    /// Dropping it has no effect.
    pub async fn node_reports(&self) -> Vec<NodeReport> {
        NodeReport::of_all(&self.client.names, self.client.engine.standing().await)
    }

    /// Returns what the nodes' wall clocks show now: the one in the middle, of a majority that agrees within a second.
    ///
    /// `None` if no majority does, or so many have not been reached.
    /// It is what their last answers said and the time since then, so that no node is asked; it is known to about a
    /// round trip, and to 2 % of that time.
    /// The nodes judge [ticks](Self::claim) by their clocks, so this says how far off a machine's own is.
    ///
    /// # Cancel safety
    ///
    /// Dropping it has no effect.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use redlock_core::Redlock;
    /// use std::time::{Duration, SystemTime};
    ///
    /// let redlock = Redlock::builder().in_memory_nodes(3).build().await?;
    /// redlock.acquire("invoice:2026-11").await?.release().await?;
    /// let theirs = redlock.node_time().await.ok_or("their clocks disagree")?;
    /// let ahead = SystemTime::now().duration_since(theirs).unwrap_or_default();
    /// assert!(ahead < Duration::from_secs(1), "synchronise this machine's clock");
    /// # Ok(())
    /// # }
    /// ```
    pub async fn node_time(&self) -> Option<SystemTime> {
        let time = self.client.engine.node_time().await?;
        SystemTime::UNIX_EPOCH.checked_add(Duration::from_micros(time.as_micros()))
    }

    /// Lets every node vote at once that is only quarantined, and says where each node stands then.
    ///
    /// Whoever calls this vouches that none of the nodes has forgotten a lease that may still be valid: that
    /// they are new, or that no client of the namespace has run for the longest time to live.
    /// If that is not so, two holders are possible.
    /// Of jobs it vouches for more: that none of the nodes has forgotten a tick that may still be claimed, however
    /// long ago it was started.
    /// Ticks that were forgotten may start again; without a blessing, a node refuses all that it may have forgotten.
    /// It is for the first start of a set of nodes, and for tests.
    ///
    /// # Cancel safety
    ///
    /// Nodes may be told all the same after it was polled.
    pub async fn dangerous_bless(&self) -> Vec<NodeReport> {
        NodeReport::of_all(&self.client.names, self.client.engine.bless().await)
    }

    /// Returns a number for this client that no other client of the process has; all its handles tell the same.
    pub fn id(&self) -> u64 {
        self.client.engine.client()
    }

    /// Returns the namespace of all keys; `verbatim` where names are keys just as they are.
    pub fn namespace(&self) -> Arc<str> {
        Arc::clone(&self.client.namespace)
    }

    /// Returns the number of nodes.
    pub fn nodes(&self) -> usize {
        self.client.names.len()
    }

    /// Returns the number of nodes that must grant: a strict majority.
    pub fn majority(&self) -> usize {
        self.nodes() / 2 + 1
    }

    /// Returns the time to live of a lease for which none is asked.
    pub fn ttl(&self) -> Duration {
        self.client.settings.ttl
    }

    /// Returns the longest time to live that may be asked for.
    pub fn max_ttl(&self) -> Duration {
        self.client.settings.max_ttl
    }
}

impl Shared {
    /// Wins the lease as [`contend`](Self::contend) does, and has those see it who look on.
    async fn win(
        &self,
        request: AcquireRequest,
        wait: Wait,
        limits: QueueLimits,
    ) -> Result<(LockGuard, Option<RunRecord>), NotWon> {
        let subject = &request.subject;
        let client = self.engine.client();
        let span = course::acquire(client, &self.namespace, subject.class());
        let course = Course::begin(subject.meter.clone(), span.clone());
        let contend = self.contend(request, wait, limits, &course);
        let won = contend.instrument(span).await;
        match &won {
            Ok((guard, _)) => course.won(guard.token(), guard.lease().is_held()),
            Err(why) => course.failed(why),
        }
        let (mut guard, last) = won?;
        guard.watch(course::hold(client, guard.lease().class(), guard.token()));
        Ok((guard, last))
    }

    /// Waits for the turn of its key in this process and wins the lease, from the holder before or from the nodes.
    ///
    /// The lease may be over already: the answer may have waited for this caller, whose thread was blocked or paused
    /// meanwhile.
    async fn contend(
        &self,
        request: AcquireRequest,
        wait: Wait,
        limits: QueueLimits,
        course: &Course,
    ) -> Result<(LockGuard, Option<RunRecord>), NotWon> {
        let keys = &request.subject.keys;
        let turn = self.turn(keys, wait, limits).await;
        let turn =
            turn.map_err(|error| NotWon::Failed(error).ahead(self.queue.callers_of(keys.iter())))?;
        course.has_its_turn();
        // A claim takes nothing over: what a holder before has left was acquired without the tick.
        let parked = turn.inherit().filter(|_| request.claim.is_none());
        let terms = Terms::of(&request.acquire);
        let subject = || request.subject.clone();
        if let Some(holding) = parked.and_then(|p| p.take_over(subject(), terms, self.clock)) {
            return Ok((LockGuard::new(holding, turn), None));
        }
        turn.leave_a_gap(wait.duration()).await;
        let (attempts, won) = self.engine.acquire(request).await;
        course.attempted(attempts);
        let Won { holding, last } = won.map_err(|why| why.ahead(turn.behind()))?;
        turn.won();
        Ok((LockGuard::new(holding, turn), last))
    }

    async fn turn(
        &self,
        keys: &ResourceKeys,
        wait: Wait,
        limits: QueueLimits,
    ) -> Result<Turn<Parked>, AcquireError> {
        if self.closing.is_cancelled() {
            return Err(AcquireError::closed());
        }
        let turn = self.turn_of_all(keys, wait, limits);
        if let Wait::Never = wait {
            return turn.await;
        }
        select! {
            biased;
            () = self.closing.cancelled() => Err(AcquireError::closed()),
            turn = turn => turn,
            () = tokio::time::sleep(wait.duration()) => Err(AcquireError::contended_locally()),
        }
    }

    /// Takes the turn of one key after the other, so that nobody who has one waits for who waits for it.
    async fn turn_of_all(
        &self,
        keys: &ResourceKeys,
        wait: Wait,
        limits: QueueLimits,
    ) -> Result<Turn<Parked>, AcquireError> {
        let mut turns: Option<Turn<Parked>> = None;
        for (number, key) in keys.iter().enumerate() {
            let mut held = within::held(self.engine.client());
            held.extend_from_slice(&keys.as_slice()[..number]);
            let place = self.queue.enter(key, held, limits);
            let place = place.map_err(|why| match why {
                NoPlace::FullPerKey => {
                    AcquireError::overloaded("the resource's local queue is full")
                }
                NoPlace::FullInTotal => AcquireError::overloaded("the local queues are full"),
                NoPlace::Deadlock => AcquireError::deadlock(),
            })?;
            let turn = if let Wait::Never = wait {
                let turn = place.try_turn();
                turn.ok_or_else(AcquireError::contended_locally)?
            } else {
                place.turn().await
            };
            match &mut turns {
                Some(turns) => turns.join(turn),
                None => turns = Some(turn),
            }
        }
        // invariant: there is a key
        turns.ok_or_else(AcquireError::closed)
    }
}

impl fmt::Debug for Redlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redlock")
            .field("nodes", &self.nodes())
            .field("settings", &self.client.settings)
            .finish_non_exhaustive()
    }
}
