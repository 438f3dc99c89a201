//! The grammar of one field of a pattern: a list of values, ranges and steps.

use std::collections::BTreeSet;

/// What a field may have.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) name: &'static str,
    first: u16,
    last: u16,
    /// The number of values after which the field begins again; 0 if that number varies or the field never does.
    cycle: u16,
    /// The names of values from [`first`](Self::first) on.
    names: &'static [&'static str],
    /// The values in words, for errors.
    values: &'static str,
}

/// The values from one to another, in steps.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::schedule) struct Item {
    pub(in crate::schedule) first: u16,
    pub(in crate::schedule) last: u16,
    // invariant: at least 1
    pub(in crate::schedule) step: u16,
}

pub(super) const SECOND: Field = Field {
    name: "second",
    first: 0,
    last: 59,
    cycle: 60,
    names: &[],
    values: "0 to 59",
};

pub(super) const MINUTE: Field = Field {
    name: "minute",
    ..SECOND
};

pub(super) const HOUR: Field = Field {
    name: "hour",
    last: 23,
    cycle: 24,
    values: "0 to 23",
    ..SECOND
};

pub(super) const DAY: Field = Field {
    name: "day of month",
    first: 1,
    last: 31,
    cycle: 0,
    names: &[],
    values: "1 to 31, `L`, `LW`, and a day with `W` such as `15W`",
};

pub(super) const MONTH: Field = Field {
    name: "month",
    first: 1,
    last: 12,
    cycle: 12,
    names: &[
        "JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC",
    ],
    values: "1 to 12 or JAN to DEC",
};

pub(super) const WEEKDAY: Field = Field {
    name: "day of week",
    first: 0,
    // Sunday, which is 0 too.
    last: 7,
    cycle: 7,
    names: &["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"],
    values: "0 to 7 or SUN to SAT, and one of them with `#1` to `#5` or `L` such as `FRI#2` or `FRIL`",
};

pub(super) const YEAR: Field = Field {
    name: "year",
    first: 1,
    last: 4999,
    cycle: 0,
    names: &[],
    values: "1 to 4999",
};

impl Field {
    /// Returns what `read` makes of each item of the list in `text`.
    pub(super) fn list<T>(
        &self,
        text: &str,
        mut read: impl FnMut(&str) -> Result<T, String>,
    ) -> Result<Vec<T>, String> {
        let items = text.split(',').map(|item| match item {
            "" => Err(format!("an item of the list {text:?} is empty")),
            item => read(item),
        });
        let items: Result<_, _> = items.collect();
        items.map_err(|error| format!("{}: {error}; valid are {}", self.name, self.values))
    }

    /// Reads a value, a range or a step, and adds to `doubts` why that step does not mean what it says.
    pub(super) fn item(&self, text: &str, doubts: &mut Vec<String>) -> Result<Item, String> {
        let (range, step) = match text.split_once('/') {
            Some((range, step)) => (range, Some(number(step, text)?)),
            None => (text, None),
        };
        if step == Some(0) {
            return Err(format!("the step of {text:?} is 0"));
        }
        let (first, last) = match range.split_once('-') {
            _ if range == "*" => (self.first, self.last),
            Some((first, last)) => self.range(first, last, text)?,
            None => {
                let first = self.value(range, text)?;
                (first, if step.is_some() { self.last } else { first })
            }
        };
        let step = step.unwrap_or(1);
        let item = Item { first, last, step };
        doubts.extend(self.doubt(item, !range.contains('-')));
        Ok(item)
    }

    fn range(&self, first: &str, last: &str, text: &str) -> Result<(u16, u16), String> {
        let (first, end) = (self.value(first, text)?, self.value(last, text)?);
        // Sunday, by its name, is the last day of a range that has others.
        let is_name = last.starts_with(|c: char| c.is_ascii_alphabetic());
        let end = if self.last == 7 && is_name && end == 0 && first > 0 {
            7
        } else {
            end
        };
        if first > end {
            return Err(format!("the range {text:?} does not go up"));
        }
        Ok((first, end))
    }

    /// Reads the number or the name of a value, which is `text` or a part of it.
    pub(super) fn value(&self, value: &str, text: &str) -> Result<u16, String> {
        let is_letter = |c: char| c.is_ascii_alphabetic();
        let end = value.find(|c| !is_letter(c)).unwrap_or(value.len());
        let name = self.names.iter().zip(self.first..);
        let mut name = name.filter(|(name, _)| name.eq_ignore_ascii_case(&value[..end]));
        match name.next() {
            Some((_, number)) => nothing_after(&value[end..], text).map(|()| number),
            None => match number(value, text)? {
                number if (self.first..=self.last).contains(&number) => Ok(number),
                number => Err(format!("{number} in {text:?} is out of range")),
            },
        }
    }

    /// Says why a step does not mean what it says; `None` if it does.
    fn doubt(&self, item: Item, is_open: bool) -> Option<String> {
        let (name, step, first) = (self.name, item.step, item.first);
        // The days of the week 0 and 7 are one.
        let value = |value| if self.last == 7 { value % 7 } else { value };
        let count = item.values().map(value).collect::<BTreeSet<_>>().len();
        let is_whole = is_open || (first, item.last) == (self.first, self.last);
        let is_even = is_whole && count * usize::from(step) == usize::from(self.cycle);
        let what = match (step, count) {
            (1, _) => return None,
            _ if is_even || !is_whole && count > 1 => return None,
            (_, 1) => format!("leaves one value, which is {first}"),
            _ if self.name == YEAR.name => return None,
            _ => "is uneven where the field begins again".to_owned(),
        };
        Some(format!("{name}: the step {step} {what}"))
    }
}

impl Item {
    pub(in crate::schedule) fn values(self) -> impl Iterator<Item = u16> {
        (self.first..=self.last).step_by(self.step.into())
    }

    /// Returns whether it has more than one value, and so is a wildcard, a range or a step.
    pub(super) fn repeats(self) -> bool {
        self.last - self.first >= self.step
    }

    pub(super) fn has(self, value: u16) -> bool {
        let is_inside = (self.first..=self.last).contains(&value);
        is_inside && (value - self.first).is_multiple_of(self.step)
    }
}

/// Reads a number, which is `text` or a part of it.
pub(super) fn number(number: &str, text: &str) -> Result<u16, String> {
    let end = number.find(|c: char| !c.is_ascii_digit());
    let digits = &number[..end.unwrap_or(number.len())];
    if digits.is_empty() && end.is_none() {
        return Err(format!("a value is missing in {text:?}"));
    }
    nothing_after(&number[digits.len()..], text)?;
    let number = digits.parse();
    number.map_err(|_| format!("{digits} in {text:?} is out of range"))
}

fn nothing_after(rest: &str, text: &str) -> Result<(), String> {
    match rest.chars().next() {
        Some(character) => Err(format!("{character:?} in {text:?} is not understood")),
        None => Ok(()),
    }
}
