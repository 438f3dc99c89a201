mod request;
mod state;
#[cfg(test)]
mod tests;

use std::{fmt, future::poll_fn, pin::pin, sync::Arc, task::Poll, time::Duration};

use tokio::select;

pub use self::request::Mode;
use self::state::LeaseShared;
pub(crate) use self::{
    request::{CallSite, CallSites, LeaseRequest, OwnLabel, class_of},
    state::{Kept, Telling},
};
use crate::{FencingToken, Guarantee, LeaseLost, LossReason, ResourceKey};

/// A view of a held lease: its keys, how long it is valid, and whether it is lost.
///
/// Cloning it clones the view; the lease ends with its [`LockGuard`](crate::LockGuard) however many
/// views there are.
///
/// The deadline is local to the client.
/// The client counts it from before it sent the first byte of the request, and subtracts an allowance for clocks that
/// run at different rates.
/// The deadline passes even if the network does not work.
/// Until the deadline no other client can hold the lease; see the [crate documentation](crate) for the assumptions.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
/// use std::time::Duration;
///
/// let guard = redlock.acquire("report:2026-11").await?;
/// let lease = guard.lease().clone();
/// assert!(lease.is_held() && lease.remaining() > Duration::from_secs(5));
/// assert_eq!(lease.key().as_str(), "report:2026-11");
/// assert_eq!(lease.keys().len(), 1);
/// assert_eq!(lease.token(), guard.token());
///
/// drop(guard);
/// assert!(!lease.is_held() && lease.remaining().is_zero());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Lease {
    shared: Arc<LeaseShared>,
}

impl Lease {
    /// Returns the key of the lease; the first of its [keys](Self::keys) if it has several.
    pub fn key(&self) -> &ResourceKey {
        self.shared.subject.keys.first()
    }

    /// Returns all keys of the lease, in order.
    pub fn keys(&self) -> &[ResourceKey] {
        self.shared.subject.keys.as_slice()
    }

    /// Returns the class of the lease, if it has one: a name that the log may show.
    ///
    /// It is the class that [`AcquireOptions::class`](crate::AcquireOptions::class) sets, or else that of the
    /// [first key](ResourceKey::class).
    pub fn class(&self) -> Option<&str> {
        self.shared.subject.site.class.as_deref()
    }

    /// Returns whether the lease is exclusive, or other readers may [share](crate::Redlock::acquire_shared) its keys.
    pub fn mode(&self) -> Mode {
        if self.state().is_shared {
            Mode::Shared
        } else {
            Mode::Exclusive
        }
    }

    /// Returns what the exclusion of the lease rests on.
    pub fn guarantee(&self) -> Guarantee {
        self.shared.subject.site.guarantee
    }

    /// Returns the fencing token of the lease: greater than that of every lease on the resource before it.
    ///
    /// A [shared](crate::Redlock::acquire_shared) lease counts as before this one if its acquire had ended when the
    /// acquire of this one began.
    /// Pass it to the resource with each write, and let the resource refuse older tokens; see
    /// [`Fence`](crate::Fence).
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
    /// use redlock_core::Fence;
    ///
    /// // In the resource: a row's column, say, that each write compares and sets.
    /// let mut fence = Fence::new();
    ///
    /// let first = redlock.acquire("account:7").await?.token(); // and released
    /// let second = redlock.acquire("account:7").await?;
    /// fence.write(second.token())?;
    /// assert!(fence.write(first).is_err(), "the write of an earlier holder is late");
    /// # Ok(())
    /// # }
    /// ```
    pub fn token(&self) -> FencingToken {
        self.shared.token
    }

    /// Returns how much longer the lease is valid; zero once it is lost or released.
    ///
    /// Automatic renewal makes that time longer again.
    /// A lease that the caller waited for in line is valid for about a second at first.
    /// The client extends it to its time to live after 100 ms, also without renewal.
    pub fn remaining(&self) -> Duration {
        let validity = self.look();
        match validity.over {
            Some(_) => Duration::ZERO,
            None => validity.deadline.saturating_since(self.shared.now()),
        }
    }

    /// Returns up to when the lease is valid, on the clock of tokio's timers.
    ///
    /// That clock stops while the machine is suspended.
    /// [`remaining`](Self::remaining) and [`lost`](Self::lost) also count that time.
    pub fn deadline(&self) -> tokio::time::Instant {
        tokio::time::Instant::now() + self.remaining()
    }

    /// Returns whether the lease is valid at this moment.
    pub fn is_held(&self) -> bool {
        self.loss().is_none()
    }

    /// Returns whether the lease is lost, or its renewal fails and little more than a third of its time to live is
    /// left.
    ///
    /// See [`endangered`](Self::endangered).
    pub fn is_endangered(&self) -> bool {
        self.safe_for().is_zero()
    }

    /// Waits until little more than a third of its time to live is left, or it is lost.
    ///
    /// Renewal begins when two thirds of the time to live are left.
    /// So when this resolves, no majority has confirmed a renewal for almost a third of the time to live.
    /// A third is left before the lease is lost, in which the holder can save its work and should begin nothing new.
    /// The client adds a thirtieth to that third, so that a late timer does not shorten it.
    /// A renewal may still succeed; [`is_endangered`](Self::is_endangered) is false again then.
    /// The future also resolves if the client no longer renews the lease: under
    /// [`Renewal::Manual`](crate::Renewal::Manual), and before the end of its
    /// [`max_hold`](crate::AcquireOptions::max_hold).
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime with its timer enabled.
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
    ///
    /// let redlock = Redlock::builder().in_memory_nodes(3).build().await?;
    /// let guard = redlock.acquire("import").await?;
    /// let lease = guard.lease();
    /// for _batch in 0..3 {
    ///     tokio::select! {
    ///         biased;
    ///         () = lease.endangered() => break, // begin no other batch
    ///         () = async { /* import a batch */ } => {}
    ///     }
    /// }
    /// # assert!(!lease.is_endangered());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn endangered(&self) {
        let mut timer = pin!(tokio::time::sleep(self.safe_for()));
        let mut over = pin!(self.shared.over.notified());
        over.as_mut().enable();
        poll_fn(|cx| {
            loop {
                if self.is_endangered() {
                    return Poll::Ready(());
                }
                if over.as_mut().poll(cx).is_ready() {
                    over.set(self.shared.over.notified());
                } else if timer.as_mut().poll(cx).is_ready() {
                    // A renewal has come in time.
                    let safe_for = self.safe_for();
                    timer.as_mut().reset(tokio::time::Instant::now() + safe_for);
                } else {
                    return Poll::Pending;
                }
            }
        })
        .await;
    }

    /// Waits until the lease is no longer valid.
    ///
    /// The future resolves at the deadline at the latest, even if all links are dead.
    /// It resolves at once if a majority of the nodes says that the key is gone, or if the guard releases the lease.
    /// Each poll reads the clock first, so a process that was paused beyond its lease learns of the loss before it does
    /// anything else.
    /// Put the future first in a `select!` with `biased`.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime with its timer enabled.
    ///
    /// # Cancel safety
    ///
    /// Dropping it has no effect.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use redlock_core::{AcquireOptions, LossReason, Redlock, Renewal};
    ///
    /// # let redlock = Redlock::builder().in_memory_nodes(3).virtual_time().build().await?;
    /// let options = AcquireOptions::new().renewal(Renewal::Manual);
    /// let guard = redlock.acquire_with("report", options).await?;
    /// assert_eq!(guard.lease().lost().await, LossReason::Expired); // ten seconds later
    /// # Ok(())
    /// # }
    /// ```
    pub async fn lost(&self) -> LossReason {
        let mut timer = pin!(tokio::time::sleep(self.remaining()));
        let mut over = pin!(self.shared.over.notified());
        over.as_mut().enable();
        poll_fn(|cx| {
            loop {
                if let Some(reason) = self.loss() {
                    return Poll::Ready(reason);
                }
                if over.as_mut().poll(cx).is_ready() {
                    over.set(self.shared.over.notified());
                } else if timer.as_mut().poll(cx).is_ready() {
                    // The deadline has moved on since the timer was set.
                    timer.as_mut().reset(self.deadline());
                } else {
                    return Poll::Pending;
                }
            }
        })
        .await
    }
}

impl Lease {
    /// Runs `work` for as long as the lease is valid.
    ///
    /// An acquire of the same resource that `work` awaits fails at once as
    /// [`AlreadyHeld`](crate::AcquireErrorKind::AlreadyHeld), because it would wait for this lease.
    ///
    /// It checks the deadline before each poll of `work`.
    /// When the deadline has passed, it drops `work` before it returns.
    /// It cannot drop work that blocks its thread in time, and such work may even finish late.
    /// Such work must call [`is_held`](Self::is_held) before each step that matters, and the resource should check the
    /// fencing token.
    ///
    /// # Errors
    ///
    /// The lease was lost or released, and this dropped `work` unfinished.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime with its timer enabled.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops `work`, and has no other effect.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use redlock_core::{AcquireOptions, LossReason, Redlock, Renewal};
    /// use std::future::pending;
    ///
    /// # let redlock = Redlock::builder().in_memory_nodes(3).virtual_time().build().await?;
    /// let options = AcquireOptions::new().renewal(Renewal::Manual);
    /// let guard = redlock.acquire_with("report", options).await?;
    /// let lease = guard.lease();
    /// assert_eq!(lease.run(async { 42 }).await, Ok(42));
    /// let lost = lease.run(pending::<()>()).await.unwrap_err(); // ten seconds later
    /// assert_eq!(lost.reason(), LossReason::Expired);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn run<F: Future>(&self, work: F) -> Result<F::Output, LeaseLost> {
        let mut work = pin!(work);
        let mut work = poll_fn(|cx| self.within(|| work.as_mut().poll(cx)));
        select! {
            biased;
            reason = self.lost() => Err(LeaseLost::new(reason)),
            output = &mut work => Ok(output),
        }
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease")
            .field("keys", &self.shared.subject.keys)
            .field("token", &self.shared.token)
            .field("remaining", &self.remaining())
            .finish()
    }
}
