//! A pattern: the grammar of its fields, and the days and times that match it.
//!
//! The reading is our own, because a schedule must refuse what it does not understand.
//! Each field is a set of values before anything is searched, so that no search is longer than the years of patterns.

mod days;
mod field;

use std::ops::Range;

use chrono::{Datelike, Months, NaiveDate, NaiveDateTime, NaiveTime, TimeDelta, Timelike};

use self::field::{Field, HOUR, MINUTE, MONTH, SECOND, YEAR};
pub(super) use self::{days::Days, field::Item};

#[derive(Clone, Debug)]
pub(super) struct Pattern {
    // invariant: no set is empty
    pub(super) seconds: Set,
    pub(super) minutes: Set,
    pub(super) hours: Set,
    pub(super) days: Days,
    pub(super) months: Set,
    pub(super) years: Vec<Item>,
    /// Whether some year has a day that matches, if it is one of the years; 30 February is in none.
    has_days: bool,
    /// Whether it follows the clock: it has a wildcard, a range or a step of several values in a field of the time.
    pub(super) repeats: bool,
    /// The steps that do not mean what they say.
    pub(super) doubts: Vec<String>,
}

/// Values from 0 to 63: the value n is in it if the bit n is set.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Set(u64);

/// The begin of the years of patterns and their end.
pub(super) const BEGIN: NaiveDateTime = begin_of(1);
pub(super) const END: NaiveDateTime = begin_of(5_000);

/// In bytes; it bounds the time to read one.
const LONGEST: usize = 1_024;

const FIELDS: &str = "it must have the fields second, minute, hour, day of month, month, day of week and, if wanted, \
                      year, such as `0 30 2 * * *`";

const NAMES: [(&str, &str); 6] = [
    ("@yearly", "0 0 0 1 1 *"),
    ("@annually", "0 0 0 1 1 *"),
    ("@monthly", "0 0 0 1 * *"),
    ("@weekly", "0 0 0 * * SUN"),
    ("@daily", "0 0 0 * * *"),
    ("@hourly", "0 0 * * * *"),
];

#[cfg(test)]
thread_local! {
    /// The months that searches of this thread have looked at.
    pub(super) static STEPS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

impl Pattern {
    /// Reads a pattern, or says which of its fields is not valid and why.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        if text.len() > LONGEST {
            let length = text.len();
            return Err(format!("{length} bytes are more than {LONGEST}; {FIELDS}"));
        }
        Self::read_fields(text).map_err(|error| format!("{text:?} is not valid: {error}; {FIELDS}"))
    }

    fn read_fields(text: &str) -> Result<Self, String> {
        let name = NAMES.iter();
        let mut name = name.filter(|(name, _)| name.eq_ignore_ascii_case(text.trim()));
        let text = name.next().map_or(text, |(_, pattern)| pattern);
        let fields: Vec<_> = text.split_whitespace().collect();
        let (&[second, minute, hour, day, month, weekday], year) = match fields.split_first_chunk()
        {
            Some((first, [])) => (first, "*"),
            Some((first, [year])) => (first, *year),
            _ => return Err(format!("it has {} fields", fields.len())),
        };
        let time = [(SECOND, second), (MINUTE, minute), (HOUR, hour)];
        let mut doubts = Vec::new();
        let mut items = |field: Field, text| field.list(text, |item| field.item(item, &mut doubts));
        let [seconds, minutes, hours] = time.map(|(field, text)| items(field, text));
        let (seconds, minutes, hours) = (seconds?, minutes?, hours?);
        let months = Set::of(&items(MONTH, month)?);
        let years = items(YEAR, year)?;
        let days = Days::read(day, weekday, &mut doubts)?;
        let mut times = seconds.iter().chain(&minutes).chain(&hours);
        Ok(Self {
            repeats: times.any(|item| item.repeats()),
            seconds: Set::of(&seconds),
            minutes: Set::of(&minutes),
            hours: Set::of(&hours),
            has_days: days.are_in(months),
            days,
            months,
            years,
            doubts,
        })
    }

    /// Returns numbers that are the same for all spellings of one set of times, such as `*` and `?`.
    pub(super) fn numbers(&self) -> Vec<u64> {
        let mut years: Vec<_> = self.years.iter().flat_map(|item| item.values()).collect();
        years.sort_unstable();
        years.dedup();
        let times = [self.seconds, self.minutes, self.hours, self.months];
        let numbers = times.map(|set| set.0).into_iter();
        // A pattern that repeats has other times where clocks change.
        let numbers = numbers.chain([u64::from(self.repeats)]);
        let numbers = numbers.chain(self.days.numbers());
        let years = years.chunk_by(|year, next| year + 1 == *next);
        let years = years.flat_map(|years| [years[0], years[years.len() - 1]]);
        numbers.chain(years.map(u64::from)).collect()
    }

    /// Returns the first time of some that matches, in a world in which no clock changes.
    pub(super) fn first_in(&self, times: Range<NaiveDateTime>) -> Option<NaiveDateTime> {
        let Range { start, end } = times;
        if !self.has_days {
            return None;
        }
        if self.has_day(start.date())
            && let Some(time) = self.first_time_from(start.time())
        {
            return Some(start.date().and_time(time)).filter(|time| *time < end);
        }
        let mut first = start.date().succ_opt()?;
        while first <= end.date() {
            let days = self.days_of_month(first).from(first.day());
            if let Some(day) = days.first() {
                let time = self.first_time_from(NaiveTime::MIN)?;
                let time = first.with_day(day)?.and_time(time);
                return Some(time).filter(|time| *time < end);
            }
            first = first.with_day(1)?.checked_add_months(Months::new(1))?;
        }
        None
    }

    /// Returns the last time of some that matches, in a world in which no clock changes.
    pub(super) fn last_in(&self, times: Range<NaiveDateTime>) -> Option<NaiveDateTime> {
        let Range { start, end } = times;
        let until = end.checked_sub_signed(TimeDelta::seconds(1))?;
        if !self.has_days {
            return None;
        }
        if self.has_day(until.date())
            && let Some(time) = self.last_time_until(until.time())
        {
            return Some(until.date().and_time(time)).filter(|time| *time >= start);
        }
        let mut last = until.date().pred_opt()?;
        while last >= start.date() {
            let days = self.days_of_month(last).before(last.day() + 1);
            if let Some(day) = days.last() {
                let time = self.last_time_until(NaiveTime::from_hms_opt(23, 59, 59)?)?;
                let time = last.with_day(day)?.and_time(time);
                return Some(time).filter(|time| *time >= start);
            }
            last = last.with_day(1)?.pred_opt()?;
        }
        None
    }

    fn has_day(&self, day: NaiveDate) -> bool {
        self.days_of_month(day).has(day.day())
    }

    /// Returns the days that match in the month of `day`.
    fn days_of_month(&self, day: NaiveDate) -> Set {
        #[cfg(test)]
        STEPS.set(STEPS.get() + 1);
        let year = u16::try_from(day.year()).unwrap_or(0);
        if !self.months.has(day.month()) || !self.years.iter().any(|item| item.has(year)) {
            return Set::default();
        }
        self.days.of_month(day)
    }

    fn first_time_from(&self, from: NaiveTime) -> Option<NaiveTime> {
        let (hour, minute, second) = (from.hour(), from.minute(), from.second());
        let first_minute = |hour, minute| {
            let minute = self.minutes.from(minute).first()?;
            NaiveTime::from_hms_opt(hour, minute, self.seconds.first()?)
        };
        let this_hour = || {
            let in_minute = self.seconds.from(second).first();
            match in_minute.filter(|_| self.minutes.has(minute)) {
                Some(second) => NaiveTime::from_hms_opt(hour, minute, second),
                None => first_minute(hour, minute + 1),
            }
        };
        let time = self.hours.has(hour).then(this_hour).flatten();
        time.or_else(|| first_minute(self.hours.from(hour + 1).first()?, 0))
    }

    fn last_time_until(&self, until: NaiveTime) -> Option<NaiveTime> {
        let (hour, minute, second) = (until.hour(), until.minute(), until.second());
        let last_minute = |hour, minute| {
            let minute = self.minutes.before(minute).last()?;
            NaiveTime::from_hms_opt(hour, minute, self.seconds.last()?)
        };
        let this_hour = || {
            let in_minute = self.seconds.before(second + 1).last();
            match in_minute.filter(|_| self.minutes.has(minute)) {
                Some(second) => NaiveTime::from_hms_opt(hour, minute, second),
                None => last_minute(hour, minute),
            }
        };
        let time = self.hours.has(hour).then(this_hour).flatten();
        time.or_else(|| last_minute(self.hours.before(hour).last()?, 60))
    }
}

impl Set {
    fn of(items: &[Item]) -> Self {
        let values = items.iter().flat_map(|item| item.values());
        values.map(u32::from).collect()
    }

    fn add(&mut self, values: impl IntoIterator<Item = u16>) {
        let values: Self = values.into_iter().map(u32::from).collect();
        self.0 |= values.0;
    }

    pub(super) fn has(self, value: u32) -> bool {
        self.0 >> value & 1 == 1
    }

    pub(super) fn values(self) -> impl Iterator<Item = u32> {
        (0..64).filter(move |value| self.has(*value))
    }

    pub(super) fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns its value if it has no other.
    pub(super) fn only(self) -> Option<u32> {
        self.first().filter(|_| self.0.is_power_of_two())
    }

    fn first(self) -> Option<u32> {
        (!self.is_empty()).then(|| self.0.trailing_zeros())
    }

    fn last(self) -> Option<u32> {
        (!self.is_empty()).then(|| 63 - self.0.leading_zeros())
    }

    fn from(self, first: u32) -> Self {
        Self(self.0 & u64::MAX << first)
    }

    fn before(self, end: u32) -> Self {
        Self(self.0 & !(u64::MAX << end))
    }
}

impl FromIterator<u32> for Set {
    fn from_iter<T: IntoIterator<Item = u32>>(values: T) -> Self {
        Self(values.into_iter().fold(0, |bits, value| bits | 1 << value))
    }
}

const fn begin_of(year: i32) -> NaiveDateTime {
    let day = NaiveDate::from_ymd_opt(year, 1, 1);
    day.expect("it exists").and_time(NaiveTime::MIN)
}
