//! The days of a month that match: both their number and their weekday must.

use chrono::{Datelike, NaiveDate};

use super::{
    Set,
    field::{DAY, WEEKDAY, number},
};

#[derive(Clone, Debug, Default)]
pub(in crate::schedule) struct Days {
    pub(in crate::schedule) days: Set,
    /// `L`.
    pub(in crate::schedule) has_last: bool,
    /// `LW`.
    pub(in crate::schedule) has_last_workday: bool,
    /// `15W`: the workday in the month that is nearest to the 15th.
    pub(in crate::schedule) near: Set,
    /// From Sunday, which is 0.
    pub(in crate::schedule) weekdays: Set,
    /// `FRI#2`, by its number in the month from 1 on.
    pub(in crate::schedule) nth: [Set; 6],
    /// `FRIL`.
    pub(in crate::schedule) last: Set,
}

/// Any day of its field.
const ANY: &str = "?";

impl Days {
    pub(super) fn read(day: &str, weekday: &str, doubts: &mut Vec<String>) -> Result<Self, String> {
        let mut days = Self::default();
        let any = |text| if text == ANY { "*" } else { text };
        DAY.list(any(day), |text| days.read_day(text, doubts))?;
        WEEKDAY.list(any(weekday), |text| days.read_weekday(text, doubts))?;
        Ok(days)
    }

    fn read_day(&mut self, text: &str, doubts: &mut Vec<String>) -> Result<(), String> {
        match text.strip_suffix(['W', 'w']) {
            Some(last) if last.eq_ignore_ascii_case("L") => self.has_last_workday = true,
            Some(day) => self.near.add([DAY.value(day, text)?]),
            None if text.eq_ignore_ascii_case("L") => self.has_last = true,
            None => self.days.add(DAY.item(text, doubts)?.values()),
        }
        Ok(())
    }

    fn read_weekday(&mut self, text: &str, doubts: &mut Vec<String>) -> Result<(), String> {
        let last = text.strip_suffix(['L', 'l']);
        let last = last.map(|day| day.strip_suffix('#').unwrap_or(day));
        if let Some(day) = last {
            self.last.add([WEEKDAY.value(day, text)? % 7]);
        } else if let Some((day, nth)) = text.split_once('#') {
            let (day, nth) = (WEEKDAY.value(day, text)?, number(nth, text)?);
            match self.nth.get_mut(usize::from(nth)).filter(|_| nth > 0) {
                Some(days) => days.add([day % 7]),
                None => return Err(format!("{nth} in {text:?} is out of range")),
            }
        } else {
            let days = WEEKDAY.item(text, doubts)?.values();
            self.weekdays.add(days.map(|day| day % 7));
        }
        Ok(())
    }

    /// Returns numbers that are the same for all spellings of the days.
    pub(super) fn numbers(&self) -> impl Iterator<Item = u64> {
        let flags = [self.has_last, self.has_last_workday].map(u64::from);
        let sets = [self.days, self.near, self.weekdays, self.last];
        let sets = sets.into_iter().chain(self.nth).map(|set| set.0);
        flags.into_iter().chain(sets)
    }

    /// Returns whether one of these months has a day that matches in some year.
    pub(super) fn are_in(&self, months: Set) -> bool {
        let months = months.values();
        // Years of every length that begin with every weekday.
        let mut months = months.flat_map(|month| {
            (2_000..2_028).filter_map(move |year| NaiveDate::from_ymd_opt(year, month, 1))
        });
        months.any(|month| !self.of_month(month).is_empty())
    }

    /// Returns the days that match in the month of `day`.
    pub(super) fn of_month(&self, day: NaiveDate) -> Set {
        let (number, length) = (day.day(), u32::from(day.num_days_in_month()));
        // 35 is a multiple of 7 and more than the days of a month.
        let first = (day.weekday().num_days_from_sunday() + 36 - number) % 7;
        let weekday = |day: u32| (first + day - 1) % 7;
        let is_weekday = |day: &u32| {
            let nth = self.nth[(*day as usize - 1) / 7 + 1];
            let is_last = *day + 7 > length;
            let plain = self.weekdays.has(weekday(*day)) || nth.has(weekday(*day));
            plain || is_last && self.last.has(weekday(*day))
        };
        let workday = |day: u32| match weekday(day) {
            SUNDAY if day == length => day - 2,
            SUNDAY => day + 1,
            SATURDAY if day == 1 => day + 2,
            SATURDAY => day - 1,
            _ => day,
        };
        let near = self.near.values().filter(|day| *day <= length);
        let last = self.has_last.then_some(length);
        // The last day is nearest to itself.
        let last_workday = self.has_last_workday.then(|| workday(length));
        let days = self.days.before(length + 1).values();
        let days = days
            .chain(near.map(workday))
            .chain(last)
            .chain(last_workday);
        days.filter(is_weekday).collect()
    }
}

const SUNDAY: u32 = 0;
const SATURDAY: u32 = 6;
