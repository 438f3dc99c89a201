//! Scopes: work that acquires what it has, and gets another guard of the same lease.

mod current_context;

use std::{
    fmt,
    future::poll_fn,
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use futures_util::future::select_all;
use redlock_proto::Ticket;
use tokio::sync::Notify;

use self::current_context::{Surrounding, within};
pub(crate) use self::current_context::{current, holds, places};
use crate::{
    AcquireError, LockGuard, Mode, ResourceKeys,
    engine::{HeldLease, Origin, Scoped},
};

/// A part of a program's work, in which its holder can acquire a lock again.
///
/// An acquire in a scope, by the same client, of a resource that the scope already holds returns another guard of the
/// same lease, without a round trip.
/// The client releases the lease when the last of its guards is dropped.
/// So a function can take the locks that it needs, whether its caller has them or not.
///
/// A scope covers the work that is polled within it; it is neither a thread nor a task: see
/// [`Redlock::scope`](crate::Redlock::scope).
/// A task that the work spawns is outside of the scope, unless [`enter`](Self::enter) takes the task in.
///
/// Options of the later acquires do not apply: the lease keeps the time to live, the renewal, the label and the longest
/// hold of its first acquire.
/// If the scope holds a lease on several keys, an acquire of any of them returns a guard of that lease.
/// A caller that holds one key and asks for several, that one among them, gets
/// [`AlreadyHeld`](crate::AcquireErrorKind::AlreadyHeld): acquire all of them first.
/// A reader that [shares](crate::Redlock::acquire_shared) a key and asks for an exclusive lease on it gets the same
/// error:
/// acquire the exclusive lease from the start.
/// The scope does not return a guard of a lost lease: the next acquire asks the nodes for another lease.
///
/// The client [detects](crate::AcquireErrorKind::Deadlock) a circle of callers that wait for each other by the leases
/// of their scopes, and by the leases under which [`Lease::run`](crate::Lease::run) runs their work.
/// All parts of a scope count as one caller.
/// So the client reports a circle even if another part of the scope would release the key for which the others wait.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use redlock_core::{AcquireError, FencingToken, Redlock};
///
/// /// Works for callers with and without the lock.
/// async fn book(redlock: &Redlock) -> Result<FencingToken, AcquireError> {
///     let guard = redlock.acquire("account:7").await?;
///     Ok(guard.token())
/// }
///
/// # let redlock = Redlock::builder().in_memory_nodes(3).build().await?;
/// redlock
///     .scope(async {
///         let guard = redlock.acquire("account:7").await?;
///         assert_eq!(book(&redlock).await?, guard.token());
///         assert!(guard.is_held(), "the guard in `book` was not the last");
///         Ok::<_, AcquireError>(())
///     })
///     .await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Scope {
    shared: Arc<ScopeShared>,
}

struct ScopeShared {
    origin: Origin,
    state: Mutex<ScopeState>,
    /// There is another lease.
    changed: Notify,
}

#[derive(Default)]
struct ScopeState {
    leases: Vec<Weak<HeldLease>>,
    is_over: bool,
}

impl Scope {
    pub(crate) fn new(origin: Origin) -> Self {
        Self {
            shared: Arc::new(ScopeShared {
                origin,
                state: Mutex::default(),
                changed: Notify::new(),
            }),
        }
    }

    /// Runs `work` in this scope, in any task.
    ///
    /// Two tasks of a scope that acquire the same resource do not exclude each other: both hold it.
    /// Once the scope has ended, `work` continues outside of it.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops `work`; the scope continues.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
    /// redlock
    ///     .scope(async {
    ///         let guard = redlock.acquire("report").await?;
    ///         let (scope, other) = (redlock.current_scope(), redlock.clone());
    ///         let part = tokio::spawn(async move {
    ///             let part = async { other.acquire("report").await.map(|guard| guard.token()) };
    ///             scope.expect("it was spawned in one").enter(part).await
    ///         });
    ///         assert_eq!(part.await??, guard.token());
    ///         Ok::<_, Box<dyn std::error::Error>>(())
    ///     })
    ///     .await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn enter<F: Future>(&self, work: F) -> F::Output {
        let mut work = pin!(work);
        let scope = || Surrounding::Scope(self.clone());
        poll_fn(|cx| within(scope(), || work.as_mut().poll(cx))).await
    }

    /// Returns whether it is a scope of this client and has not ended.
    fn goes_on_for(&self, client: u64) -> bool {
        self.shared.origin.client == client && !self.shared.state().is_over
    }

    /// Counts a lease that was acquired in it as its own; returns whether it does, because it goes on.
    fn add(&self, held: &Arc<HeldLease>) -> bool {
        let shared: Weak<ScopeShared> = Arc::downgrade(&self.shared);
        let is_added = self.shared.add(held);
        if is_added {
            held.ends_with(shared);
        }
        is_added
    }

    /// Returns the leases that can be relied on.
    fn leases(&self) -> Vec<Arc<HeldLease>> {
        let state = self.shared.state();
        let leases = state.leases.iter().filter_map(Weak::upgrade);
        leases.filter(|held| held.is_held()).collect()
    }

    fn end(&self) {
        let mut state = self.shared.state();
        state.is_over = true;
        let leases = std::mem::take(&mut state.leases);
        drop(state);
        for held in leases.iter().filter_map(Weak::upgrade) {
            let (class, token) = (held.lease().class().unwrap_or(""), held.lease().token());
            if held.end_with_its_scope() {
                self.shared.origin.outlives_its_scope(class, token);
            }
        }
    }
}

impl ScopeShared {
    /// Counts a lease as its own; returns whether it does, because it goes on.
    fn add(&self, held: &Arc<HeldLease>) -> bool {
        let mut state = self.state();
        if state.is_over {
            return false;
        }
        state.leases.retain(|lease| lease.strong_count() > 0);
        state.leases.push(Arc::downgrade(held));
        drop(state);
        self.changed.notify_waiters();
        true
    }

    fn state(&self) -> MutexGuard<'_, ScopeState> {
        // Nothing panics while it is locked.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Scoped for ScopeShared {
    fn add_held(&self, held: &Arc<HeldLease>) {
        if !self.add(held) {
            let _ = held.end_with_its_scope();
        }
    }
}

impl fmt::Debug for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scope")
            .field("client", &self.shared.origin.client)
            .finish_non_exhaustive()
    }
}

/// The scopes of a client in which some work acquires, the outermost first.
pub(crate) struct Scopes(Vec<Scope>);

impl Scopes {
    /// Returns the scopes in which this code runs; `None` if there are none.
    pub(crate) fn current(client: u64) -> Option<Self> {
        let scopes = current(client);
        (!scopes.is_empty()).then_some(Self(scopes))
    }

    /// Returns another guard of a lease on all of `keys`, if there is one that is enough.
    pub(crate) fn guard_of(&self, keys: &ResourceKeys, mode: Mode) -> Option<LockGuard> {
        guard_among(&self.leases().collect::<Vec<_>>(), keys, mode)
    }

    /// Returns what they hold of `keys`, by one reading of their leases: another part may acquire some meanwhile.
    pub(crate) fn look(&self, keys: &ResourceKeys, mode: Mode) -> HeldByScopes {
        let leases: Vec<_> = self.leases().collect();
        if let Some(guard) = guard_among(&leases, keys, mode) {
            return HeldByScopes::Guard(guard);
        }
        // The last guard of one may be gone since.
        let mut held = leases.iter().filter(|held| held.is_held());
        if held.any(|held| is_on_one_of(held, keys)) {
            HeldByScopes::NotEnough
        } else {
            HeldByScopes::Nothing
        }
    }

    /// Waits until there is another guard of a lease on all of `keys`, because something else in a scope has acquired it;
    /// `None` if that is on some of them, and the caller would wait for itself.
    pub(crate) async fn until_guard_of(
        &self,
        keys: &ResourceKeys,
        mode: Mode,
    ) -> Option<LockGuard> {
        loop {
            let changes = self.0.iter().map(|scope| scope.shared.changed.notified());
            let mut changes: Vec<_> = changes.map(Box::pin).collect();
            for change in &mut changes {
                change.as_mut().enable();
            }
            match self.look(keys, mode) {
                HeldByScopes::Guard(guard) => return Some(guard),
                HeldByScopes::NotEnough => return None,
                HeldByScopes::Nothing => {}
            }
            select_all(changes).await;
        }
    }

    /// Returns why a caller in them cannot have `keys` in this mode, of which they hold some.
    pub(crate) fn already_held(&self, keys: &ResourceKeys, mode: Mode) -> AcquireError {
        let mut leases = self.leases();
        let shares_all = leases.any(|held| {
            let on = held.lease().keys();
            held.lease().mode() == Mode::Shared && keys.iter().all(|key| on.contains(key))
        });
        match mode {
            // Another part of the scopes tries to upgrade the lease at the moment.
            Mode::Shared if shares_all => AcquireError::contended_locally(),
            Mode::Exclusive if shares_all => AcquireError::only_shared(),
            _ => AcquireError::already_held(),
        }
    }

    /// Returns the places in the local queue of the leases that they hold.
    pub(crate) fn places(&self) -> impl Iterator<Item = Ticket> {
        self.leases().filter_map(|held| held.lease().place())
    }

    /// Returns the places of the leases that have none of `keys`: a part that wants one of these gets another guard of its
    /// lease, as soon as some part has acquired it, and does not wait for it.
    pub(crate) fn places_beside(&self, keys: &ResourceKeys) -> impl Iterator<Item = Ticket> {
        let others = self.leases().filter(|held| !is_on_one_of(held, keys));
        others.filter_map(|held| held.lease().place())
    }

    /// Counts a lease as the own of the innermost that goes on.
    pub(crate) fn add(&self, guard: &LockGuard) {
        let mut innermost_first = self.0.iter().rev();
        let _ = innermost_first.any(|scope| scope.add(guard.held()));
    }

    fn leases(&self) -> impl Iterator<Item = Arc<HeldLease>> {
        self.0.iter().rev().flat_map(Scope::leases)
    }
}

/// What scopes hold of some keys.
pub(crate) enum HeldByScopes {
    /// All of them, in a lease of which this is another guard.
    Guard(LockGuard),
    /// Some of the keys, or all of them in a shared lease only.
    NotEnough,
    Nothing,
}

/// Returns another guard of the first of these leases that is on all of `keys` and enough.
fn guard_among(leases: &[Arc<HeldLease>], keys: &ResourceKeys, mode: Mode) -> Option<LockGuard> {
    let has_all = |held: &&Arc<HeldLease>| {
        let on = held.lease().keys();
        let is_enough = mode == Mode::Shared || held.lease().mode() == Mode::Exclusive;
        is_enough && keys.iter().all(|key| on.contains(key))
    };
    let mut all = leases.iter().filter(has_all);
    all.find_map(|held| LockGuard::another(Arc::clone(held)))
}

fn is_on_one_of(held: &HeldLease, keys: &ResourceKeys) -> bool {
    let on = held.lease().keys();
    keys.iter().any(|key| on.contains(key))
}

/// Ends a scope.
pub(crate) struct ScopeEnd(pub(crate) Scope);

impl Drop for ScopeEnd {
    fn drop(&mut self) {
        self.0.end();
    }
}
