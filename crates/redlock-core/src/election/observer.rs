use std::time::SystemTime;

use redlock_proto::HolderLabel;
use tokio::{select, sync::watch, time::Instant};

use super::Election;
use crate::{Holder, Lease};

/// The leader of an election, as an observer knows it.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
/// use redlock_core::Leadership;
///
/// let election = redlock.election("importer").build()?;
/// let text = match election.leader().await {
///     Leadership::Leader { candidate: Some(candidate), .. } => candidate.to_string(),
///     Leadership::None => "no leader".to_owned(),
///     _ => "unknown".to_owned(),
/// };
/// assert_eq!(text, "no leader");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "there is a leader, none, or it is not known"
)]
pub enum Leadership {
    /// A majority of the nodes votes, and names this leader.
    #[non_exhaustive]
    Leader {
        /// The public name of the leader; `None` if a holder without a label has the resource.
        candidate: Option<HolderLabel>,
        /// The time at which the leader asked for its term, by the leader's clock; `None` if the key does not say.
        since: Option<SystemTime>,
    },
    /// A majority of the nodes votes, and has no leader.
    None,
    /// Too few nodes have answered or vote, or candidates contend at this moment.
    Unknown,
}

/// The changes of an election's leader, from [`Election::observe`].
///
/// It looks every third of the ttl, when a term of its candidate begins or ends, and when its candidate has become the first
/// in line: the one before it is the leader then.
/// A look ends once a majority of the nodes agrees, so that a minority that hangs delays no news.
/// So it may name a leader for a third of the ttl after its term, and it may miss a short term.
/// While too few nodes vote, as after a loss of data, it names no leader.
/// It names at most one leader at a time, and decides nothing: exclusion rests on the [`Term`](crate::Term).
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
/// use redlock_core::Leadership;
///
/// let mut observer = redlock.election("importer").build()?.observe();
/// assert_eq!(observer.changed().await, Some(Leadership::None));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Observer {
    election: Election,
    own: watch::Receiver<Option<Lease>>,
    /// The place of its candidate in line.
    place: watch::Receiver<()>,
    last: Option<Leadership>,
    /// When the next look is due.
    due: Instant,
}

impl Election {
    /// Returns an observer, which needs not be a candidate.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
    /// use redlock_core::{Leadership, Wait};
    ///
    /// let election = redlock.election("importer").build()?;
    /// let mut observer = election.observe();
    /// assert_eq!(observer.changed().await, Some(Leadership::None));
    /// let term = election.lead_with(Wait::Never).await?;
    /// let Some(Leadership::Leader { candidate, .. }) = observer.changed().await else {
    ///     return Err("a candidate leads".into());
    /// };
    /// assert_eq!(candidate, Some(election.candidate()));
    /// # drop(term);
    /// # Ok(())
    /// # }
    /// ```
    pub fn observe(&self) -> Observer {
        Observer {
            election: self.clone(),
            own: self.own.subscribe(),
            place: self.candidate.place(),
            last: None,
            due: Instant::now(),
        }
    }

    /// Looks once, and returns the leader as a majority of voting nodes knows it.
    ///
    /// # Cancel safety
    ///
    /// Dropping it has no effect.
    pub async fn leader(&self) -> Leadership {
        match self.redlock.holder(self.key.clone()).await {
            Ok(Holder::Held { label, since, .. }) => Leadership::Leader {
                candidate: label,
                since,
            },
            Ok(Holder::Free) => Leadership::None,
            Ok(Holder::Unknown) | Err(_) => Leadership::Unknown,
        }
    }
}

impl Observer {
    /// Waits for a change, and returns the leader after it; the first call returns the present one.
    ///
    /// It returns `None` once the client is [closed](crate::Redlock::close).
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime with its timer enabled.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses no change: the next call returns it.
    pub async fn changed(&mut self) -> Option<Leadership> {
        let closing = self.election.redlock.closing();
        loop {
            // What changes while it looks is seen after that.
            let own = self.own.borrow().clone();
            let own = own.filter(Lease::is_held);
            let ended = async {
                match &own {
                    Some(lease) => drop(lease.lost().await),
                    None => std::future::pending().await,
                }
            };
            select! {
                biased;
                () = closing.cancelled() => return None,
                () = tokio::time::sleep_until(self.due) => {}
                // Their senders are in the election.
                _ = self.own.changed() => {}
                _ = self.place.changed() => {}
                () = ended => {}
            }
            // If the look is given up, the next call looks at once.
            self.due = Instant::now();
            let leader = select! {
                biased;
                () = closing.cancelled() => return None,
                leader = self.election.leader() => leader,
            };
            self.due = Instant::now() + self.election.ttl / 3;
            if self.last != Some(leader) {
                self.last = Some(leader);
                return Some(leader);
            }
        }
    }
}
