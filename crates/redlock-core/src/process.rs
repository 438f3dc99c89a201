use std::{fmt, pin::pin, sync::Arc};

use tokio::{select, sync::watch};

/// A process in virtual time, which a test can stop as SIGSTOP or a long pause of a garbage collector does.
///
/// It is meant for tests with paused time.
/// Clients that a test [built in it](crate::RedlockBuilder::virtual_process) and futures that it [runs](Self::run) stop
/// together, while time continues for all others.
/// Cloning it returns another handle to the same process.
///
/// # Examples
///
/// ```
/// use redlock_core::{LossReason, MemoryNode, Redlock, VirtualProcess};
/// use std::time::Duration;
///
/// # let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()?;
/// # runtime.block_on(async {
/// // In a test: #[tokio::test(start_paused = true)]
/// let nodes: Vec<_> = (0..3).map(|_| MemoryNode::new()).collect();
/// let process = VirtualProcess::new();
/// let redlock = Redlock::builder().nodes(nodes).virtual_process(&process).build().await?;
/// let guard = redlock.acquire("order:42").await?;
///
/// process.freeze();
/// tokio::time::sleep(Duration::from_secs(20)).await;
/// process.thaw();
/// let work = guard.run(async { unreachable!("the lease is over before the first step") });
/// let lost: Result<(), _> = process.run(work).await;
/// assert_eq!(lost.unwrap_err().reason(), LossReason::Expired);
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct VirtualProcess {
    frozen: Arc<watch::Sender<bool>>,
}

impl VirtualProcess {
    /// Makes a process that runs.
    pub fn new() -> Self {
        Self {
            frozen: Arc::new(watch::Sender::new(false)),
        }
    }

    /// Stops it: no work in it is polled until [`thaw`](Self::thaw).
    ///
    /// Work that is being polled at this moment continues to its next await.
    pub fn freeze(&self) {
        self.frozen.send_replace(true);
    }

    /// Lets it continue.
    pub fn thaw(&self) {
        self.frozen.send_replace(false);
    }

    /// Returns whether it is stopped.
    pub fn is_frozen(&self) -> bool {
        *self.frozen.borrow()
    }

    /// Runs `work` as a part of this process.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops `work`, even while the process is stopped.
    pub fn run<F: Future>(&self, work: F) -> impl Future<Output = F::Output> + use<F> {
        let mut frozen = self.frozen.subscribe();
        async move {
            let mut work = pin!(work);
            loop {
                // An error means that no process is left that could have frozen it.
                let _ = frozen.wait_for(|frozen| !frozen).await;
                select! {
                    // A freeze is looked at first, so that nothing is polled after it.
                    biased;
                    Ok(()) = frozen.changed() => {}
                    output = &mut work => return output,
                }
            }
        }
    }
}

impl Default for VirtualProcess {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for VirtualProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VirtualProcess")
            .field("frozen", &self.is_frozen())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::atomic::{AtomicU64, Ordering},
        time::Duration,
    };

    use tokio::time::{Instant, sleep};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn nothing_in_a_frozen_process_is_polled() {
        let process = VirtualProcess::new();
        let steps = AtomicU64::new(0);
        let work = process.run(async {
            for _ in 0..10 {
                steps.fetch_add(1, Ordering::Relaxed);
                sleep(Duration::from_secs(1)).await;
            }
        });
        let start = Instant::now();
        let trouble = async {
            sleep(Duration::from_millis(2_500)).await;
            process.freeze();
            sleep(Duration::from_secs(60)).await;
            assert_eq!(steps.load(Ordering::Relaxed), 3);
            process.thaw();
            process.freeze();
            process.thaw();
        };
        tokio::join!(work, trouble);
        assert_eq!(steps.load(Ordering::Relaxed), 10);
        // Three seconds of work before the pause, whose timer has fired meanwhile, and seven after it.
        assert_eq!(
            start.elapsed(),
            Duration::from_millis(2_500 + 60_000 + 7_000)
        );
    }

    #[tokio::test(start_paused = true)]
    async fn work_goes_on_when_the_last_handle_is_gone() {
        let process = VirtualProcess::new();
        let work = process.run(sleep(Duration::from_secs(1)));
        drop(process);
        work.await;
    }
}
