use std::{sync::Arc, time::Duration};

use chrono::{DateTime, NaiveDate, Utc};
use serde::Deserialize;

use super::{settings::JobSettings, singleton_job::boxed};
use crate::{
    BoxError, Delivery, Missed, OnLost, Overlap, Run, SetupError, SingletonJob, Tries,
    schedule::ScheduleSource,
};

/// A job as data, which serde reads from a configuration file, a database or a message.
///
/// It has exactly one of [`cron`](Self::cron), [`every`](Self::every) and [`at`](Self::at), and a `name`.
/// The other fields have the defaults of [`SingletonJob`].
/// Durations are text such as `90s`, policies are in snake case, and an unknown field is an error.
///
/// `P` is the type of the payload, which each run gets.
/// If the payload may be missing, `P` is an [`Option`]; by default, there is no payload.
/// Replicas need not agree on the payload, and it is not written to the nodes.
///
/// # Examples
///
/// ```
/// use redlock_cron::{BoxError, JobConfig, Run};
/// use serde::Deserialize;
/// use std::sync::Arc;
///
/// #[derive(Deserialize)]
/// struct Report {
///     recipient: String,
/// }
///
/// # let folder = tempfile::tempdir()?;
/// # std::env::set_current_dir(folder.path())?;
/// let file = r#"
///     name = "weekly-report"
///     cron = "0 0 6 * * MON"
///     zone = "Europe/Berlin"
///     missed = "latest"
///     delivery = { at_least_once = { max_attempts = 3 } }
///     max_runtime = "10m"
///     tries = { up_to = 4, first = "5s" }
///     payload = { recipient = "board@example.com" }
/// "#;
/// std::fs::write("report.toml", file)?;
/// // With the feature `toml` of `redlock-core`; an error names the line and the setting, and repeats no value.
/// let config: JobConfig<Report> = redlock_core::read_toml("report.toml")?;
/// let job = config.into_job(|run: Run, report: Arc<Report>| async move {
///     println!("the report of {} goes to {}", run.local_date(), report.recipient);
///     Ok::<(), BoxError>(())
/// })?;
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Deserialize)]
#[non_exhaustive]
#[serde(deny_unknown_fields)]
pub struct JobConfig<P = Option<()>> {
    /// As the name of [`SingletonJob::cron`].
    pub name: String,
    /// As the pattern of [`SingletonJob::cron`].
    pub cron: Option<String>,
    /// The IANA name of the zone of `cron`; a `cron` needs a zone.
    pub zone: Option<String>,
    /// As the interval of [`SingletonJob::every`].
    #[serde(default, with = "humantime_serde")]
    pub every: Option<Duration>,
    /// As the instant of [`SingletonJob::once`], as text: `"2026-12-24T18:00:00Z"`, with quotes in TOML, too.
    pub at: Option<DateTime<Utc>>,
    /// As [`SingletonJob::start_within`].
    #[serde(default, with = "humantime_serde")]
    pub start_within: Option<Duration>,
    /// As [`SingletonJob::ttl`].
    #[serde(default, with = "humantime_serde")]
    pub ttl: Option<Duration>,
    /// As [`SingletonJob::overlap`]: `skip`, `wait`, `cancel_other` or `allow`, or `{ up_to = 3 }` for up to three runs at once.
    pub overlap: Option<Overlap>,
    /// As [`SingletonJob::missed`]: `skip`, `latest` or `all` with its `max`.
    pub missed: Option<Missed>,
    /// As [`SingletonJob::catch_up_window`].
    #[serde(default, with = "humantime_serde")]
    pub catch_up_window: Option<Duration>,
    /// As [`SingletonJob::delivery`]: `at_most_once`, or `at_least_once` with its `max_attempts`.
    pub delivery: Option<Delivery>,
    /// As [`SingletonJob::on_lost`]: `abort` or `signal`.
    pub on_lost: Option<OnLost>,
    /// As [`SingletonJob::max_runtime`].
    #[serde(default, with = "humantime_serde")]
    pub max_runtime: Option<Duration>,
    /// As [`SingletonJob::tries`]: `up_to`, and if wanted the pauses `first` and `longest`.
    pub tries: Option<Tries>,
    /// As [`SingletonJob::expect_success_within`].
    #[serde(default, with = "humantime_serde")]
    pub expect_success_within: Option<Duration>,
    /// As [`SingletonJob::except`]: days such as `"2026-12-25"`, with quotes in TOML, too.
    #[serde(default)]
    pub except: Vec<NaiveDate>,
    /// As [`SingletonJob::remember_errors`].
    #[serde(default)]
    pub remember_errors: bool,
    /// The value that each run of the job gets.
    pub payload: P,
}

impl<P: Send + Sync + 'static> JobConfig<P> {
    /// Makes the job, which calls `work` in each run.
    ///
    /// [Add](crate::SingletonScheduler::add) the job, or [`replace`](crate::SingletonScheduler::replace) the job of its
    /// name after the data has changed.
    ///
    /// # Errors
    ///
    /// The data has none or several of `cron`, `every` and `at`, or only one of `cron` and `zone`.
    /// `add` returns the other mistakes.
    ///
    /// # Examples
    ///
    /// ```
    /// use redlock_cron::{BoxError, JobConfig, Run};
    ///
    /// let configs: Vec<JobConfig> = serde_json::from_str(
    ///     r#"[
    ///         { "name": "sweep", "every": "5m" },
    ///         { "name": "close-day", "cron": "0 0 2 * * *", "zone": "Europe/Berlin" }
    ///     ]"#,
    /// )?;
    /// for config in configs {
    ///     let job = config.into_job(|run: Run, _payload| async move {
    ///         println!("{} of {}", run.name(), run.tick());
    ///         Ok::<(), BoxError>(())
    ///     })?;
    ///     // jobs.add(job).await?;
    /// #     drop(job);
    /// }
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// ```
    pub fn into_job<F, W, E>(self, work: W) -> Result<SingletonJob, SetupError>
    where
        W: Fn(Run, Arc<P>) -> F + Send + Sync + 'static,
        F: Future<Output = Result<(), E>> + Send + 'static,
        E: Into<BoxError>,
    {
        let plan = self.plan().map_err(|error| error.of_job(&self.name))?;
        let missed = match plan {
            ScheduleSource::Once(_) => Missed::Latest,
            ScheduleSource::Cron { .. } | ScheduleSource::Every(_) => Missed::default(),
        };
        let payload = Arc::new(self.payload);
        Ok(SingletonJob {
            name: self.name,
            plan,
            except: self.except.into_iter().collect(),
            settings: JobSettings {
                start_within: self.start_within,
                ttl: self.ttl,
                overlap: self.overlap.unwrap_or_default(),
                missed: self.missed.unwrap_or(missed),
                catch_up_window: self.catch_up_window,
                delivery: self.delivery.unwrap_or_default(),
                on_lost: self.on_lost.unwrap_or_default(),
                max_runtime: self.max_runtime,
                spread: None,
                tries: self.tries.unwrap_or_default(),
                expect_success_within: self.expect_success_within,
                remember_errors: self.remember_errors,
            },
            work: boxed(move |run| work(run, Arc::clone(&payload))),
            condition: None,
        })
    }

    fn plan(&self) -> Result<ScheduleSource, SetupError> {
        let contradiction = |field, message| Err(SetupError::contradiction(field, message));
        match (&self.cron, self.every, self.at) {
            (Some(pattern), None, None) => match &self.zone {
                Some(zone) => Ok(ScheduleSource::Cron {
                    pattern: pattern.clone(),
                    zone: zone.clone().into(),
                }),
                None => contradiction("zone", "a job with `cron` must have a `zone`"),
            },
            (None, _, _) if self.zone.is_some() => {
                contradiction("zone", "it says nothing without `cron`")
            }
            (None, Some(interval), None) => Ok(ScheduleSource::Every(interval)),
            (None, None, Some(instant)) => Ok(ScheduleSource::Once(instant)),
            _ => contradiction("cron", "a job must have one of `cron`, `every` and `at`"),
        }
    }
}
