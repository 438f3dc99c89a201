//! Preferred candidates: how one asks a leader to resign, and how the leader learns of it.

use std::convert::Infallible;

use tokio::time::sleep;

use super::{Election, Term};
use crate::{AcquireOptions, Holder, ResourceKey, Wait};

/// How a candidate stands to preferred ones.
#[derive(Clone)]
pub(super) struct Preference {
    /// Whether it is one.
    pub(super) is_preferred: bool,
    /// The resource that a preferred candidate holds while it asks a leader to resign.
    pub(super) asks: ResourceKey,
}

impl Election {
    /// Asks leaders that are not preferred to resign, for as long as the future is polled.
    pub(super) async fn ask_to_resign(&self) -> Infallible {
        // A free role is won before that.
        sleep(self.redlock.node_timeout()).await;
        loop {
            // If another preferred candidate holds it, that one asks.
            let asks = &self.preference.asks;
            let asks = self.acquire(asks, AcquireOptions::new(), Wait::Never);
            if let Ok(asks) = asks.await {
                asks.lost().await;
            }
            sleep(self.ttl / 3).await;
        }
    }
}

impl Term {
    /// Waits until a [preferred](super::ElectionBuilder::preferred) candidate asks this leader to resign; forever if this
    /// candidate is preferred itself.
    ///
    /// It looks at the nodes at once, and then every third of the ttl: await one future for the whole term, as in the
    /// example, because each new one begins with a look.
    /// It resolves only if a majority of the nodes says so.
    /// A leader that calls it asks nothing more of the nodes than these looks, and one that does not is not disturbed.
    /// If the preferred candidate has crashed, the leader may be asked for the ttl after that.
    ///
    /// The term goes on: the leader comes to a good end, and then [resigns](Self::resign).
    /// In [`lead`](Election::lead) it is enough to return.
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
    /// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
    /// use redlock_core::{Term, Wait};
    /// use std::time::Duration;
    ///
    /// async fn import(term: Term) {
    ///     let mut asked = std::pin::pin!(term.asked_to_resign());
    ///     loop {
    ///         tokio::time::sleep(Duration::from_millis(10)).await; // or import a batch
    ///         tokio::select! {
    ///             biased;
    ///             () = &mut asked => return, // begin no other batch
    ///             () = std::future::ready(()) => {}
    ///         }
    ///     }
    /// }
    ///
    /// let election = |name: &str| redlock.election("importer").candidate(name).ttl(Duration::from_secs(1));
    /// let term = election("web-7").build()?.lead_with(Wait::Never).await?;
    /// let preferred = election("web-1").preferred(true).build()?;
    /// let (next, ()) = tokio::join!(preferred.lead_with(Wait::UpTo(Duration::from_secs(60))), import(term));
    /// assert!(next.is_ok() && preferred.is_leader());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn asked_to_resign(&self) {
        let Election {
            redlock,
            preference,
            ttl,
            ..
        } = &self.election;
        if preference.is_preferred {
            return std::future::pending().await;
        }
        while !matches!(
            redlock.holder(preference.asks.clone()).await,
            Ok(Holder::Held { .. })
        ) {
            sleep(*ttl / 3).await;
        }
    }
}
