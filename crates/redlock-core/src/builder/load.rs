//! Limits under load, and the number of nodes that are asked.

use super::RedlockBuilder;
use crate::FanOut;

impl RedlockBuilder {
    /// Sets how many callers of this process may wait for one resource; more fail with
    /// [`Overloaded`](crate::AcquireErrorKind::Overloaded).
    ///
    /// With 0 a caller does not wait behind another caller of this process, only for other processes.
    /// One attempt, with [`Wait::Never`](crate::Wait::Never), does not wait, and fails as
    /// [`Contended`](crate::AcquireErrorKind::Contended).
    /// Default: 1,024.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use redlock_core::{AcquireErrorKind, Redlock};
    ///
    /// let redlock = Redlock::builder().in_memory_nodes(3).max_waiters_per_key(0).build().await?;
    /// let guard = redlock.acquire("report").await?;
    /// let refused = redlock.acquire("report").await.unwrap_err(); // at once
    /// assert_eq!(refused.kind(), AcquireErrorKind::Overloaded);
    /// # drop(guard);
    /// # Ok(())
    /// # }
    /// ```
    pub fn max_waiters_per_key(mut self, waiters: usize) -> Self {
        self.max_waiters_per_key = waiters;
        self
    }

    /// Sets how many callers of this process may wait in all; more fail with
    /// [`Overloaded`](crate::AcquireErrorKind::Overloaded).
    ///
    /// Default: 65,536.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use redlock_core::{AcquireErrorKind, Redlock};
    ///
    /// let redlock = Redlock::builder().in_memory_nodes(3).max_waiters(1).build().await?;
    /// let guards = (redlock.acquire("one").await?, redlock.acquire("two").await?);
    /// let first = redlock.acquire("one");
    /// let second = async {
    ///     tokio::task::yield_now().await; // the first waits by now
    ///     redlock.acquire("two").await.unwrap_err()
    /// };
    /// tokio::select! {
    ///     _ = first => unreachable!("its key is held"),
    ///     refused = second => assert_eq!(refused.kind(), AcquireErrorKind::Overloaded),
    /// }
    /// # drop(guards);
    /// # Ok(())
    /// # }
    /// ```
    pub fn max_waiters(mut self, waiters: usize) -> Self {
        self.max_waiters = waiters;
        self
    }

    /// Sets how often in a row callers of this process may hand a lease over to the next, without asking the nodes and
    /// under a new fencing token each time: up to 1,000.
    ///
    /// Default: 63, and for a quarter of a second at most if nodes have refused the key to another process lately; zero
    /// turns hand-overs off.
    /// Each acquire reserves this many fencing tokens and one more.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use redlock_core::Redlock;
    ///
    /// // Replicas contend for the same keys all the time, and each is to have its share.
    /// let redlock = Redlock::builder().in_memory_nodes(3).max_hand_overs(0).build().await?;
    /// # assert!(redlock.is_ready().await);
    /// # Ok(())
    /// # }
    /// ```
    pub fn max_hand_overs(mut self, times: u32) -> Self {
        self.max_hand_overs = times;
        self
    }

    /// Sets how many of the nodes an acquire or a renewal asks at once.
    ///
    /// Default: [`FanOut::Adaptive`], which asks all nodes while the client has little to do.
    /// Some acquires ask only a majority first.
    /// Such an acquire asks the other nodes as soon as a node of that majority fails, or when all of them have answered
    /// and too few have granted.
    /// It also asks the others when that majority takes longer than usual: twice the time that calls to these nodes
    /// normally take at the most, and at least 2 ms.
    /// After a node has kept an acquire waiting, no acquire asks it first again until it has answered a call.
    /// If the lease is still held 100 ms later, the client asks the other nodes for the key too, and earlier if it loses a
    /// node of the lease.
    /// So a lease outlives the loss of a minority of the nodes at any moment.
    ///
    /// Automatic renewals of a client that has 64 leases or more ask a majority, too, and the nodes take turns: two
    /// renewals in a row ask all of them.
    /// If that majority does not confirm a renewal, the client asks all nodes at once.
    /// A node that is left out keeps the key for another third of the time to live at least.
    /// [`FanOut::Majority`] does so with one lease, and [`FanOut::All`] never does.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use redlock_core::{FanOut, Redlock};
    ///
    /// // Five nodes that have little to spare: three are asked for each lease.
    /// let redlock = Redlock::builder()
    ///     .in_memory_nodes(5)
    ///     .fan_out(FanOut::Majority)
    ///     .build()
    ///     .await?;
    /// assert_eq!(redlock.majority(), 3);
    /// # Ok(())
    /// # }
    /// ```
    pub fn fan_out(mut self, fan_out: FanOut) -> Self {
        self.fan_out = fan_out;
        self
    }
}
