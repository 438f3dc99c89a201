//! A number that stands for a job's configuration, so that replicas which differ notice.
//!
//! It is remembered with each run, and so is read by other versions of this crate.
//! Its highest byte says how the others are to be read.
//! In format 1, the lowest 27 bits stand for the policies and the 27 before them for the schedule, so that a replica can
//! tell whether the ticks since a run were promised by its own schedule.
//! The highest bit after the format is no part of the configuration: it says that the run makes up for a missed tick.
//! Each half is hashed from fields with a number of their own, so that no name in the source is part of it.
//! What earlier versions wrote is a number without a format; it is taken for another configuration.

use std::{collections::BTreeSet, time::Duration};

use chrono::{Datelike as _, NaiveDate};
use sha2::{Digest, Sha256};

use super::settings::JobSettings;
use crate::{Missed, OnLost, Overlap, schedule::ScheduleSource};

/// A job's configuration in format 1.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Fingerprint {
    // invariant: both have HALF bits
    schedule: u64,
    policies: u64,
}

impl Fingerprint {
    /// Computes the fingerprint, which is the same on all replicas with the same configuration and zones.
    pub(crate) fn of(
        plan: &ScheduleSource,
        except: &BTreeSet<NaiveDate>,
        settings: &JobSettings<Duration>,
        early: Duration,
        zones: &str,
    ) -> Self {
        Self {
            schedule: schedule(plan, except),
            policies: policies(settings, early, zones),
        }
    }

    /// Returns the number that is recorded with a run that was due.
    pub(crate) fn number(self) -> u64 {
        FORMAT << 56 | self.schedule << HALF | self.policies
    }

    /// Returns the number that is recorded with a run that makes up for a missed tick.
    pub(crate) fn of_made_up(self) -> u64 {
        self.number() | MADE_UP
    }

    /// Returns the part that stands for the schedule: a number of 27 bits.
    pub(crate) fn schedule(self) -> u64 {
        self.schedule
    }

    /// Returns whether the number that is recorded with a run is of this configuration.
    pub(crate) fn is_same(self, number: u64) -> bool {
        number & !MADE_UP == self.number()
    }

    /// Returns whether the number that is recorded with a run is of this schedule.
    pub(crate) fn is_same_schedule(self, number: u64) -> bool {
        Self::have_same_schedule(self.number(), number)
    }

    /// Returns whether two numbers that are recorded are of the same schedule.
    pub(crate) fn have_same_schedule(one: u64, other: u64) -> bool {
        (one & !MADE_UP) >> HALF == (other & !MADE_UP) >> HALF
    }
}

/// Returns whether the number that is recorded with a run is of one that makes up for a missed tick.
pub(crate) fn is_made_up(number: u64) -> bool {
    number >> 56 == FORMAT && number & MADE_UP != 0
}

fn schedule(plan: &ScheduleSource, except: &BTreeSet<NaiveDate>) -> u64 {
    let fields = Fields::default();
    let days = except
        .iter()
        .flat_map(|day| day.num_days_from_ce().to_be_bytes());
    let days: Vec<_> = days.collect();
    let fields = match except.is_empty() {
        true => fields,
        false => fields.field(5, &days),
    };
    match plan {
        // Another spelling of the same times is no other schedule: ticks are owed across a release that brings it.
        ScheduleSource::Cron { zone, .. } => {
            let times = plan
                .numbers_of_pattern()
                .into_iter()
                .flat_map(u64::to_be_bytes);
            let fields = fields.field(1, &times.collect::<Vec<_>>());
            fields.text(2, &zone.to_string()).hash()
        }
        ScheduleSource::Every(interval) => fields.time(3, *interval).hash(),
        // Of which a fraction of a second is dropped.
        ScheduleSource::Once(instant) => {
            fields.number(4, instant.timestamp().cast_unsigned()).hash()
        }
    }
}

/// Hashes the settings in force, whether each was set or is a default.
fn policies(settings: &JobSettings<Duration>, early: Duration, zones: &str) -> u64 {
    let JobSettings {
        start_within,
        ttl,
        overlap,
        missed,
        catch_up_window,
        delivery: _,
        on_lost,
        max_runtime,
        spread,
        tries,
        // These change no run.
        expect_success_within: _,
        remember_errors: _,
    } = *settings;
    let overlap = match overlap {
        Overlap::Skip => 1,
        Overlap::Wait => 2,
        Overlap::CancelOther => 3,
        Overlap::Allow => 4,
        // From 2 on.
        Overlap::UpTo(most) => 4 + most as u64,
    };
    let (missed, max) = match missed {
        Missed::Skip => (1, 0),
        Missed::Latest => (2, 0),
        Missed::All { max } => (3, max as u64),
    };
    let on_lost = match on_lost {
        OnLost::Abort => 1,
        OnLost::Signal => 2,
    };
    let fields = Fields::default()
        .text(1, zones)
        .time(2, early)
        .time(3, start_within)
        .time(4, ttl)
        .number(5, overlap)
        .number(6, missed)
        .number(7, max)
        .time(8, catch_up_window)
        .number(9, settings.max_attempts().into())
        .time(10, settings.retry_within())
        .number(11, on_lost)
        .time(13, spread);
    let fields = match max_runtime {
        Some(limit) => fields.time(12, limit),
        None => fields,
    };
    match tries.most {
        // Versions without tries wrote this.
        1 => fields.hash(),
        most => fields
            .number(14, most.into())
            .time(15, tries.first)
            .time(16, tries.longest)
            .hash(),
    }
}

/// Returns a number that stands for a job's name.
pub(super) fn number_of(name: &str) -> u64 {
    Fields::default().text(17, name).hash()
}

/// Numbered values, one after the other: the number in a byte, the length in eight, and the value.
#[derive(Default)]
struct Fields(Sha256);

impl Fields {
    fn text(self, number: u8, value: &str) -> Self {
        self.field(number, value.as_bytes())
    }

    fn number(self, number: u8, value: u64) -> Self {
        self.field(number, &value.to_be_bytes())
    }

    /// Adds a time in nanoseconds.
    fn time(self, number: u8, value: Duration) -> Self {
        self.field(number, &value.as_nanos().to_be_bytes())
    }

    fn field(mut self, number: u8, value: &[u8]) -> Self {
        self.0.update([number]);
        self.0.update((value.len() as u64).to_be_bytes());
        self.0.update(value);
        self
    }

    fn hash(self) -> u64 {
        let hash = self.0.finalize();
        let first = hash.iter().take(8);
        first.fold(0, |number, byte| number << 8 | u64::from(*byte)) >> (64 - HALF)
    }
}

const FORMAT: u64 = 1;

const MADE_UP: u64 = 1 << 55;

/// The bits of the schedule, and as many of the policies.
const HALF: u32 = 27;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Delivery, Tries, job::settings::early};
    use chrono::DateTime;
    use chrono_tz::Tz;
    use redlock_core::Redlock;
    use std::collections::HashSet;

    type Settings = JobSettings<Option<Duration>>;

    fn cron(pattern: &str, zone: Tz) -> ScheduleSource {
        ScheduleSource::Cron {
            pattern: pattern.into(),
            zone: zone.into(),
        }
    }

    async fn fingerprint(plan: &ScheduleSource, settings: &Settings) -> Fingerprint {
        let redlock = Redlock::builder().in_memory_nodes(1).build().await.unwrap();
        let schedule = plan.schedule().unwrap();
        let settings = settings.in_force(&schedule, &redlock).unwrap();
        let except = BTreeSet::new();
        Fingerprint::of(plan, &except, &settings, early(&redlock), "2026a")
    }

    fn settings() -> Vec<Settings> {
        let default = Settings::default;
        let seconds = |seconds| Some(Duration::from_secs(seconds));
        let twice = Delivery::AtLeastOnce { max_attempts: 2 };
        let all = |max| Settings {
            missed: Missed::All { max },
            ..default()
        };
        let tries = |most, first, longest| {
            let seconds = Duration::from_secs;
            let tries = Tries::up_to(most).backoff(seconds(first), seconds(longest));
            Settings { tries, ..default() }
        };
        vec![
            default(),
            Settings {
                start_within: seconds(7),
                ..default()
            },
            Settings {
                ttl: seconds(7),
                ..default()
            },
            Settings {
                overlap: Overlap::Wait,
                ..default()
            },
            Settings {
                missed: Missed::Latest,
                ..default()
            },
            Settings {
                catch_up_window: seconds(7_000),
                ..all(9)
            },
            all(9),
            all(10),
            Settings {
                delivery: twice,
                ..default()
            },
            Settings {
                on_lost: OnLost::Signal,
                ..default()
            },
            Settings {
                max_runtime: seconds(9),
                ..default()
            },
            Settings {
                spread: seconds(1),
                ..default()
            },
            tries(2, 1, 60),
            tries(3, 1, 60),
            tries(2, 2, 60),
            tries(2, 1, 61),
        ]
    }

    // Shows: A6.
    #[tokio::test]
    async fn whatever_differs_is_another() {
        let mut seen = HashSet::new();
        let once = |second| ScheduleSource::Once(DateTime::from_timestamp(second, 0).unwrap());
        let mut plans = vec![
            ScheduleSource::Every(Duration::from_secs(60)),
            once(60),
            once(61),
        ];
        for pattern in ["0 0 2 * * *", "0 0 3 * * *"] {
            plans.extend([Tz::UTC, Tz::Europe__Berlin].map(|zone| cron(pattern, zone)));
        }
        for settings in &settings() {
            for plan in &plans {
                let number = fingerprint(plan, settings).await.number();
                assert!(seen.insert(number), "{plan:?} {settings:?}");
            }
        }
    }

    #[tokio::test]
    async fn a_default_that_is_spelled_out_is_no_difference() {
        let plan = cron("0 0 2 * * *", Tz::UTC);
        let spelled_out = Settings {
            start_within: Some(Duration::from_secs(60)),
            ..Settings::default()
        };
        assert_eq!(
            fingerprint(&plan, &spelled_out).await,
            fingerprint(&plan, &Settings::default()).await
        );
    }

    #[tokio::test]
    async fn another_spelling_of_the_same_times_is_no_difference() {
        let spellings = [
            ("0 0 2 * * *", "0  0 2 ? * ?"),
            ("0 0 0 * * 1-5", "0 0 0 * * MON-FRI"),
            ("0 */30 * * * *", "0 0-59/30 * * * *"),
            ("0 0 0 1 1 *", "@yearly"),
            ("0 0 0 1 1 * 2027-2029", "0 0 0 1 JAN * 2029,2027,2028"),
        ];
        let all = spellings.map(|(one, other)| [cron(one, Tz::UTC), cron(other, Tz::UTC)]);
        let mut seen = HashSet::new();
        for [one, other] in &all {
            let one = fingerprint(one, &Settings::default()).await;
            assert_eq!(
                one,
                fingerprint(other, &Settings::default()).await,
                "{other:?}"
            );
            assert!(seen.insert(one.number()));
        }
        // Where clocks go back, the first follows them and has two times, and the other has one.
        let [follows, fixed] = [
            "0 0 * * * *",
            "0 0 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23 * * *",
        ];
        let [follows, fixed] = [follows, fixed].map(|pattern| cron(pattern, Tz::Europe__Berlin));
        let fixed = fingerprint(&fixed, &Settings::default()).await;
        assert_ne!(fingerprint(&follows, &Settings::default()).await, fixed);
    }

    #[test]
    fn days_that_are_left_out_are_part_of_the_schedule() {
        let plan = cron("0 0 2 * * *", Tz::UTC);
        let days = |days: &[u32]| {
            let days = days
                .iter()
                .filter_map(|day| NaiveDate::from_ymd_opt(2026, 12, *day));
            schedule(&plan, &days.collect())
        };
        let all: HashSet<_> = [days(&[]), days(&[25]), days(&[26]), days(&[25, 26])].into();
        assert_eq!(all.len(), 4);
        assert_eq!(days(&[26, 25]), days(&[25, 26]));
    }

    #[tokio::test]
    async fn a_schedule_is_told_from_policies() {
        let (two, three) = (cron("0 0 2 * * *", Tz::UTC), cron("0 0 3 * * *", Tz::UTC));
        let ours = fingerprint(&two, &Settings::default()).await;
        for settings in &settings() {
            let same = fingerprint(&two, settings).await.number();
            assert!(ours.is_same_schedule(same), "{settings:?}");
            let other = fingerprint(&three, settings).await.number();
            assert!(!ours.is_same_schedule(other), "{settings:?}");
        }
        assert!(ours.is_same(ours.of_made_up()) && ours.is_same_schedule(ours.of_made_up()));
        assert!(is_made_up(ours.of_made_up()) && !is_made_up(ours.number()));
        // What versions without a format wrote.
        assert!(!ours.is_same_schedule(ours.number() & u64::MAX >> 8));
    }

    /// Another number means that replicas of this version and the one before warn of each other: say so in the
    /// changelog, and begin another format if what they mean is another.
    #[tokio::test]
    async fn the_encoding_is_the_one_that_other_versions_read() {
        let berlin = cron("0 0 2 * * *", Tz::Europe__Berlin);
        let berlin = fingerprint(&berlin, &Settings::default()).await;
        let every = ScheduleSource::Every(Duration::from_secs(60));
        let settings = Settings {
            max_runtime: Some(Duration::from_secs(9)),
            spread: Some(Duration::ZERO),
            ..Settings::default()
        };
        let tries = Tries::up_to(4).backoff(Duration::from_secs(5), Duration::from_secs(9));
        let tried = Settings {
            tries,
            ..Settings::default()
        };
        let once = ScheduleSource::Once("2026-12-24T18:00:00Z".parse().unwrap());
        let numbers = [
            berlin.number(),
            fingerprint(&every, &settings).await.number(),
            fingerprint(&every, &tried).await.number(),
            fingerprint(&once, &Settings::default()).await.number(),
        ];
        assert_eq!(
            numbers.map(|number| format!("{number:016x}")),
            [
                "011bb83d53e78e6e",
                "011afa16ed356972",
                "011afa16ec6c6e60",
                "013fa45983e78e6e"
            ]
        );
    }
}
