use std::time::Duration;

use serde::Deserialize;

/// The number of calls of the job that a run makes while they return errors, and the pauses between them.
///
/// # Examples
///
/// ```
/// use redlock_cron::{BoxError, Run, SingletonJob, Tries};
/// use std::time::Duration;
///
/// let job = SingletonJob::cron("send-report", "0 0 6 * * *", "UTC", |run: Run| async move {
///     println!("try {} of the report of {}", run.try_number(), run.local_date());
///     Ok::<(), BoxError>(())
/// })
/// .tries(Tries::up_to(4).backoff(Duration::from_secs(5), Duration::from_secs(60)))
/// .max_runtime(Duration::from_secs(600));
/// ```
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Tries {
    #[serde(rename = "up_to")]
    pub(crate) most: u32,
    #[serde(default = "first", with = "humantime_serde")]
    pub(crate) first: Duration,
    #[serde(default = "longest", with = "humantime_serde")]
    pub(crate) longest: Duration,
}

impl Tries {
    /// Allows up to `most` calls of the job in a run, including the first: from 1 to 1,000.
    ///
    /// The pause before the second call is up to a second, and each further pause is twice as long, up to a minute; see
    /// [`backoff`](Self::backoff).
    ///
    /// # Examples
    ///
    /// ```
    /// # use redlock_cron::{BoxError, Run, SingletonScheduler};
    /// # async fn close_books(_run: Run) -> Result<(), BoxError> { Ok(()) }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), BoxError> {
    /// use redlock_cron::{SingletonJob, Tries};
    ///
    /// let job = SingletonJob::cron("close-day", "0 0 2 * * *", "UTC", close_books)
    ///     .tries(Tries::up_to(3));
    /// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
    /// # SingletonScheduler::standalone(redlock).namespace("billing").build()?.add(job).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn up_to(most: u32) -> Self {
        Self {
            most,
            first: first(),
            longest: longest(),
        }
    }

    /// Sets the pause before the second call, and the longest pause: from a millisecond to a day.
    ///
    /// Default: a second, and a minute.
    /// Each pause is twice as long as the one before.
    /// A random part of its second half is left out, so that jobs which fail together do not all try again at the same
    /// moment.
    ///
    /// # Examples
    ///
    /// ```
    /// # use redlock_cron::{BoxError, Run, SingletonScheduler};
    /// # async fn close_books(_run: Run) -> Result<(), BoxError> { Ok(()) }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), BoxError> {
    /// use redlock_cron::{SingletonJob, Tries};
    /// use std::time::Duration;
    ///
    /// let tries = Tries::up_to(10).backoff(Duration::from_millis(200), Duration::from_secs(10));
    /// let job = SingletonJob::cron("close-day", "0 0 2 * * *", "UTC", close_books).tries(tries);
    /// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
    /// # SingletonScheduler::standalone(redlock).namespace("billing").build()?.add(job).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn backoff(self, first: Duration, longest: Duration) -> Self {
        Self {
            first,
            longest,
            ..self
        }
    }

    /// Returns the longest pause after `tries` tries; `None` if there is no further try.
    pub(crate) fn pause_after(&self, tries: u32) -> Option<Duration> {
        let doubled = self
            .first
            .saturating_mul(2_u32.saturating_pow(tries.saturating_sub(1)));
        (tries < self.most).then(|| doubled.min(self.longest))
    }
}

impl Default for Tries {
    /// Allows one call.
    fn default() -> Self {
        Self::up_to(1)
    }
}

fn first() -> Duration {
    Duration::from_secs(1)
}

fn longest() -> Duration {
    Duration::from_secs(60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest_until_no_try_is_left() {
        let seconds = Duration::from_secs;
        let tries = Tries::up_to(6).backoff(seconds(2), seconds(10));
        let pauses: Vec<_> = (1..8)
            .map(|tries_made| tries.pause_after(tries_made))
            .collect();
        let expected = [2, 4, 8, 10, 10].map(|pause| Some(seconds(pause)));
        assert_eq!(pauses[..5], expected);
        assert_eq!(pauses[5..], [None, None]);
        assert_eq!(Tries::up_to(1).pause_after(1), None);
        let many = Tries::up_to(1_000).backoff(seconds(1), seconds(86_400));
        assert_eq!(many.pause_after(999), Some(seconds(86_400)));
    }
}
