//! The answers of nodes: what `INFO` says, and how long answers took.

use std::{collections::HashMap, str::FromStr, time::Duration};

use serde_json::{Value, json};

use crate::look::clock::millis;

/// What `INFO` says: fields by their names.
#[derive(Clone, Debug, Default)]
pub struct Info(HashMap<String, String>);

impl Info {
    pub(crate) fn read(text: &str) -> Self {
        let fields = text.lines().filter_map(|line| {
            let (name, value) = line.split_once(':')?;
            Some((name.to_owned(), value.trim().to_owned()))
        });
        Self(fields.collect())
    }

    /// Returns a field as text; nothing if it is not there.
    pub fn text(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }

    /// Returns a field that is a number.
    pub fn number<N: FromStr>(&self, name: &str) -> Option<N> {
        self.0.get(name)?.parse().ok()
    }

    /// Returns the version of the server, by the name under which it goes.
    pub fn version(&self) -> String {
        match (self.text("valkey_version"), self.text("redis_version")) {
            ("", "") => "version unknown".to_owned(),
            ("", redis) => format!("redis {redis}"),
            (valkey, _) => format!("valkey {valkey}"),
        }
    }

    /// Returns the number of keys in a database.
    pub fn keys_in(&self, database: i64) -> u64 {
        let value = self.0.get(&format!("db{database}"));
        value.and_then(|value| keys(value)).unwrap_or(0)
    }

    /// Returns the number of keys in all databases but this one.
    pub fn keys_elsewhere(&self, database: i64) -> u64 {
        let own = format!("db{database}");
        let databases = self.0.iter().filter(|(name, _)| {
            let number = name.strip_prefix("db").map(str::parse::<u32>);
            matches!(number, Some(Ok(_))) && **name != own
        });
        databases.filter_map(|(_, value)| keys(value)).sum()
    }
}

fn keys(value: &str) -> Option<u64> {
    let keys = value.strip_prefix("keys=")?.split(',').next()?;
    keys.parse().ok()
}

/// How long something took, several times.
#[derive(Clone, Debug, Default)]
pub struct Timings(
    // invariant: in ascending order
    Vec<Duration>,
);

impl Timings {
    pub fn new(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        Self(times)
    }

    /// Returns the time within which this share of them was done, from 0 to 100 per cent; zero if there is none.
    pub fn percentile(&self, percent: usize) -> Duration {
        let last = self.0.len().saturating_sub(1);
        let at = (self.0.len() * percent).div_ceil(100).saturating_sub(1);
        self.0.get(at.min(last)).copied().unwrap_or_default()
    }

    /// Returns these and others together.
    pub fn and(self, others: Self) -> Self {
        Self::new([self.0, others.0].concat())
    }

    /// Returns how many there are.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Returns some of them in milliseconds, for programs.
    pub fn to_json(&self) -> Value {
        json!({
            "p50": millis(self.percentile(50)),
            "p99": millis(self.percentile(99)),
            "max": millis(self.percentile(100)),
        })
    }
}

/// Returns the median of values; of an even number, the greater of the two in the middle.
pub fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read() {
        let info = Info::read(
            "# Server\r\nredis_version:7.2.4\r\nvalkey_version:8.1.1\r\nuptime_in_seconds:12\r\n\
             db0:keys=3,expires=1,avg_ttl=0\r\ndb4:keys=39,expires=0,avg_ttl=0\r\n",
        );
        assert_eq!(info.version(), "valkey 8.1.1");
        assert_eq!(info.number::<u64>("uptime_in_seconds"), Some(12));
        assert_eq!(info.number::<u64>("redis_version"), None);
        assert_eq!(info.keys_elsewhere(0), 39);
        assert_eq!(info.keys_elsewhere(4), 3);
        assert_eq!(info.text("role"), "");
    }

    #[test]
    fn percentiles_are_of_those_that_were_measured() {
        let ms = Duration::from_millis;
        let timings = Timings::new((1..=100).rev().map(ms).collect());
        assert_eq!(timings.percentile(50), ms(50));
        assert_eq!(timings.percentile(99), ms(99));
        assert_eq!(timings.percentile(100), ms(100));
        assert_eq!(Timings::new(vec![ms(7)]).percentile(1), ms(7));
        assert_eq!(Timings::default().percentile(50), Duration::ZERO);
    }
}
