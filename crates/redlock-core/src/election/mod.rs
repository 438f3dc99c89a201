//! Election of a leader among replicas: a term is a lease on the resource of the election's name.

mod observer;
mod preference;
mod term;

use std::{fmt, sync::Arc, time::Duration};

use redlock_proto::HolderLabel;
use tokio::{select, sync::watch};

pub use self::{
    observer::{Leadership, Observer},
    term::Term,
};
use self::{
    preference::Preference,
    term::{OwnTerm, Resignation},
};
use crate::{
    AcquireError, AcquireErrorKind, AcquireOptions, BuildError, InvalidKey, Lease, LockGuard,
    Redlock, ResourceKey, Wait, lease::OwnLabel,
};

/// An election: at most one of its candidates leads at a time.
///
/// A *term* is an exclusive lease on the resource of the election's name, which the client renews.
/// So terms of one election never overlap, and the fencing token of each term is greater than those before it.
/// A plain acquire of that resource excludes a leader, too.
///
/// A leader that resigns, or that closes its client while it is in [`lead`](Self::lead), frees the role at once.
/// A leader that crashes keeps it for the ttl at most.
/// A leader that is frozen loses its term at the deadline by its own clock, and the next term begins no earlier.
/// The other candidates wait as for any lease that another process holds: in line, or by asking again at random times.
/// Observers look at the nodes, and learn of a change a third of the ttl later at most.
/// An observer whose candidate is the next in line learns of a new leader within a second.
///
/// # Preferred candidates
///
/// A candidate may be [preferred](ElectionBuilder::preferred), such as the replica beside the database.
/// While it campaigns, it asks a leader that is not preferred to resign: it holds a second lease, on the resource
/// `NAME#preferred`.
/// The leader learns of that by [`Term::asked_to_resign`], and decides when it has come to a good end.
/// Until the preferred candidate has won, other candidates may win short terms, in which they are asked, too.
/// A leader that is preferred is not asked.
///
/// Cloning it is cheap and returns another handle to the same candidate.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use redlock_core::{Redlock, Term};
///
/// let redlock = Redlock::builder().in_memory_nodes(3).build().await?;
/// let election = redlock.election("importer").candidate("web-7").build()?;
/// # let closer = redlock.clone();
/// election
///     .lead(|term: Term| {
///         # let closer = closer.clone();
///         async move {
///             // Runs on one replica; dropped when the term is lost.
///             println!("term {}", term.token());
///             # closer.close().await;
///         }
///     })
///     .await?; // campaigns again after each term, until `redlock.close()`
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Election {
    /// It acquires outside of scopes: a term ends by its own rules only.
    redlock: Redlock,
    key: ResourceKey,
    candidate: Arc<OwnLabel>,
    ttl: Duration,
    /// The class and the metrics of its terms.
    of_terms: AcquireOptions,
    preference: Preference,
    /// The last term that this handle or a clone of it won.
    own: OwnTerm,
}

/// The settings of an [`Election`], from [`Redlock::election`].
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
/// use std::time::Duration;
///
/// let builder = redlock.election("importer").candidate("web-7").preferred(true);
/// let election = builder.ttl(Duration::from_secs(5)).build()?;
/// assert!(!election.is_leader());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "an election is made by `build`"]
pub struct ElectionBuilder {
    redlock: Redlock,
    key: Result<ResourceKey, InvalidKey>,
    candidate: Option<String>,
    ttl: Option<Duration>,
    is_preferred: bool,
}

impl Redlock {
    /// Returns the builder of an election, whose name is a resource of this client's namespace.
    ///
    /// The class of its leases is the class of the [key](ResourceKey::class), or else the name itself, so a name without a
    /// class must be no secret: log lines and metrics show it.
    pub fn election<K>(&self, name: K) -> ElectionBuilder
    where
        K: TryInto<ResourceKey>,
        K::Error: Into<InvalidKey>,
    {
        ElectionBuilder {
            redlock: self.clone().outside_scopes(),
            key: name.try_into().map_err(Into::into),
            candidate: None,
            ttl: None,
            is_preferred: false,
        }
    }
}

impl ElectionBuilder {
    /// Sets the public name of this candidate, such as its address: 1 to 64 printable characters of ASCII.
    ///
    /// Observers see it, so it must be no secret.
    /// Default: the client's [label](crate::RedlockBuilder::label), or `candidate` if it has none.
    pub fn candidate(mut self, candidate: impl Into<String>) -> Self {
        self.candidate = Some(candidate.into());
        self
    }

    /// Sets the time for which a leader that crashed keeps the role: from 100 ms to the client's `max_ttl`.
    ///
    /// Default: the client's ttl.
    /// Observers look every third of it.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = Some(ttl);
        self
    }

    /// Sets whether this candidate is a [preferred](Election#preferred-candidates) one: whether it asks leaders that are
    /// not preferred to resign.
    ///
    /// It begins to ask when its campaign has lasted for the time limit of a node, half a second by default.
    /// Several candidates can be preferred; none of them asks another one.
    /// Default: `false`.
    pub fn preferred(mut self, is_preferred: bool) -> Self {
        self.is_preferred = is_preferred;
        self
    }

    /// Returns the election; asks no node.
    ///
    /// # Errors
    ///
    /// [`Misuse`](crate::BuildErrorKind::Misuse): the name, the candidate or the ttl is not valid, or the name is too long
    /// with `#preferred` behind it.
    pub fn build(self) -> Result<Election, BuildError> {
        let misuse =
            |field: &str, why: &dyn fmt::Display| BuildError::misuse(field, why.to_string());
        let key = self.key.map_err(|invalid| misuse("name", &invalid))?;
        let asks = key.part("preferred");
        let asks = asks.map_err(|invalid| misuse("name", &invalid))?;
        let candidate = match &self.candidate {
            Some(candidate) => candidate.parse::<HolderLabel>(),
            None => self.redlock.label_or("candidate"),
        };
        let candidate = candidate.map_err(|invalid| misuse("candidate", &invalid))?;
        let ttl = self.ttl.unwrap_or_else(|| self.redlock.ttl());
        let options = AcquireOptions::new().ttl(ttl);
        let checked = self.redlock.check(&options);
        checked.map_err(|invalid| misuse("ttl", &invalid))?;
        let class = key.class().unwrap_or_else(|| key.as_str());
        let mut of_terms = AcquireOptions::new().class(class);
        of_terms.meter = Some(self.redlock.election_meter(class));
        Ok(Election {
            redlock: self.redlock,
            of_terms,
            key,
            candidate: Arc::new(OwnLabel::new(candidate)),
            ttl,
            preference: Preference {
                is_preferred: self.is_preferred,
                asks,
            },
            own: Arc::new(watch::Sender::new(None)),
        })
    }
}

impl Election {
    /// Returns the labels `namespace` and `lock` that the metrics of its terms have, as [`Redlock::lock_labels`] does for
    /// leases.
    ///
    /// With the feature `metrics`.
    #[cfg(feature = "metrics")]
    pub fn lock_labels(&self) -> [(&'static str, Arc<str>); 2] {
        let class = self.key.class().unwrap_or_else(|| self.key.as_str());
        self.redlock.lock_labels(Some(class))
    }

    /// Campaigns, calls `work` with each term that it wins, and campaigns again after each term, until the client is
    /// [closed](Redlock::close).
    ///
    /// The future that `work` returns runs as in [`Lease::run`]: it is dropped when the term is lost or resigned.
    /// If that future returns by itself, the leader resigns, and pauses for a third of the ttl before it campaigns
    /// again, so that another candidate can lead.
    /// A loop that ought to go on must not return, unless it is [asked to resign](Term::asked_to_resign).
    /// An outage of the nodes ends no campaign: after a third of the ttl, it goes on.
    ///
    /// When the client is closed, the work is dropped, and the term is resigned.
    /// An application that shuts down closes the client, and then waits for this future.
    ///
    /// # Errors
    ///
    /// A campaign can never succeed: the caller holds the resource itself, or the client cannot be used.
    /// A contended role and a missing majority are no errors.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime with its timer enabled.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the work and resigns the term in the background, also if the work has moved its
    /// [`Term`] to another task.
    pub async fn lead<F, W>(&self, mut work: F) -> Result<(), AcquireError>
    where
        F: FnMut(Term) -> W,
        W: Future<Output = ()>,
    {
        let closing = self.redlock.closing();
        let pause = async || {
            select! {
                biased;
                () = closing.cancelled() => {}
                () = tokio::time::sleep(self.ttl / 3) => {}
            }
        };
        while !closing.is_cancelled() {
            let term = match self.lead_with(Wait::UpTo(CAMPAIGN)).await {
                Ok(term) => term,
                Err(_) if closing.is_cancelled() => break,
                Err(error) if is_final(error.kind()) => return Err(error),
                Err(_) => {
                    pause().await;
                    continue;
                }
            };
            let ending = Resignation::of(&term);
            let lease = term.lease().clone();
            let has_returned = select! {
                biased;
                () = closing.cancelled() => false,
                worked = lease.run(work(term)) => worked.is_ok(),
            };
            ending.resign().await;
            if has_returned {
                pause().await;
            }
        }
        Ok(())
    }

    /// Campaigns until this candidate leads, for callers that keep a loop of their own; `wait` says how long.
    ///
    /// The caller must stop its work when the term is [lost](Lease::lost); [`Lease::run`] does that.
    ///
    /// # Errors
    ///
    /// As [`Redlock::acquire_with`]: [`Contended`](AcquireErrorKind::Contended) if another candidate leads for the whole
    /// wait.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime with its timer enabled.
    ///
    /// # Cancel safety
    ///
    /// As [`Redlock::acquire_with`].
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
    /// use redlock_core::Wait;
    /// use std::time::Duration;
    ///
    /// let election = redlock.election("importer").build()?;
    /// let term = election.lead_with(Wait::UpTo(Duration::from_secs(60))).await?;
    /// assert!(election.is_leader());
    /// term.run(async { /* import */ }).await?;
    /// term.resign().await?;
    /// assert!(!election.is_leader());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn lead_with(&self, wait: Wait) -> Result<Term, AcquireError> {
        let campaign = self.acquire(&self.key, self.of_terms.clone(), wait);
        let guard = if self.preference.is_preferred {
            select! {
                biased;
                won = campaign => won?,
                never = self.ask_to_resign() => match never {},
            }
        } else {
            campaign.await?
        };
        self.own.send_replace(Some(guard.lease().clone()));
        Ok(Term::new(guard, self.clone()))
    }

    /// Acquires a lease under the name of this candidate.
    async fn acquire(
        &self,
        key: &ResourceKey,
        options: AcquireOptions,
        wait: Wait,
    ) -> Result<LockGuard, AcquireError> {
        let mut options = options.ttl(self.ttl).wait(wait);
        options.label = Some(Arc::clone(&self.candidate));
        self.redlock.acquire_with(key.clone(), options).await
    }

    /// Returns whether this candidate leads now, by its own clock.
    ///
    /// It asks no node, and is meant for a readiness probe.
    /// Work that must not overlap uses its [`Term`] instead, because the term may end right after this call.
    pub fn is_leader(&self) -> bool {
        self.lease().is_some()
    }

    /// Returns a view of this candidate's term, if it leads now by its own clock.
    ///
    /// It asks no node, and is meant for code beside the work that leads, such as the handlers of a server: they write
    /// with its [token](Lease::token), or [run](Lease::run) for as long as the term lasts.
    pub fn lease(&self) -> Option<Lease> {
        let own = self.own.borrow();
        own.as_ref().filter(|lease| lease.is_held()).cloned()
    }

    /// Returns the time for which a leader that crashed keeps the role.
    pub fn ttl(&self) -> Duration {
        self.ttl
    }

    /// Returns the public name of this candidate.
    pub fn candidate(&self) -> HolderLabel {
        self.candidate.label
    }
}

impl fmt::Debug for Election {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Election")
            .field("key", &self.key)
            .field("candidate", &self.candidate.label.as_str())
            .field("is_leader", &self.is_leader())
            .finish_non_exhaustive()
    }
}

/// Returns whether another campaign would fail in the same way.
const fn is_final(kind: AcquireErrorKind) -> bool {
    matches!(
        kind,
        AcquireErrorKind::AlreadyHeld
            | AcquireErrorKind::Deadlock
            | AcquireErrorKind::Misuse
            | AcquireErrorKind::Closed
    )
}

/// How long one acquire of a campaign waits; the next follows it.
const CAMPAIGN: Duration = Duration::from_secs(60 * 60);
