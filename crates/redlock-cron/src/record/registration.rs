//! The registration of a job: its schedule and its policies, which its schedulers have the nodes remember.
//!
//! The nodes keep the text of it as a note, the fingerprint of the job as the number, and the time until the next tick as
//! the duration.

use std::{collections::BTreeSet, time::Duration};

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use parking_lot::Mutex;
use redlock_core::{JobState, Note, RunRecord};
use tokio::time::Instant;

use super::outcome::{end_of, is_outcome};
use crate::{
    Delivery, Missed, Overlap, Schedule,
    clock::{lag, to_instant, written},
    job::{Fingerprint, JobSettings},
    schedule::ScheduleSource,
};

/// The registration of a job, as the nodes remember it: its schedulers make it at their start and once a day.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
/// let job = redlock_cron::inspect(&redlock, "billing", "close-day").await?;
/// match job.registration() {
///     None => println!("no scheduler has registered it"),
///     Some(job) if job.is_gone() => println!("no scheduler has registered it since {}", job.registered_at()),
///     Some(job) => println!("{} in {:?}, next at {:?}", job.pattern(), job.zone(), job.next_tick()),
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct JobRegistration {
    record: RunRecord,
    /// None if it was too long for the nodes, or if this version cannot read it.
    schedule: Option<Schedule>,
    /// The nodes' time at the reading.
    now: DateTime<Utc>,
}

impl JobRegistration {
    /// Reads the newest registration; `None` if there was none.
    pub(crate) fn newest(state: &JobState, now: DateTime<Utc>) -> Option<Self> {
        let mut runs = state.runs.iter();
        let record = runs.find(|run| is_outcome(run, REGISTERED))?.clone();
        let mut newest = Self {
            record,
            schedule: None,
            now,
        };
        newest.schedule = newest.text().schedule();
        Some(newest)
    }

    /// Returns the moment of the registration, by the nodes' clocks.
    pub fn registered_at(&self) -> DateTime<Utc> {
        to_instant(self.record.tick)
    }

    /// Returns the replica that registered the job last.
    pub fn replica(&self) -> &str {
        self.record.replica.as_str()
    }

    /// Returns the pattern, `every 300 s`, or `once` with the instant.
    pub fn pattern(&self) -> &str {
        self.text().pattern()
    }

    /// Returns the name of the pattern's zone; `None` for a job without a pattern.
    pub fn zone(&self) -> Option<&str> {
        self.text().zone()
    }

    /// Returns the policies in words, such as `overlap skip, missed skip, at most once`; `None` if the nodes have no room
    /// for them behind the pattern.
    pub fn policies(&self) -> Option<&str> {
        self.text().policies()
    }

    /// Returns the schedule; `None` if the nodes have no room for all of it.
    pub fn schedule(&self) -> Option<&Schedule> {
        self.schedule.as_ref()
    }

    /// Returns the next tick, by the nodes' clocks; `None` if no tick is left, or if it is not known.
    pub fn next_tick(&self) -> Option<DateTime<Utc>> {
        if let Some(schedule) = &self.schedule {
            return schedule.next_after(self.now);
        }
        let (_, left) = end_of(&self.record)?;
        let next = self.registered_at() + TimeDelta::from_std(left).ok()?;
        (next > self.now).then_some(next)
    }

    /// Returns whether no replica has registered the job for a week: no scheduler has it any more.
    pub fn is_gone(&self) -> bool {
        self.age() > GONE_AFTER
    }

    /// Returns whether a replica with this configuration has registered the job within the last day.
    pub(crate) fn is_of(&self, fingerprint: Fingerprint) -> bool {
        fingerprint.is_same(self.record.fingerprint) && self.age() < VALID_FOR
    }

    /// Returns whether the record is of a run under the registered schedule.
    pub(crate) fn is_of_schedule(&self, record: &RunRecord) -> bool {
        Fingerprint::have_same_schedule(self.record.fingerprint, record.fingerprint)
    }

    fn age(&self) -> Duration {
        lag(self.registered_at(), self.now)
    }

    fn text(&self) -> RegisteredText<'_> {
        RegisteredText(self.record.note.as_ref().map_or("", Note::as_str))
    }
}

/// The text of a registration.
#[derive(Clone, Copy)]
struct RegisteredText<'a>(&'a str);

impl<'a> RegisteredText<'a> {
    fn pattern(self) -> &'a str {
        self.parts().next().unwrap_or_default()
    }

    fn zone(self) -> Option<&'a str> {
        self.has_zone().then(|| self.parts().nth(1))?
    }

    fn policies(self) -> Option<&'a str> {
        self.parts().nth(1 + usize::from(self.has_zone()))
    }

    /// Reads the schedule; `None` if a part of it is missing, or if this version cannot read it.
    fn schedule(self) -> Option<Schedule> {
        if self.0.ends_with(CUT) {
            return None;
        }
        let pattern = self.pattern();
        let schedule = match pattern.split_once(' ') {
            Some(("every", seconds)) => {
                let seconds = seconds.strip_suffix(" s")?.parse().ok()?;
                Schedule::every(Duration::from_secs(seconds))
            }
            Some(("once", instant)) => Ok(Schedule::once(instant.parse().ok()?)),
            _ => Schedule::cron(pattern, self.zone()?),
        };
        let except = self.parts().find_map(|part| part.strip_prefix(EXCEPT));
        let days = except.unwrap_or_default().split_whitespace();
        let days: Result<Vec<NaiveDate>, _> = days.map(str::parse).collect();
        Some(schedule.ok()?.except(days.ok()?))
    }

    fn has_zone(self) -> bool {
        let first = self.pattern().split(' ').next();
        !matches!(first, Some("every" | "once"))
    }

    fn parts(self) -> impl Iterator<Item = &'a str> {
        self.0.split(DIVIDER)
    }
}

/// The registration of a job by this replica: its text, and when to look for it next.
#[derive(Debug)]
pub(crate) struct OwnRegistration {
    text: String,
    /// At once, if it is not said.
    next: Mutex<Option<Instant>>,
}

impl OwnRegistration {
    pub(crate) fn new(
        plan: &ScheduleSource,
        except: &BTreeSet<NaiveDate>,
        settings: &JobSettings<Duration>,
    ) -> Self {
        Self {
            text: cut(text(plan, except, settings)),
            next: Mutex::default(),
        }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Returns whether a look is due.
    pub(crate) fn is_due(&self) -> bool {
        self.next.lock().is_none_or(|next| next <= Instant::now())
    }

    /// Notes that the next look is due after `pause`.
    pub(crate) fn look_after(&self, pause: Duration) {
        *self.next.lock() = Some(Instant::now() + pause);
    }
}

fn text(
    plan: &ScheduleSource,
    except: &BTreeSet<NaiveDate>,
    settings: &JobSettings<Duration>,
) -> String {
    let schedule = match plan {
        ScheduleSource::Cron { pattern, zone } => format!("{pattern}{DIVIDER}{zone}"),
        ScheduleSource::Every(interval) => format!("every {} s", interval.as_secs()),
        ScheduleSource::Once(instant) => format!("once {}", written(*instant)),
    };
    let overlap = match settings.overlap {
        Overlap::Skip => "skip".to_owned(),
        Overlap::Wait => "wait".to_owned(),
        Overlap::CancelOther => "cancel other".to_owned(),
        Overlap::Allow => "allow".to_owned(),
        Overlap::UpTo(most) => format!("up to {most}"),
    };
    let missed = match settings.missed {
        Missed::Skip => "skip".to_owned(),
        Missed::Latest => "latest".to_owned(),
        Missed::All { max } => format!("all up to {max}"),
    };
    let delivery = match settings.delivery {
        Delivery::AtMostOnce => "at most once".to_owned(),
        Delivery::AtLeastOnce { max_attempts } => {
            format!("at least once in {max_attempts} attempts")
        }
    };
    let policies = format!("overlap {overlap}, missed {missed}, {delivery}");
    let text = format!("{schedule}{DIVIDER}{policies}");
    if except.is_empty() {
        return text;
    }
    let days: Vec<_> = except.iter().map(ToString::to_string).collect();
    format!("{text}{DIVIDER}{EXCEPT}{}", days.join(" "))
}

/// Returns the text, with a mark at its end if the nodes have no room for all of it.
fn cut(text: String) -> String {
    if text.len() <= Note::LONGEST {
        return text;
    }
    let mut ends = (0..=Note::LONGEST - CUT.len()).rev();
    let end = ends.find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    format!("{}{CUT}", &text[..end])
}

/// The word of a registration.
pub(crate) const REGISTERED: &str = "registered";

/// The age of a registration from which on the next replica that looks makes another.
const VALID_FOR: Duration = Duration::from_secs(24 * 60 * 60);

const GONE_AFTER: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// Between the parts: no pattern, zone or policy has it.
const DIVIDER: &str = "; ";
const EXCEPT: &str = "except ";
const CUT: &str = "…";

#[cfg(test)]
mod tests {
    use super::*;
    use redlock_core::Redlock;

    fn at(time: &str) -> DateTime<Utc> {
        time.parse().unwrap()
    }

    /// Returns the text of a job with this schedule, but for some days from Christmas on.
    async fn text_of(plan: &ScheduleSource, days: usize) -> String {
        let redlock = Redlock::builder().in_memory_nodes(1).build().await.unwrap();
        let settings = JobSettings::<Option<Duration>> {
            overlap: Overlap::Wait,
            delivery: Delivery::AtLeastOnce { max_attempts: 2 },
            ..JobSettings::default()
        };
        let schedule = plan.schedule().unwrap();
        let settings = settings.in_force(&schedule, &redlock).unwrap();
        let first = NaiveDate::from_ymd_opt(2026, 12, 25).unwrap();
        let except = first.iter_days().take(days).collect();
        let own = OwnRegistration::new(plan, &except, &settings);
        own.text().to_owned()
    }

    #[tokio::test]
    async fn the_schedule_that_is_registered_is_read() {
        let cron = ScheduleSource::Cron {
            pattern: "0 0 9 * * MON-FRI".into(),
            zone: "Europe/Berlin".into(),
        };
        let every = ScheduleSource::Every(Duration::from_secs(300));
        let once = ScheduleSource::Once(at("2027-01-01T00:00:00Z"));
        for (plan, days, pattern, zone, next) in [
            (
                &cron,
                1,
                "0 0 9 * * MON-FRI",
                Some("Europe/Berlin"),
                "2026-12-28T08:00:00Z",
            ),
            (&every, 0, "every 300 s", None, "2026-12-24T12:10:00Z"),
            (
                &once,
                0,
                "once 2027-01-01T00:00:00Z",
                None,
                "2027-01-01T00:00:00Z",
            ),
        ] {
            let text = text_of(plan, days).await;
            let read = RegisteredText(&text);
            assert_eq!((read.pattern(), read.zone()), (pattern, zone));
            let policies = "overlap wait, missed skip, at least once in 2 attempts";
            assert_eq!(read.policies(), Some(policies));
            let schedule = read.schedule().unwrap();
            assert_eq!(
                schedule.next_after(at("2026-12-24T12:07:00Z")),
                Some(at(next))
            );
        }
    }

    #[tokio::test]
    async fn a_text_for_which_nodes_have_no_room_is_cut_and_its_schedule_is_not_read() {
        let cron = ScheduleSource::Cron {
            pattern: "0 0 9 * * *".into(),
            zone: "Europe/Berlin".into(),
        };
        let text = text_of(&cron, 25).await;
        assert!(Note::new(&text).is_some_and(|note| note.as_str() == text));
        let read = RegisteredText(&text);
        assert_eq!(
            (read.pattern(), read.zone()),
            ("0 0 9 * * *", Some("Europe/Berlin"))
        );
        assert!(read.schedule().is_none());
        assert!(RegisteredText("").schedule().is_none());
    }
}
